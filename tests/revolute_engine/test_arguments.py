"""Bad input: one clear line that names the argument, and an engine that works as before."""

from typing import Any

import numpy as np
import pytest

from revolute.contract.errors import ArgumentError
from revolute.contract.loss import Loss, Term
from revolute_engine import Engine, Model, Rollout, load_model

NAN = float("nan")


@pytest.fixture(scope="module")
def laikago() -> Model:
    return load_model("laikago", contact_model="hard")


@pytest.fixture(scope="module")
def engine() -> Engine:
    return Engine(threads=1)


def _arguments(model: Model, batch: int | None = 3, steps: int = 4) -> dict[str, Any]:
    """Return good arguments of a rollout."""
    axes = () if batch is None else (batch,)
    qpos, qvel = model.keyframes["home"], model.qvel0
    ctrl = np.zeros((*axes, steps, model.nu))
    if batch is None:
        return {"qpos": qpos, "qvel": qvel, "ctrl": ctrl}
    return {"qpos": np.tile(qpos, (batch, 1)), "qvel": np.tile(qvel, (batch, 1)), "ctrl": ctrl}


def _put(array: np.ndarray, index: tuple[int, ...], value: float) -> np.ndarray:
    changed = np.array(array)
    changed[index] = value
    return changed


PARAMETERS = (
    "geom_friction, body_mass, body_ipos, body_inertia, dof_damping, dof_armature, dof_frictionloss, "
    "jnt_stiffness, gravity, actuator_gear, restitution, "
    "actuator_gainprm, actuator_biasprm, qpos_spring, jnt_range"
)
SIZES = "model 'laikago' has 12 actuators and 18 velocities"
QUATERNION = "it is the orientation of joint 'root', at rest [1 0 0 0]"


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (
            lambda a: {"ctrl": np.zeros((3, 4, 18))},
            f"ctrl: expected shape [batch=3, time, nu=12], got [3, 4, 18]; {SIZES}",
        ),
        (
            lambda a: {"ctrl": np.zeros(12)},
            f"ctrl: expected shape [batch, time, nu=12] or [time, nu=12], got [12]; {SIZES}",
        ),
        (
            lambda a: {"ctrl": 0.0},
            f"ctrl: expected shape [batch, time, nu=12] or [time, nu=12], got []; {SIZES}",
        ),
        (
            lambda a: {"ctrl": np.zeros((0, 4, 12))},
            "ctrl: expected a batch of at least one environment, got [0, 4, 12]",
        ),
        (
            lambda a: {"qpos": a["qpos"][:2]},
            "qpos: expected shape [batch=3, nq=19] or [nq=19], got [2, 19]; model 'laikago' has nq=19 and "
            "nv=18",
        ),
        (
            lambda a: {"qpos": a["qpos"][:, :18]},
            "qpos: expected shape [batch=3, nq=19] or [nq=19], got [3, 18]; model 'laikago' has nq=19 and "
            "nv=18",
        ),
        (
            lambda a: {"qvel": np.zeros((3, 4, 18))},
            "qvel: expected shape [batch=3, nv=18] or [nv=18], got [3, 4, 18]; model 'laikago' has nq=19 "
            "and nv=18",
        ),
        (
            lambda a: {"ctrl": a["ctrl"][0]},
            "qpos: expected shape [nq=19], got [3, 19]; ctrl has no batch axis: leave it out here too, or "
            "give ctrl one",
        ),
        (
            lambda a: {"ctrl": _put(a["ctrl"], (2, 3, 7), NAN)},
            "ctrl: expected finite values, got nan at [2, 3, 7]; replace it before the call",
        ),
        (
            lambda a: {"qvel": _put(a["qvel"], (1, 17), -np.inf)},
            "qvel: expected finite values, got -inf at [1, 17]; replace it before the call",
        ),
        (
            lambda a: {"qpos": _put(a["qpos"], (2, 0), NAN)},
            "qpos: expected finite values, got nan at [2, 0]; replace it before the call",
        ),
        (
            lambda a: {"qpos": _put(a["qpos"], (1, slice(3, 7)), 0.0)},
            "qpos: expected a quaternion (w x y z) of non-zero length, got [0 0 0 0] at [1, 3:7]; "
            f"{QUATERNION}",
        ),
        (
            lambda a: {"qpos": _put(a["qpos"][0], (slice(3, 7),), 0.0)},
            f"qpos: expected a quaternion (w x y z) of non-zero length, got [0 0 0 0] at [3:7]; {QUATERNION}",
        ),
        (
            lambda a: {"qvel": a["qvel"].astype(complex)},
            "qvel: expected an array of real numbers, got dtype complex128; "
            "convert it to float64 (numpy.asarray(x, dtype=float)) first",
        ),
        (
            lambda a: {"params": {"wind": [0, 0, -1]}},
            f"params: expected names among {PARAMETERS}, got 'wind'",
        ),
        (lambda a: {"params": [1.0]}, "params: expected a mapping of names to arrays, got list"),
        (
            lambda a: {"params": {"body_mass": np.ones(17)}},
            "body_mass: expected shape [nbody=18] or [batch=3, nbody=18], got [17]",
        ),
        (
            lambda a: {"params": {"body_mass": np.ones((2, 18))}},
            "body_mass: expected shape [nbody=18] or [batch=3, nbody=18], got [2, 18]",
        ),
        (
            lambda a: {"params": {"body_mass": _put(np.ones((3, 18)), (1, 4), 0.0)}},
            "body_mass: expected masses > 0 for bodies with mass, got 0.0 at [1, 4]",
        ),
        (
            lambda a: {"params": {"geom_friction": _put(np.ones((a["ngeom"], 3)), (2, 1), -0.5)}},
            "geom_friction: expected coefficients >= 0, got -0.5 at [2, 1]",
        ),
        (
            lambda a: {"params": {"geom_friction": _put(np.ones((a["ngeom"], 3)), (2, 0), NAN)}},
            "geom_friction: expected finite values, got nan at [2, 0]; replace it before the call",
        ),
        (
            lambda a: {"params": {"body_ipos": np.zeros((3, 18))}},
            "body_ipos: expected shape [nbody=18, 3] or [batch=3, nbody=18, 3], got [3, 18]",
        ),
        (
            lambda a: {"params": {"gravity": -9.81}},
            "gravity: expected shape [3] or [batch=3, 3], got []",
        ),
        (
            lambda a: {"params": {"restitution": [0.5, 0.5]}},
            "restitution: expected shape [] or [batch=3], got [2]",
        ),
        (
            lambda a: {"params": {"restitution": 1.5}},
            "restitution: expected coefficients from 0 to 1, got 1.5",
        ),
        (
            lambda a: {"params": {"restitution": [0.5, -1, 0]}},
            "restitution: expected coefficients >= 0, got -1.0 at [1]",
        ),
        (
            lambda a: {"params": {"restitution": NAN}},
            "restitution: expected finite values, got nan; replace it before the call",
        ),
        (
            lambda a: {"params": {"body_inertia": np.zeros((18, 3))}},
            "body_inertia: expected moments of inertia > 0, got 0.0 at [1, 0]",
        ),
        (
            lambda a: {"params": {"dof_damping": _put(np.zeros(18), (7,), -0.1)}},
            "dof_damping: expected damping coefficients >= 0, got -0.1 at [7]",
        ),
        (
            lambda a: {"params": {"dof_armature": _put(np.zeros((3, 18)), (2, 6), -1)}},
            "dof_armature: expected rotor inertias >= 0, got -1.0 at [2, 6]",
        ),
        (
            lambda a: {"params": {"dof_frictionloss": -np.ones(18)}},
            "dof_frictionloss: expected friction losses >= 0, got -1.0 at [0]",
        ),
        (
            lambda a: {"params": {"jnt_stiffness": np.ones(13)}},
            "jnt_stiffness: expected 0 for free joints, which have no springs, got 1.0 at [0]",
        ),
        (lambda a: {"model": "laikago"}, "model: expected a Model from load_model, got str"),
    ],
)
def test_a_wrong_argument_is_named(laikago: Model, engine: Engine, change: Any, message: str) -> None:
    good = _arguments(laikago)
    arguments = {"model": laikago, **good, **change({**good, "ngeom": laikago.ngeom})}
    with pytest.raises(ArgumentError) as caught:
        engine.rollout(**arguments)
    assert str(caught.value) == message
    assert engine.rollout(laikago, **good).status.tolist() == [0, 0, 0]


@pytest.fixture(scope="module")
def rollout(laikago: Model, engine: Engine) -> Rollout:
    return engine.rollout(laikago, **_arguments(laikago))


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (
            {"qpos_bar": np.zeros((3, 4, 19))},
            "qpos_bar: expected shape [3, 5, 19] or [K, 3, 5, 19], got [3, 4, 19]; "
            "it has the shape of the trajectory: time + 1 states",
        ),
        (
            {"qpos_bar": np.zeros((0, 3, 5, 19))},
            "qpos_bar: expected shape [3, 5, 19] or [K, 3, 5, 19], got [0, 3, 5, 19]; "
            "it has the shape of the trajectory: time + 1 states",
        ),
        (
            {"qpos_bar": np.zeros((2, 3, 5, 19)), "qvel_bar": np.zeros((3, 5, 18))},
            "qvel_bar: expected the same number of cotangents as in qpos_bar, "
            "got qpos_bar [2, 3, 5, 19] and qvel_bar [3, 5, 18]",
        ),
        (
            {"qvel_bar": _put(np.zeros((3, 5, 18)), (0, 4, 2), NAN)},
            "qvel_bar: expected finite values, got nan at [0, 4, 2]; replace it before the call",
        ),
        ({}, "qpos_bar, qvel_bar and ctrl_bar: expected an array in at least one of them, got None in all"),
        (
            {"qpos_bar": np.zeros((3, 5, 19)), "wrt": ["qpos", "mass"]},
            f"wrt: expected names among qpos, qvel, ctrl, {PARAMETERS}, got 'mass'",
        ),
        (
            {"qpos_bar": np.zeros((3, 5, 19)), "wrt": []},
            f"wrt: expected at least one name among qpos, qvel, ctrl, {PARAMETERS}, got none",
        ),
        (
            {"rollout": None, "qpos_bar": np.zeros((3, 5, 19))},
            "rollout: expected a Rollout from Engine.rollout, got NoneType",
        ),
    ],
)
def test_a_wrong_argument_of_backward_is_named(
    laikago: Model, engine: Engine, rollout: Rollout, change: dict[str, Any], message: str
) -> None:
    with pytest.raises(ArgumentError) as caught:
        engine.backward(**{"model": laikago, "rollout": rollout, **change})
    assert str(caught.value) == message


def test_a_trajectory_of_another_model_is_refused(engine: Engine, rollout: Rollout) -> None:
    other = load_model("laikago", contact_model="hard", iterations=49)
    with pytest.raises(ArgumentError, match="rollout: expected a trajectory of model 'laikago'"):
        engine.backward(other, rollout, rollout.qpos)


def test_a_function_is_not_a_loss(laikago: Model, engine: Engine) -> None:
    with pytest.raises(
        ArgumentError, match=r"loss: expected a revolute\.Term or a revolute\.Loss, got a function"
    ):
        engine.value_and_gradient(laikago, **_arguments(laikago), loss=lambda q: q)  # type: ignore[arg-type]


def test_a_loss_that_does_not_fit_is_named(laikago: Model, engine: Engine) -> None:
    with pytest.raises(ArgumentError, match=r"loss.terms.0.index: expected entries from 0 to 18, got 19"):
        engine.value_and_gradient(laikago, **_arguments(laikago), loss=Loss([Term("qpos", index=[19])]))


@pytest.mark.parametrize("threads", [0, -1, 1.5, "2", True, 100000])
def test_threads_are_a_positive_integer(threads: Any) -> None:
    with pytest.raises(ArgumentError, match="threads: expected an integer from 1 to 1024"):
        Engine(threads=threads)


@pytest.mark.parametrize(
    "form",
    [
        lambda array: array.tolist(),
        lambda array: array.astype(">f8"),
        lambda array: np.asfortranarray(array),
        lambda array: np.repeat(array, 2, axis=-1)[..., ::2],
        lambda array: array[::-1].copy()[::-1],
    ],
)
def test_equal_numbers_give_equal_results_in_any_form(laikago: Model, engine: Engine, form: Any) -> None:
    good = _arguments(laikago)
    good["ctrl"] = np.linspace(-1, 1, good["ctrl"].size).reshape(good["ctrl"].shape)
    plain = engine.rollout(laikago, **good)
    other = engine.rollout(laikago, **{name: form(array) for name, array in good.items()})
    assert np.array_equal(plain.qpos, other.qpos) and np.array_equal(plain.qvel, other.qvel)


def test_float32_gives_the_result_of_the_same_numbers_in_float64(laikago: Model, engine: Engine) -> None:
    single = {name: array.astype(np.float32) for name, array in _arguments(laikago).items()}
    double = {name: array.astype(np.float64) for name, array in single.items()}
    results = [engine.rollout(laikago, **arguments) for arguments in (single, double)]
    assert results[0].qpos.dtype == np.float64
    assert np.array_equal(results[0].qpos, results[1].qpos)


def test_the_users_arrays_are_neither_changed_nor_kept(laikago: Model, engine: Engine) -> None:
    good = _arguments(laikago)
    before = {name: array.copy() for name, array in good.items()}
    rollout = engine.rollout(laikago, **good)
    assert all(np.array_equal(good[name], before[name]) for name in good)
    good["ctrl"][:] = 7
    assert not rollout.ctrl.any()


def test_one_state_is_shared_by_a_batch(laikago: Model, engine: Engine) -> None:
    good = _arguments(laikago)
    shared = engine.rollout(laikago, good["qpos"][0], good["qvel"], good["ctrl"])
    assert np.array_equal(shared.qpos, engine.rollout(laikago, **good).qpos)


def test_without_batch_axis_results_have_none(laikago: Model, engine: Engine) -> None:
    rollout = engine.rollout(laikago, **_arguments(laikago, batch=None))
    assert rollout.qpos.shape == (5, 19) and rollout.qvel.shape == (5, 18) and rollout.ctrl.shape == (4, 12)
    assert rollout.status.shape == () and int(rollout.status) == 0
    assert rollout.diverged_step.shape == () and int(rollout.diverged_step) == -1


def test_no_steps_give_the_start_state(laikago: Model, engine: Engine) -> None:
    good = _arguments(laikago, steps=0)
    rollout = engine.rollout(laikago, **good)
    assert rollout.qpos.shape == (3, 1, 19) and rollout.ctrl.shape == (3, 0, 12)
    assert np.array_equal(rollout.qpos[:, 0], good["qpos"])


def test_batch_axes_of_length_one_repeat() -> None:
    model, random = load_model("cartpole"), np.random.default_rng(0)
    qpos, qvel = random.normal(size=(3, 2)), random.normal(size=(3, 2))
    ctrl, mass = random.normal(size=(3, 4, 1)), np.array([0.0, 1.0, 0.2])
    engine = Engine(threads=1)
    bar = random.normal(size=(1, 5, 2))
    for one in (slice(0, 1), slice(None)):
        # at least one array has the whole batch
        inputs = {"qpos": qpos[one], "qvel": qvel[:1], "ctrl": ctrl[: 3 if one == slice(0, 1) else 1]}
        found = engine.rollout(model, **inputs, params={"body_mass": mass[None]})
        whole = {name: np.repeat(array, 3 // len(array), axis=0) for name, array in inputs.items()}
        expected = engine.rollout(model, **whole, params={"body_mass": np.tile(mass, (3, 1))})
        np.testing.assert_array_equal(found.qpos, expected.qpos)
        np.testing.assert_array_equal(found.ctrl, whole["ctrl"])
        gradient = engine.backward(model, found, bar, wrt=["ctrl", "body_mass"])
        other = engine.backward(model, expected, np.repeat(bar, 3, axis=0), wrt=["ctrl", "body_mass"])
        np.testing.assert_array_equal(gradient.ctrl, other.ctrl)
        np.testing.assert_array_equal(gradient.body_mass, other.body_mass)
        many = engine.backward(model, found, np.stack([bar, 2 * bar]), wrt=["ctrl"])
        np.testing.assert_array_equal(many.ctrl[0], gradient.ctrl)
    jacobian = engine.jacobian(model, qpos, qvel[:1], ctrl[:1, 0])
    np.testing.assert_array_equal(jacobian.A[2], engine.jacobian(model, qpos[2], qvel[0], ctrl[0, 0]).A)
    with pytest.raises(
        ArgumentError, match=r"^qvel: expected shape \[batch=3, nv=2\] or \[nv=2\], got \[2, 2\]"
    ):
        engine.rollout(model, qpos, qvel[:2], ctrl)

"""Jacobians of a step: MuJoCo's own where motion is smooth, central differences where there is contact."""

from pathlib import Path
from typing import Any

import mujoco
import numpy as np
import pytest

from revolute.contract.errors import ArgumentError, DivergedError
from revolute_engine import Engine, Model, load_model
from tests.robots import THREE_TREES, gymnasium_ant, gymnasium_model, laikago_urdf
from tests.tangents import difference, moved

# mjd_transitionFD's centred differences with a step of 1e-6 have rounding of about 1e-9 times the velocities
MUJOCO = 1e-7
# ours through contact rows, in double with a step of 1e-6
CONTACT = 1e-6

State = tuple[np.ndarray, np.ndarray, np.ndarray]


def _random_state(model: Model, seed: int) -> State:
    random = np.random.default_rng(seed)
    qpos = moved(model, model.qpos0, 0.3 * random.normal(size=model.nv))
    return qpos, random.normal(size=model.nv), 0.3 * random.normal(size=model.nu)


def _differences(
    model: Model, state: State, by: float = 1e-6, **options: Any
) -> tuple[np.ndarray, np.ndarray]:
    """Return A and B by central differences, all moves in one batch."""
    qpos, qvel, ctrl = state
    nv, nu = model.nv, model.nu
    moves = np.concatenate([np.eye(2 * nv + nu), -np.eye(2 * nv + nu)]) * by
    ends = Engine(threads=1).rollout(
        model,
        np.stack([moved(model, qpos, move[:nv]) for move in moves]),
        qvel + moves[:, nv : 2 * nv],
        (ctrl + moves[:, 2 * nv :])[:, None],
        **options,
    )
    plus, minus = np.split(np.arange(len(moves)), 2)
    dq = difference(model, ends.qpos[minus, 1], ends.qpos[plus, 1])
    columns = np.concatenate([dq, ends.qvel[plus, 1] - ends.qvel[minus, 1]], axis=1).T / (2 * by)
    return columns[:, : 2 * nv], columns[:, 2 * nv :]


def _largest_difference(ours: Any, theirs: tuple[np.ndarray, np.ndarray]) -> float:
    return max(
        float(np.abs(one - other).max() / np.abs(other).max())
        for one, other in zip((ours.A, ours.B), theirs, strict=True)
        if other.size
    )


# controls and forces stay within their ranges, where MuJoCo differences one-sidedly
TREES = THREE_TREES.replace("-0.5 0.5", "-9 9")
SMOOTH: dict[str, str | Path] = {
    "trees": TREES,
    "trees by implicitfast": TREES.replace("<option ", '<option integrator="implicitfast" '),
    "ant": gymnasium_ant(),
    "laikago": laikago_urdf(),
    "hopper": gymnasium_model("hopper"),
    "cartpole": "cartpole",
}


@pytest.mark.parametrize("contact_model", ["hard", "mujoco"])
@pytest.mark.parametrize("name", SMOOTH)
def test_jacobians_of_smooth_motion_are_mujocos(name: str, contact_model: str) -> None:
    base = "free" if name == "laikago" else None
    options = {"contact": False, "limits": False, "dry_friction": False, "contact_model": contact_model}
    model = load_model(SMOOTH[name], base=base, **options)
    theirs = model.mujoco_model
    if contact_model == "mujoco" and theirs.opt.integrator == int(mujoco.mjtIntegrator.mjINT_RK4):
        pytest.skip("mjd_transitionFD does not know RK4")
    theirs.opt.disableflags |= int(mujoco.mjtDisableBit.mjDSBL_CONSTRAINT)
    if not model.arrays["integrator"]:
        theirs.opt.integrator = int(mujoco.mjtIntegrator.mjINT_EULER)
    data = mujoco.MjData(theirs)
    for seed in range(2):
        state = _random_state(model, seed)
        data.qpos[:], data.qvel[:], data.ctrl[:] = state
        mujoco.mj_forward(theirs, data)
        nx = 2 * model.nv
        expected = np.zeros((nx, nx)), np.zeros((nx, model.nu))
        mujoco.mjd_transitionFD(theirs, data, 1e-6, True, *expected, None, None)
        assert _largest_difference(Engine(threads=1).jacobian(model, *state), expected) < MUJOCO


@pytest.mark.parametrize("seed", range(3))
def test_jacobians_of_a_standing_robot_are_differences(seed: int) -> None:
    model, engine = load_model("laikago"), Engine(threads=1)
    random = np.random.default_rng(seed)
    ctrl = model.keyframes["home"][7:] + 0.1 * random.normal(size=(60, 12))
    rollout = engine.rollout(model, model.keyframes["home"], model.qvel0, ctrl)
    state = rollout.qpos[-1], rollout.qvel[-1], ctrl[0]
    assert _largest_difference(engine.jacobian(model, *state), _differences(model, state)) < CONTACT


def test_jacobians_of_a_sliding_fall_are_differences() -> None:
    model, engine = load_model(gymnasium_ant()), Engine(threads=1)
    qvel = np.array(model.qvel0)
    qvel[:2] = 1.5, -0.7
    qpos = np.array(model.qpos0)
    qpos[7:] += 0.1
    rollout = engine.rollout(model, qpos, qvel, np.zeros((80, model.nu)))
    state = rollout.qpos[-1], rollout.qvel[-1], np.full(model.nu, 0.1)
    assert _largest_difference(engine.jacobian(model, *state), _differences(model, state)) < CONTACT


def test_jacobians_see_parameters_per_environment() -> None:
    model, engine = load_model("laikago"), Engine(threads=2)
    # pressed into the floor by 2 mm, deeper than the width over which solimp changes
    home = model.keyframes["home"] - 2e-3 * np.eye(model.nq)[2]
    rest, ctrl = model.qvel0, home[7:]
    masses = model.body_mass * np.array([1.0, 1.5, 0.7])[:, None]
    jacobian = engine.jacobian(model, home, rest, np.tile(ctrl, (3, 1)), params={"body_mass": masses})
    assert jacobian.A.shape == (3, 36, 36) and jacobian.B.shape == (3, 36, 12)
    for index, mass in enumerate(masses):
        alone = engine.jacobian(model, home, rest, ctrl, params={"body_mass": mass})
        assert np.array_equal(alone.A, jacobian.A[index]) and np.array_equal(alone.B, jacobian.B[index])
        theirs = _differences(model, (home, rest, ctrl), params={"body_mass": mass})
        assert _largest_difference(alone, theirs) < CONTACT


def test_a_product_of_jacobians_is_the_gradient_of_the_rollout() -> None:
    model, engine = load_model("laikago", contact=False), Engine(threads=1)
    random = np.random.default_rng(3)
    qpos, qvel, _ = _random_state(model, 4)
    ctrl = 0.1 * random.normal(size=(6, model.nu))
    rollout = engine.rollout(model, qpos, qvel, ctrl)
    tangent = random.normal(size=2 * model.nv)
    jvp = engine.jvp(model, rollout, qpos_tan=tangent[: model.nv], qvel_tan=tangent[model.nv :])
    steps = engine.jacobian(model, rollout.qpos[:-1], rollout.qvel[:-1], ctrl)
    for step, matrix in enumerate(steps.A):
        tangent = matrix @ tangent
        expected = np.concatenate([jvp.qpos[step + 1], jvp.qvel[step + 1]])
        assert np.abs(tangent - expected).max() < 1e-11 * np.abs(expected).max()


def test_arguments_are_only_read_and_results_are_new() -> None:
    model, engine = load_model("laikago"), Engine(threads=1)
    arguments = [model.keyframes["home"].copy(), np.full(model.nv, 0.1), np.full(12, 0.2)]
    given = [argument.copy() for argument in arguments]
    for argument in arguments:
        argument.setflags(write=False)
    first, second = (engine.jacobian(model, *arguments) for _ in range(2))
    first.A[:] = first.B[:] = 0.0
    assert second.A.any() and second.B.any()
    assert all(np.array_equal(*pair) for pair in zip(arguments, given, strict=True))
    # a batch of one, and environments that share a state, from arrays of another layout
    batch = engine.jacobian(model, given[0], given[1], np.asfortranarray(np.tile(given[2], (3, 1))))
    assert np.array_equal(batch.A, np.tile(second.A, (3, 1, 1)))
    one = engine.jacobian(model, given[0], given[1][None], given[2][None])
    assert np.array_equal(one.B, second.B[None])


def test_a_step_that_diverges_has_no_jacobian() -> None:
    model, engine = load_model("laikago"), Engine(threads=1)
    qvel = np.zeros((2, model.nv))
    qvel[1, 7] = 1e200
    jacobian = engine.jacobian(model, model.keyframes["home"], qvel, np.zeros((2, 12)))
    assert (
        np.isfinite(jacobian.A[0]).all() and np.isnan(jacobian.A[1]).all() and np.isnan(jacobian.B[1]).all()
    )
    with pytest.raises(DivergedError):
        engine.jacobian(model, model.keyframes["home"], qvel[1], np.zeros(12))


@pytest.mark.parametrize(
    ("ctrl", "message"),
    [
        (
            np.zeros(11),
            "ctrl: expected shape [batch, nu=12] or [nu=12], got [11]; "
            "model 'laikago' has 12 actuators and 18 velocities",
        ),
        (
            np.zeros((2, 3, 12)),
            "ctrl: expected shape [batch, nu=12] or [nu=12], got [2, 3, 12]; "
            "model 'laikago' has 12 actuators and 18 velocities",
        ),
        (np.zeros((0, 12)), "ctrl: expected a batch of at least one environment, got [0, 12]"),
    ],
)
def test_a_wrong_control_is_named(ctrl: np.ndarray, message: str) -> None:
    model = load_model("laikago")
    with pytest.raises(ArgumentError) as caught:
        Engine(threads=1).jacobian(model, model.qpos0, model.qvel0, ctrl)
    assert str(caught.value) == message


# ten velocities: rows in full packs, and two that are left over
BOUNCING = """<mujoco><worldbody><geom type="plane" size="9 9 1"/>
  <body pos="0 0 0.1"><freejoint/><geom size="0.1" mass="1"/></body>
  <body pos="1 0 0.1"><joint type="slide" axis="0 0 1"/><joint name="turn" axis="0 1 0"/>
    <geom size="0.1" mass="2"/></body>
  <body pos="2 0 1"><joint axis="0 1 0"/><joint axis="1 0 0"/><geom pos="0 0.3 0" size="0.1" mass="1"/></body>
  </worldbody><actuator><motor joint="turn"/></actuator></mujoco>"""


@pytest.mark.parametrize("batch", [5, 8, 11, 17])
def test_a_batch_of_jacobians_has_the_bits_of_one_by_one(batch: int) -> None:
    model, engine = load_model(BOUNCING, contact_model="hard", restitution=0.7), Engine(threads=1)
    random = np.random.default_rng(batch)
    qpos = np.tile(model.qpos0, (batch, 1))
    qpos[:, 2] += 0.002 * random.normal(size=batch)  # some touch, some meet the ground within the step
    qpos[0, 2] += 0.1  # and one flies
    qvel = random.normal(size=(batch, model.nv))
    ctrl = random.normal(size=(batch, model.nu))
    together = engine.jacobian(model, qpos, qvel, ctrl)
    impacts = (
        np.abs(together.A[:, 2, model.nv + 2]) < 0.9 * model.timestep
    )  # the ball's end depends less on its speed
    assert 0 < impacts.sum() < batch
    for index in range(batch):
        alone = engine.jacobian(model, qpos[index], qvel[index], ctrl[index])
        assert np.array_equal(alone.A, together.A[index]) and np.array_equal(alone.B, together.B[index])


NO_QUATERNION = "qpos: expected a quaternion (w x y z) of non-zero length, got [0 0 0 0]"


@pytest.mark.parametrize(
    ("name", "place", "value", "message"),
    [
        ("qpos", 1, np.nan, "qpos: expected finite values, got nan at [{row}1]"),
        ("qpos", slice(3, 7), 0.0, NO_QUATERNION + " at [{row}3:7]"),
        ("qvel", 2, np.inf, "qvel: expected finite values, got inf at [{row}2]"),
        ("ctrl", 0, np.nan, "ctrl: expected finite values, got nan at [{row}0]"),
    ],
)
@pytest.mark.parametrize("batch", [None, 1, 3, 100])
def test_a_number_that_cannot_be_computed_with_is_named(
    name: str, place: int | slice, value: float, message: str, batch: int | None
) -> None:
    model, engine = load_model(BOUNCING), Engine(threads=1)
    arguments = {"qpos": model.qpos0.copy(), "qvel": model.qvel0.copy(), "ctrl": np.zeros(model.nu)}
    row: tuple[int, ...] = ()
    if batch is not None:
        arguments = {each: np.tile(array, (batch, 1)) for each, array in arguments.items()}
        row = (batch - 1,)
    engine.jacobian(model, **arguments)
    arguments[name][(*row, place)] = value
    with pytest.raises(ArgumentError) as caught:
        engine.jacobian(model, **arguments)
    assert str(caught.value).startswith(message.format(row="".join(f"{index}, " for index in row)))


@pytest.mark.parametrize("batch", [2, 3])
@pytest.mark.parametrize("name", ["qpos", "qvel", "ctrl"])
def test_a_shape_of_another_batch_is_named(name: str, batch: int) -> None:
    model = load_model(BOUNCING)
    rows = {"qpos": model.qpos0, "qvel": model.qvel0, "ctrl": np.zeros(model.nu)}
    arguments = {each: np.tile(row, (batch + (each == name), 1)) for each, row in rows.items()}
    with pytest.raises(ArgumentError, match=f"batch={batch}" if name != "ctrl" else f"batch={batch + 1}"):
        Engine(threads=1).jacobian(model, **arguments)


@pytest.mark.parametrize("name", ["qpos", "qvel", "ctrl"])
def test_a_batch_of_one_is_repeated(name: str) -> None:
    model, engine = load_model(BOUNCING), Engine(threads=1)
    rows = {"qpos": model.qpos0, "qvel": model.qvel0, "ctrl": np.zeros(model.nu)}
    repeated = engine.jacobian(model, **{each: np.tile(row, (3, 1)) for each, row in rows.items()})
    found = engine.jacobian(
        model, **{each: np.tile(row, (3 if each == name else 1, 1)) for each, row in rows.items()}
    )
    assert found.A.tobytes() == repeated.A.tobytes() and found.B.tobytes() == repeated.B.tobytes()

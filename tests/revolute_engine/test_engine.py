"""Batches, threads, parameters, divergence and cancellation."""

import threading
import time
from typing import Any

import numpy as np
import pytest

from revolute.contract.checkpoints import CheckpointReport
from revolute.contract.errors import ArgumentError, DivergedError, NotFoundError
from revolute.contract.loss import Loss, Term
from revolute_engine import Cancelled, CancelToken, Engine, Model, load_model
from tests.robots import gymnasium_ant

STEPS = 20


@pytest.fixture(scope="module")
def ant() -> Model:
    return load_model(gymnasium_ant())


@pytest.fixture(scope="module")
def laikago() -> Model:
    return load_model("laikago")


def _batch(model: Model, batch: int, steps: int = STEPS, seed: int = 0) -> dict[str, np.ndarray]:
    """Return random starts near the model's pose, different in every environment."""
    random = np.random.default_rng(seed)
    pose = model.keyframes.get("home", model.qpos0)
    return {
        "qpos": pose + 0.02 * random.normal(size=(batch, model.nq)),
        "qvel": 0.1 * random.normal(size=(batch, model.nv)),
        "ctrl": 0.1 * random.normal(size=(batch, steps, model.nu)),
    }


@pytest.mark.parametrize("threads", [1, 2, 5])
def test_an_environment_does_not_depend_on_batch_or_threads(ant: Model, threads: int) -> None:
    many = _batch(ant, 19)
    random = np.random.default_rng(1)
    bars = {
        "qpos_bar": random.normal(size=(19, STEPS + 1, 15)),
        "qvel_bar": random.normal(size=(19, STEPS + 1, 14)),
    }
    engine = Engine(threads=threads)
    together = engine.rollout(ant, **many)
    gradient = engine.backward(ant, together, **bars)
    for index in (0, 7, 8, 18):
        alone = Engine(threads=1).rollout(ant, **{name: array[index] for name, array in many.items()})
        assert np.array_equal(alone.qpos, together.qpos[index])
        assert np.array_equal(alone.qvel, together.qvel[index])
        own = Engine(threads=1).backward(ant, alone, **{name: bar[index] for name, bar in bars.items()})
        for name in ("qpos", "qvel", "ctrl"):
            assert np.array_equal(own[name], gradient[name][index]), name


def test_several_cotangents_at_once_equal_one_at_a_time(ant: Model) -> None:
    engine, random = Engine(threads=1), np.random.default_rng(2)
    rollout = engine.rollout(ant, **_batch(ant, 3))
    bars = random.normal(size=(4, 3, STEPS + 1, 15))
    names = ("qpos", "qvel", "ctrl", "body_mass", "geom_friction")
    together = engine.backward(ant, rollout, bars, wrt=names)
    assert together.ctrl.shape == (4, 3, STEPS, 8) and together.body_mass.shape == (4, ant.nbody)
    for k in range(4):
        one = engine.backward(ant, rollout, bars[k], wrt=names)
        for name in names:
            assert np.array_equal(one[name], together[name][k]), name
    single = engine.rollout(ant, **{name: array[0] for name, array in _batch(ant, 3).items()})
    assert engine.backward(ant, single, bars[:, 0]).ctrl.shape == (4, STEPS, 8)


PENDULUM = """<mujoco><worldbody><body><joint axis="0 1 0" damping="0.1"/>
    <geom type="sphere" size="0.1" pos="0.3 0 -1"/></body></worldbody></mujoco>"""


def test_a_sum_over_environments_does_not_depend_on_how_many_cotangents_there_are() -> None:
    model, engine, random = load_model(PENDULUM), Engine(threads=1), np.random.default_rng(6)
    rollout = engine.rollout(model, **_batch(model, 17))
    bars = random.normal(size=(5, 17, STEPS + 1, 1))
    together = engine.backward(model, rollout, bars, wrt=["dof_damping"])
    assert together.dof_damping.shape == (5, 1) and together.dof_damping.all()
    for k in range(5):
        alone = engine.backward(model, rollout, bars[k], wrt=["dof_damping"])
        assert np.array_equal(alone.dof_damping, together.dof_damping[k])


def test_no_steps_have_an_identity_gradient(ant: Model) -> None:
    engine = Engine(threads=1)
    rollout = engine.rollout(ant, **_batch(ant, 2, steps=0))
    qvel_bar = np.random.default_rng(3).normal(size=(2, 1, 14))
    gradient = engine.backward(ant, rollout, qvel_bar=qvel_bar)
    assert np.array_equal(gradient.qvel, qvel_bar[:, 0])
    assert not gradient.qpos.any()
    assert gradient.ctrl.shape == (2, 0, 8)


def test_parameters_of_the_model_change_nothing_when_given_again(laikago: Model) -> None:
    good = _batch(laikago, 3)
    plain = Engine(threads=1).rollout(laikago, **good)
    for params in (
        {"body_mass": laikago.body_mass, "geom_friction": laikago.geom_friction},
        {"body_mass": np.tile(laikago.body_mass, (3, 1))},
    ):
        given = Engine(threads=1).rollout(laikago, **good, params=params)
        assert np.array_equal(plain.qpos, given.qpos) and np.array_equal(plain.qvel, given.qvel)


def test_each_environment_has_its_own_parameters(laikago: Model) -> None:
    good = {name: np.repeat(array[:1], 3, axis=0) for name, array in _batch(laikago, 1).items()}
    mass = np.tile(laikago.body_mass, (3, 1))
    mass[1, 1] *= 2
    rollout = Engine(threads=1).rollout(laikago, **good, params={"body_mass": mass})
    assert np.array_equal(rollout.qpos[0], rollout.qpos[2])
    assert not np.array_equal(rollout.qpos[0], rollout.qpos[1])


def test_gradients_by_parameters_are_shaped_and_summed_like_their_input(laikago: Model) -> None:
    engine, good = Engine(threads=1), _batch(laikago, 3)
    mass, names = laikago.body_mass, ("body_mass", "geom_friction")
    qvel_bar = np.random.default_rng(4).normal(size=(3, STEPS + 1, laikago.nv))
    each = engine.rollout(laikago, **good, params={"body_mass": np.tile(mass, (3, 1))})
    shared = engine.rollout(laikago, **good, params={"body_mass": mass})
    per_environment = engine.backward(laikago, each, qvel_bar=qvel_bar, wrt=names)
    summed = engine.backward(laikago, shared, qvel_bar=qvel_bar, wrt=names)
    assert per_environment.body_mass.shape == (3, laikago.nbody)
    assert summed.body_mass.shape == (laikago.nbody,)
    assert per_environment.geom_friction.shape == (laikago.ngeom, 3)
    assert np.allclose(per_environment.body_mass.sum(axis=0), summed.body_mass, rtol=1e-12, atol=0)
    assert summed.body_mass.any()


def _diverging(model: Model, batch: int, bad: int) -> dict[str, np.ndarray]:
    """Return a batch in which one environment leaves the finite numbers."""
    arguments = _batch(model, batch)
    arguments["qvel"][bad] = 1e200
    return arguments


def test_a_diverged_environment_stops_alone(ant: Model) -> None:
    engine = Engine(threads=1)
    arguments = _diverging(ant, 5, bad=2)
    rollout = engine.rollout(ant, **arguments)
    assert rollout.status.tolist() == [0, 0, 1, 0, 0]
    first_bad = int(rollout.diverged_step[2])
    assert 0 <= first_bad < STEPS and rollout.diverged_step.tolist() == [-1, -1, first_bad, -1, -1]
    assert np.isfinite(rollout.qpos[2, : first_bad + 1]).all()
    assert (
        np.isnan(rollout.qpos[2, first_bad + 1 :]).all() and np.isnan(rollout.qvel[2, first_bad + 1 :]).all()
    )

    good = {name: array[[0, 1, 3, 4]] for name, array in arguments.items()}
    alone = engine.rollout(ant, **good)
    assert np.array_equal(alone.qpos, rollout.qpos[[0, 1, 3, 4]])

    names = ("qpos", "ctrl", "body_mass")
    gradient = engine.backward(ant, rollout, rollout.qpos, wrt=names)
    expected = engine.backward(ant, alone, alone.qpos, wrt=names)
    assert gradient.status.tolist() == [0, 0, 1, 0, 0]
    assert np.isnan(gradient.qpos[2]).all() and np.isnan(gradient.ctrl[2]).all()
    assert np.array_equal(gradient.ctrl[[0, 1, 3, 4]], expected.ctrl)
    assert np.array_equal(gradient.body_mass, expected.body_mass)


def test_when_all_diverge_there_is_no_gradient(ant: Model) -> None:
    engine = Engine(threads=1)
    arguments = {name: array[0] for name, array in _diverging(ant, 1, bad=0).items()}
    rollout = engine.rollout(ant, **arguments)
    assert int(rollout.status) == 1
    with pytest.raises(DivergedError) as caught:
        engine.backward(ant, rollout, rollout.qpos)
    assert f"diverged first at step {int(rollout.diverged_step)} in environment 0" in str(caught.value)


def test_a_token_cancelled_before_stops_at_once(ant: Model) -> None:
    engine, token = Engine(threads=1), CancelToken()
    rollout = engine.rollout(ant, **_batch(ant, 2))
    token.cancel()
    with pytest.raises(Cancelled, match="rollout: stopped by its cancel token"):
        engine.rollout(ant, **_batch(ant, 2), cancel=token)
    with pytest.raises(Cancelled, match="backward: stopped by its cancel token"):
        engine.backward(ant, rollout, rollout.qpos, cancel=token)


def test_a_token_stops_a_running_call(ant: Model) -> None:
    token = CancelToken()
    arguments = _batch(ant, 8, steps=100_000)
    arguments["ctrl"][:] = 0
    timer = threading.Timer(0.05, token.cancel)
    timer.start()
    start = time.process_time()
    with pytest.raises(Cancelled):
        Engine(threads=1).rollout(ant, **arguments, cancel=token)
    # all steps take 2 s of computing; waiting for a busy machine does not count
    assert time.process_time() - start < 1.0
    timer.join()


def test_a_token_is_checked(ant: Model) -> None:
    with pytest.raises(ArgumentError, match="cancel: expected a CancelToken, got int"):
        Engine(threads=1).rollout(ant, **_batch(ant, 1), cancel=1)  # type: ignore[arg-type]


def test_results_are_read_only_and_report_their_checkpoints(ant: Model) -> None:
    rollout = Engine(threads=1).rollout(ant, **_batch(ant, 3))
    for array in (rollout.qpos, rollout.qvel, rollout.ctrl, rollout.status):
        with pytest.raises(ValueError, match="read-only"):
            array[0] = 1
    assert rollout.steps == STEPS
    states = 3 * (STEPS + 1)
    assert rollout.report == CheckpointReport(states, states * (15 + 14) * 8, 3 * STEPS)


def test_a_gradient_knows_its_names(ant: Model) -> None:
    engine = Engine(threads=1)
    rollout = engine.rollout(ant, **_batch(ant, 2))
    gradient = engine.backward(ant, rollout, rollout.qpos, wrt="ctrl")
    assert gradient.keys() == ["ctrl"] == list(gradient)
    assert gradient["ctrl"] is gradient.ctrl
    with pytest.raises(NotFoundError, match="gradient: expected a name among ctrl, got 'qpos'"):
        gradient["qpos"]
    with pytest.raises(AttributeError, match="got 'qpos'; ask for it in wrt"):
        gradient.qpos  # noqa: B018


def _loss(terms: list[dict[str, Any]]) -> Loss:
    return Loss([Term(**term) for term in terms])


def test_value_and_gradient_adds_the_losss_own_gradient_by_ctrl(ant: Model) -> None:
    engine, good = Engine(threads=1), _batch(ant, 2)
    position = {"quantity": "qpos", "target": [0.1, 0.0], "index": [0, 1]}
    effort = {"quantity": "ctrl", "weight": 0.3, "when": "running"}
    value, gradient = engine.value_and_gradient(ant, **good, loss=_loss([position, effort]))
    rollout = engine.rollout(ant, **good)
    evaluated = _loss([position, effort]).evaluate(rollout.qpos, rollout.qvel, rollout.ctrl)
    pulled = engine.backward(ant, rollout, evaluated.qpos_bar, evaluated.qvel_bar)
    assert np.array_equal(value, evaluated.value)
    assert np.array_equal(gradient.ctrl, pulled.ctrl + 0.6 * good["ctrl"])
    assert np.array_equal(gradient.qpos, pulled.qpos)
    one = engine.value_and_gradient(
        ant, **{name: array[0] for name, array in good.items()}, loss=_loss([position])
    )
    assert isinstance(one[0], float) and one[1].ctrl.shape == (STEPS, 8)


def test_value_and_gradient_marks_diverged_environments(ant: Model) -> None:
    loss = _loss([{"quantity": "qpos", "index": [0]}])
    given = _diverging(ant, 3, bad=1)
    value, gradient = Engine(threads=1).value_and_gradient(ant, **given, loss=loss)
    rollout = Engine(threads=1).rollout(ant, **given)
    assert rollout.status.tolist() == gradient.status.tolist() == [0, 1, 0]
    assert rollout.diverged_step.tolist() == gradient.diverged_step.tolist()
    assert np.isnan(value).tolist() == [False, True, False]
    assert np.isnan(gradient.ctrl[1]).all() and np.isfinite(gradient.ctrl[[0, 2]]).all()


def test_start_states_are_those_of_a_rollout() -> None:
    model = load_model("laikago")
    engine = Engine(threads=1)
    turned = model.qpos0 * np.where(np.arange(model.nq) == 3, 1.5, 1.0)
    for qpos, qvel in ((turned, model.qvel0), (np.tile(turned, (3, 1)), np.ones((3, model.nv)))):
        start = engine.start_states(model, 3, qpos, qvel)
        rollout = engine.rollout(model, qpos, qvel, np.zeros((3, 0, model.nu)))
        np.testing.assert_array_equal(start[0], rollout.qpos[:, 0])
        np.testing.assert_array_equal(start[1], rollout.qvel[:, 0])
    with pytest.raises(ArgumentError, match="qvel"):
        engine.start_states(model, 3, turned, np.zeros((2, model.nv)))

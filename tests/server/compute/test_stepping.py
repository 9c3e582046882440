"""Session states: one control held over steps, environments that diverge alone."""

from __future__ import annotations

import dataclasses

import numpy as np
import pytest

from revolute.contract.controllers import MLP, PLAIN, Control
from revolute.contract.errors import ArgumentError, CancelledError
from revolute_engine import CancelToken, Engine, Model, load_model
from revolute_server.compute import stepping
from testbed.cart import CART


@pytest.fixture(scope="module")
def model() -> Model:
    return load_model(CART)


@pytest.fixture(scope="module")
def engine() -> Engine:
    return Engine()


def test_a_start_state_is_the_models_own_or_the_one_given(engine: Engine, model: Model) -> None:
    state = stepping.start_state(engine, model, 2)
    np.testing.assert_array_equal(state.qpos, np.zeros((2, 1)))
    state = stepping.start_state(engine, model, 2, [3.0], [[1.0], [2.0]])
    np.testing.assert_array_equal(state.qpos, [[3.0], [3.0]])
    np.testing.assert_array_equal(state.qvel, [[1.0], [2.0]])
    with pytest.raises(ArgumentError, match="qpos"):
        stepping.start_state(engine, model, 2, [np.nan])
    with pytest.raises(ArgumentError, match="qvel"):
        stepping.start_state(engine, model, 2, None, np.zeros((3, 1)))


def test_a_control_is_held_for_all_steps(engine: Engine, model: Model) -> None:
    start, ctrl = stepping.start_state(engine, model, 3), np.array([[1.0], [0.3], [-2.0]])
    end = stepping.advance(engine, model, start, ctrl, 100, CancelToken())
    rollout = engine.rollout(model, start.qpos, start.qvel, np.repeat(ctrl[:, None], 100, axis=1))
    np.testing.assert_array_equal(end.qpos, rollout.final_qpos)
    np.testing.assert_array_equal(end.qvel, rollout.final_qvel)
    assert end.step_count == 100
    np.testing.assert_array_equal(start.qpos, np.zeros((3, 1)))  # as it was


def test_steps_end_when_nobody_is_left(engine: Engine) -> None:
    stiff = load_model(
        CART.replace('type="slide"', 'type="slide" stiffness="1e9"').replace('"0.001"', '"10"')
    )
    start = stepping.start_state(engine, stiff, 2, [1.0])
    end = stepping.advance(engine, stiff, start, np.zeros(1), 10**15, CancelToken())
    assert end.status.tolist() == [1, 1] and np.isnan(end.qpos).all() and end.step_count == 10**15


def test_an_environment_that_diverges_is_marked_and_disturbs_nobody(engine: Engine) -> None:
    stiff = load_model(
        CART.replace('type="slide"', 'type="slide" stiffness="1e9"').replace('"0.001"', '"10"')
    )
    start = stepping.start_state(engine, stiff, 3, [[0.0], [1.0], [0.0]])
    state = stepping.advance(engine, stiff, start, np.zeros(1), 200, CancelToken())
    np.testing.assert_array_equal(state.status, [0, 1, 0])
    assert np.isnan(state.qpos[1]).all()
    np.testing.assert_array_equal(state.qpos[[0, 2]], np.zeros((2, 1)))
    later = stepping.advance(engine, stiff, state, np.zeros(1), 5, CancelToken())
    np.testing.assert_array_equal(later.status, [0, 1, 0])
    assert np.isnan(later.qpos[1]).all()
    assert later.step_count == 205


def test_the_state_before_is_never_changed(engine: Engine, model: Model) -> None:
    start = stepping.start_state(engine, model, 1)
    stepping.advance(engine, model, start, np.ones(1), 10, CancelToken())
    assert start.step_count == 0
    np.testing.assert_array_equal(start.qpos, [[0.0]])


@pytest.mark.parametrize("shape", [(2,), (3, 1), (1, 2), (2, 1, 2), (3, 1, 1)])
def test_controls_of_another_shape_are_refused(engine: Engine, model: Model, shape: tuple[int, ...]) -> None:
    start = stepping.start_state(engine, model, 2)
    with pytest.raises(ArgumentError, match=r"ctrl: expected shape \[batch=2, nu=1\]"):
        stepping.advance(engine, model, start, np.zeros(shape), 1, CancelToken())


def test_a_cancelled_token_stops_a_long_step(engine: Engine, model: Model) -> None:
    token = CancelToken()
    token.cancel()
    with pytest.raises(CancelledError):
        stepping.advance(engine, model, stepping.start_state(engine, model, 1), np.ones(1), 10**9, token)


def test_sessions_advanced_together_are_advanced_as_alone(engine: Engine) -> None:
    laikago = load_model("laikago", timestep=2e-3)
    random = np.random.default_rng(0)
    ctrl = [np.tile([0.0, 0.1, -0.8], 4) + random.normal(0, 0.05, shape) for shape in (12, (2, 12), 12)]
    before = [stepping.start_state(engine, laikago, batch) for batch in (1, 2, 1)]
    before[2] = stepping.advance(engine, laikago, before[2], ctrl[2], 5, CancelToken())
    before[1] = dataclasses.replace(before[1], qvel=before[1].qvel + np.array([[0.0], [1e200]]))
    calls = [stepping.StepCall(state, held, 30) for state, held in zip(before, ctrl, strict=True)]
    wrong = stepping.StepCall(before[0], np.zeros(11), 30)
    *found, refused = stepping.advance_together(engine, laikago, [*calls, wrong], CancelToken())
    assert isinstance(refused, ArgumentError) and refused.argument == "ctrl"
    for state, call in zip(found, calls, strict=True):
        alone = stepping.advance(engine, laikago, call.state, call.ctrl, 30, CancelToken())
        assert isinstance(state, stepping.State)
        for name in ("qpos", "qvel", "status"):
            np.testing.assert_array_equal(getattr(state, name), getattr(alone, name), strict=True)
        assert (state.step_count, state.time) == (alone.step_count, alone.time)
    assert found[1].status.tolist() == [0, 1]


def test_a_count_of_steps_stays_one_that_can_be_sent(engine: Engine, model: Model) -> None:
    """A larger one would be a fault in every answer that has it, from then on."""
    start = stepping.start_state(engine, model, 1)
    late = stepping.changed_state(engine, model, start, None, None, 2**63 - 3)
    last = stepping.advance(engine, model, late, np.ones(1), 2, CancelToken())
    assert last.step_count == 2**63 - 1
    with pytest.raises(ArgumentError, match="step_count: expected a number of steps from 0 to") as refused:
        stepping.changed_state(engine, model, start, None, None, 2**63)
    assert refused.value.argument == "step_count"
    with pytest.raises(ArgumentError, match="steps: expected at most 2 more after the session's") as refused:
        stepping.advance(engine, model, late, np.ones(1), 3, CancelToken())
    assert refused.value.argument == "steps"
    calls = [stepping.StepCall(state, np.ones(1), 3) for state in (start, late)]
    first, second = stepping.advance_together(engine, model, calls, CancelToken())
    assert isinstance(first, stepping.State) and first.step_count == 3
    assert isinstance(second, ArgumentError) and second.argument == "steps"


@pytest.mark.parametrize("constant", [True, False])
def test_steps_in_parts_are_those_of_one_rollout(
    engine: Engine, monkeypatch: pytest.MonkeyPatch, constant: bool
) -> None:
    """Long steps are rollouts in parts; an environment that diverges in an early one stays so."""
    ant = load_model("ant", contact_model="hard")
    random = np.random.default_rng(0)
    start = stepping.start_state(engine, ant, 3)
    start = dataclasses.replace(start, qvel=start.qvel + np.array([[0.0], [1e200], [0.1]]))
    ctrl = 0.1 * random.normal(size=(3, 6, ant.nu))
    weights = [0.1 * random.normal(size=(ant.nu, ant.nv + ant.nu)), np.zeros(ant.nu)]
    policy = MLP(weights, ["qvel", "previous_ctrl"])
    params = {"body_mass": ant.body_mass * random.uniform(0.9, 1.1, (3, 1))}
    start = dataclasses.replace(start, params=params)
    control = PLAIN if constant else Control(hold=2, policy=policy)
    given = ctrl[:, 0] if constant else ctrl
    whole = stepping.advance(engine, ant, start, given, 12, CancelToken(), {}, control)
    monkeypatch.setattr(stepping, "_CONTROLS", 4 * ctrl[:, 0].size)
    monkeypatch.setattr(stepping, "_HELD", 5)
    parts = stepping.advance(engine, ant, start, given, 12, CancelToken(), {}, control)
    rows = np.repeat(ctrl[:, :1], 6, axis=1) if constant else ctrl
    rollout = engine.rollout(
        ant, start.qpos, start.qvel, rows, control=dataclasses.replace(control, hold=2), params=params
    )
    for found in (whole, parts):
        np.testing.assert_array_equal(found.qpos[[0, 2]], rollout.final_qpos[[0, 2]])
        np.testing.assert_array_equal(found.ctrl[[0, 2]], rollout.ctrl[[0, 2], -1])
        assert found.status.tolist() == [0, 1, 0] and np.isnan(found.qpos[1]).all()
        assert np.isnan(found.qvel[1]).all() and not found.ctrl[1].any()

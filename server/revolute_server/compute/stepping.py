"""Pure functions that start and advance the state of a session; they run on an engine worker."""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence
from typing import Any

import numpy as np

from revolute.contract.arrays import Float64Array, as_float64
from revolute.contract.errors import ArgumentError, DivergedError, RevoluteError
from revolute_engine import CancelToken, Engine, Model, StepJacobian, native

MOST_STEPS = 2**63 - 1
"""Largest number of steps since a reset; it is sent as int64."""


@dataclasses.dataclass(frozen=True)
class State:
    """The state of all environments of a session.

    Attributes:
        qpos: [batch, nq]; NaN for an environment that diverged.
        qvel: [batch, nv]; NaN for an environment that diverged.
        step_count: steps taken since the last reset.
        time: seconds since the last reset, step_count times the model's timestep.
        status: [batch] int32, 0 running, 1 diverged since the last reset.
    """

    qpos: Float64Array
    qvel: Float64Array
    step_count: int
    time: float
    status: np.ndarray


def start_state(engine: Engine, model: Model, batch: int, qpos: Any = None, qvel: Any = None) -> State:
    """Return a state at time zero.

    Args:
        engine: checks the state against the model.
        model: the model.
        batch: number of environments.
        qpos: [batch, nq], or [nq] for all; the model's own when None.
        qvel: [batch, nv], or [nv] for all; the model's own when None.

    Raises:
        ArgumentError: the state does not fit the model.
    """
    given = model.qpos0 if qpos is None else qpos, model.qvel0 if qvel is None else qvel
    # no copy: the arrays of a request have no other user
    start = engine.start_states(model, batch, *given, own=False)
    return State(*start, 0, 0.0, np.zeros(batch, np.int32))


def changed_state(
    engine: Engine, model: Model, state: State, qpos: Any, qvel: Any, step_count: int | None
) -> State:
    """Return a state with some of it replaced.

    Args:
        engine: checks the state against the model.
        model: the model.
        state: the state before.
        qpos: [batch, nq], or [nq] for all; unchanged if None.
        qvel: [batch, nv], or [nv] for all; unchanged if None.
        step_count: steps since the last reset; unchanged if None.

    Returns:
        The state; if both `qpos` and `qvel` are given, diverged environments run again.

    Raises:
        ArgumentError: the state does not fit the model, or `step_count` is out of range.
    """
    if step_count is not None and not 0 <= step_count <= MOST_STEPS:
        raise ArgumentError.expected("step_count", f"a number of steps from 0 to {MOST_STEPS}", step_count)
    count = state.step_count if step_count is None else step_count
    batch = len(state.status)
    start = start_state(engine, model, batch, qpos, qvel)
    whole = qpos is not None and qvel is not None
    status = np.zeros(batch, np.int32) if whole else state.status

    def marked(given: Float64Array) -> Float64Array:
        return np.where((status != 0)[:, None], np.nan, given) if status.any() else given

    return State(
        qpos=state.qpos if qpos is None else marked(start.qpos),
        qvel=state.qvel if qvel is None else marked(start.qvel),
        step_count=count,
        time=count * model.timestep,
        status=status,
    )


def advance(engine: Engine, model: Model, state: State, ctrl: Any, steps: int, cancel: CancelToken) -> State:
    """Return the state after a number of steps with constant controls.

    Args:
        engine: takes the steps.
        model: the model.
        state: the state before.
        ctrl: [batch, nu], or [nu] for all environments.
        steps: number of steps; zero returns the state unchanged.
        cancel: stops the engine within one step.

    Raises:
        ArgumentError: the controls do not fit the model, or `steps` is negative or exceeds `MOST_STEPS` in
            total.
    """
    _check_steps(state, steps)
    controls = _checked_control(model, len(state.status), ctrl)
    status, qpos, qvel = state.status, state.qpos, state.qvel
    if steps and np.count_nonzero(status) < len(status):
        start = _without_diverged(model, status, qpos, qvel)
        qpos, qvel, now_diverged = engine.advance(model, *start, controls, steps, cancel=cancel)
        status = status | now_diverged
    if np.count_nonzero(status):
        diverged = (status != 0)[:, None]
        qpos, qvel = np.where(diverged, np.nan, qpos), np.where(diverged, np.nan, qvel)
    return _stepped(model, state, steps, qpos, qvel, status)


@dataclasses.dataclass(frozen=True)
class StepCall:
    """The arguments of one `advance`."""

    state: State
    ctrl: Any
    steps: int


def advance_together(
    engine: Engine, model: Model, calls: Sequence[StepCall], cancel: CancelToken
) -> list[State | RevoluteError]:
    """Advance several sessions in one call of the engine.

    Args:
        engine: takes the steps.
        model: the model of all calls.
        calls: the calls; all take the same number of steps.
        cancel: stops the engine within one step.

    Returns:
        For each call the state that `advance` returns, bit for bit, or the error that it raises.
    """
    controls = [_control_or_error(model, call) for call in calls]
    good = [
        (call.state, ctrl)
        for call, ctrl in zip(calls, controls, strict=True)
        if not isinstance(ctrl, RevoluteError)
    ]
    if not good:
        return [error for error in controls if isinstance(error, RevoluteError)]
    merged = State(
        qpos=np.concatenate([state.qpos for state, _ in good]),
        qvel=np.concatenate([state.qvel for state, _ in good]),
        step_count=0,
        time=0.0,
        status=np.concatenate([state.status for state, _ in good]),
    )
    steps = calls[0].steps
    after = advance(engine, model, merged, np.concatenate([ctrl for _, ctrl in good]), steps, cancel)
    results: list[State | RevoluteError] = []
    first = 0
    for call, ctrl in zip(calls, controls, strict=True):
        if isinstance(ctrl, RevoluteError):
            results.append(ctrl)
            continue
        rows = slice(first, first + len(ctrl))
        first += len(ctrl)
        qpos, qvel, status = (np.array(part[rows]) for part in (after.qpos, after.qvel, after.status))
        results.append(_stepped(model, call.state, steps, qpos, qvel, status))
    return results


def jacobian(engine: Engine, model: Model, state: State, ctrl: Any, cancel: CancelToken) -> StepJacobian:
    """Return the derivative of one step from a state, which is not changed.

    Args:
        engine: differentiates the step.
        model: the model.
        state: the state before the step.
        ctrl: [batch, nu], or [nu] for all environments.
        cancel: stops the engine.

    Returns:
        The matrices of each environment; NaN if it diverged before or in this step.

    Raises:
        ArgumentError: the controls do not fit the model.
        DivergedError: all environments have diverged.
    """
    batch = len(state.status)
    controls = _checked_control(model, batch, ctrl)
    running = (state.status == 0)[:, None, None]
    start = _without_diverged(model, state.status, state.qpos, state.qvel)
    found = engine.jacobian(model, *start, controls, cancel=cancel)
    by_state, by_ctrl = (np.where(running, matrix, np.nan) for matrix in (found.A, found.B))
    if not (running[:, 0, 0] & np.isfinite(by_state).all(axis=(1, 2))).any():
        raise DivergedError.expected(
            "session",
            "at least one environment that has not diverged",
            f"none of {batch}",
            advice="reset it",
        )
    return StepJacobian(by_state, by_ctrl)


def jacobian_bytes(model: Model, batch: int) -> int:
    """Return the bytes of the derivatives of a step by state and controls."""
    return 8 * batch * 2 * model.nv * (2 * model.nv + model.nu)


def _stepped(
    model: Model, before: State, steps: int, qpos: Float64Array, qvel: Float64Array, status: np.ndarray
) -> State:
    """Return the state after `steps` more steps, with step count and time advanced."""
    step_count = before.step_count + steps
    return State(qpos, qvel, step_count, step_count * model.timestep, status)


def _check_steps(state: State, steps: int) -> None:
    if steps < 0:
        raise ArgumentError.expected("steps", "zero or a positive number of steps", steps)
    most = MOST_STEPS - state.step_count
    if steps > most:
        raise ArgumentError.expected(
            "steps",
            f"at most {most} more after the session's {state.step_count}",
            steps,
            advice="reset the session",
        )


def _control_or_error(model: Model, call: StepCall) -> Float64Array | RevoluteError:
    try:
        _check_steps(call.state, call.steps)
        return _checked_control(model, len(call.state.status), call.ctrl)
    except RevoluteError as error:
        return error


def _without_diverged(
    model: Model, status: np.ndarray, qpos: Float64Array, qvel: Float64Array
) -> tuple[Float64Array, Float64Array]:
    """Replace the state of diverged environments by the model's default, so that they stay finite."""
    if not np.count_nonzero(status):
        return qpos, qvel
    diverged = (status != 0)[:, None]
    return np.where(diverged, model.qpos0, qpos), np.where(diverged, model.qvel0, qvel)


def _checked_control(model: Model, batch: int, ctrl: Any) -> Float64Array:
    """Return the controls as [batch, nu]."""
    array = as_float64("ctrl", ctrl)
    if array.shape not in ((batch, model.nu), (model.nu,)):
        raise ArgumentError.expected(
            "ctrl",
            f"shape [batch={batch}, nu={model.nu}] or [nu={model.nu}]",
            list(array.shape),
            advice=f"model '{model.name}' has {model.nu} actuators and this session {batch} environments",
        )
    if not native.all_finite(array):
        bad = np.argwhere(~np.isfinite(array))[0]
        raise ArgumentError.expected("ctrl", "finite values", array[tuple(bad)], at=str(bad.tolist()))
    return array if array.ndim == 2 else array[None].repeat(batch, 0)

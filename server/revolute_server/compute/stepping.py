"""Pure functions that start and advance the state of a session; they run on an engine worker."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping, Sequence
from types import MappingProxyType
from typing import Any

import numpy as np

from revolute.contract.arrays import Float64Array, as_float64
from revolute.contract.controllers import MOCAP_INPUTS, Control
from revolute.contract.errors import ArgumentError, DivergedError, RevoluteError
from revolute_engine import Advance, CancelToken, Engine, Model, StepJacobian, native
from revolute_engine.parameters import check_params
from revolute_engine.step_inputs import input_shape, step_inputs

_CONTROLS = 2**20
"""Largest number of controls of a part of a session's steps with parameters."""

MOST_STEPS = 2**63 - 1
"""Largest number of steps since a reset; it is sent as int64."""


@dataclasses.dataclass(frozen=True)
class State:
    """The state of all environments of a session.

    Attributes:
        qpos: [batch, nq]; NaN for an environment that diverged.
        qvel: [batch, nv]; NaN for an environment that diverged.
        step_count: largest of step_counts.
        time: seconds, step_count times the model's timestep.
        status: [batch] int32, 0 running, 1 diverged since the last reset.
        step_counts: [batch] int64, steps of each environment since its last reset.
        params: parameters of the session's model by name; others have the model's values.
        unsettled_step: [batch] int64, number since its last reset of an environment's first step whose
            constraints the solver did not settle, or -1.
        residual: [batch], largest violation that the solver left since the last reset.
        mocap: mocap_pos [batch, nmocap, 3] and mocap_quat [batch, nmocap, 4] of models with mocap bodies.
    """

    qpos: Float64Array
    qvel: Float64Array
    step_count: int
    time: float
    status: np.ndarray
    step_counts: np.ndarray
    params: Mapping[str, Float64Array] = dataclasses.field(default_factory=dict)
    unsettled_step: np.ndarray = dataclasses.field(default_factory=lambda: np.empty(0))
    residual: Float64Array = dataclasses.field(default_factory=lambda: np.empty(0))
    mocap: Mapping[str, Float64Array] = dataclasses.field(default_factory=dict)

    def __post_init__(self) -> None:
        # a new state, and one that an earlier release stored
        if len(self.residual) != len(self.status):
            object.__setattr__(self, "unsettled_step", np.full(len(self.status), -1))
            object.__setattr__(self, "residual", np.zeros(len(self.status)))


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
    mocap = {name: np.repeat(getattr(model, name)[None], batch, axis=0) for name in _mocap_of(model)}
    return State(*start, 0, 0.0, np.zeros(batch, np.int32), np.zeros(batch, np.int64), mocap=mocap)


def _mocap_of(model: Model) -> tuple[str, ...]:
    return MOCAP_INPUTS if model.nmocap else ()


def _changed_mocap(
    model: Model, mocap: Mapping[str, Float64Array], given: Mapping[str, Any], batch: int
) -> Mapping[str, Float64Array]:
    """Return poses of mocap bodies with those that are given in their place.

    Raises:
        ArgumentError: a shape or a number is wrong, or the model has no mocap bodies.
    """
    if not given:
        return mocap
    rows = step_inputs(model, given, batch, True)
    shaped = {name: array.reshape(batch, *input_shape(model, name)) for name, array in rows.items()}
    return {**mocap, **shaped}


def reset_state(
    engine: Engine,
    model: Model,
    state: State,
    qpos: Any,
    qvel: Any,
    where: Any,
    mocap: Mapping[str, Any] = MappingProxyType({}),
) -> State:
    """Return a state with some environments at time zero; all parameters stay.

    Args:
        engine: checks the state against the model.
        model: the model.
        state: the state before.
        qpos: [batch, nq], or [nq] for all; the model's own if None.
        qvel: [batch, nv], or [nv] for all; the model's own if None.
        where: [batch] of booleans or of 0 and 1, the environments to reset; None for all.
        mocap: of `MOCAP_INPUTS` by name, each with a row per environment or for all; others are the model's.

    Raises:
        ArgumentError: the state or the mask does not fit.
    """
    batch = len(state.status)
    start = start_state(engine, model, batch, qpos, qvel)
    start = dataclasses.replace(start, mocap=_changed_mocap(model, start.mocap, mocap, batch))
    if where is None:
        return dataclasses.replace(start, params=state.params)
    mask = _checked_mask(where, len(state.status))
    rows = mask[:, None]
    counts = np.where(mask, 0, state.step_counts)
    return _counted(
        model,
        qpos=np.where(rows, start.qpos, state.qpos),
        qvel=np.where(rows, start.qvel, state.qvel),
        status=np.where(mask, np.int32(0), state.status),
        step_counts=counts,
        params=state.params,
        unsettled_step=np.where(mask, -1, state.unsettled_step),
        residual=np.where(mask, 0.0, state.residual),
        mocap={name: np.where(rows[..., None], start.mocap[name], state.mocap[name]) for name in state.mocap},
    )


def _checked_mask(where: Any, batch: int) -> np.ndarray:
    mask = np.asarray(where)
    if mask.shape != (batch,) or not np.isin(mask, (0, 1)).all():
        shown = list(mask.shape) if mask.shape != (batch,) else "other values"
        raise ArgumentError.expected("where", f"[batch={batch}] of True and False", shown)
    return mask.astype(bool)


def changed_params(model: Model, state: State, params: Mapping[str, Any]) -> State:
    """Return a state whose later steps have other parameters.

    Args:
        model: the model.
        state: the state before.
        params: values by name, each for all environments or with a leading batch axis.

    Raises:
        ArgumentError: a parameter does not fit the model.
    """
    return dataclasses.replace(state, params=check_params(model, params, len(state.status), True))


def changed_state(
    engine: Engine,
    model: Model,
    state: State,
    qpos: Any,
    qvel: Any,
    step_count: int | None,
    step_counts: Any = None,
    mocap: Mapping[str, Any] = MappingProxyType({}),
) -> State:
    """Return a state with some of it replaced.

    Args:
        engine: checks the state against the model.
        model: the model.
        state: the state before.
        qpos: [batch, nq], or [nq] for all; unchanged if None.
        qvel: [batch, nv], or [nv] for all; unchanged if None.
        step_count: steps of all environments since the last reset; unchanged if None.
        step_counts: [batch], in place of `step_count`; unchanged if None.
        mocap: of `MOCAP_INPUTS` by name, each with a row per environment or for all; others are unchanged.

    Returns:
        The state; if both `qpos` and `qvel` are given, diverged environments run again.

    Raises:
        ArgumentError: the state does not fit the model, or `step_count` is out of range.
    """
    if step_count is not None and not 0 <= step_count <= MOST_STEPS:
        raise ArgumentError.expected("step_count", f"a number of steps from 0 to {MOST_STEPS}", step_count)
    batch = len(state.status)
    counts = _checked_counts(state, step_count, step_counts)
    start = start_state(engine, model, batch, qpos, qvel)
    whole = qpos is not None and qvel is not None
    status = np.zeros(batch, np.int32) if whole else state.status

    def marked(given: Float64Array) -> Float64Array:
        return np.where((status != 0)[:, None], np.nan, given) if status.any() else given

    return _counted(
        model,
        qpos=state.qpos if qpos is None else marked(start.qpos),
        qvel=state.qvel if qvel is None else marked(start.qvel),
        status=status,
        step_counts=counts,
        params=state.params,
        unsettled_step=start.unsettled_step if whole else state.unsettled_step,
        residual=start.residual if whole else state.residual,
        mocap=_changed_mocap(model, state.mocap, mocap, batch),
    )


def _checked_counts(state: State, step_count: int | None, step_counts: Any) -> np.ndarray:
    if step_counts is None:
        return state.step_counts if step_count is None else np.full(len(state.status), step_count)
    if step_count is not None:
        raise ArgumentError.expected("step_counts", "nothing beside step_count", "both")
    counts = np.asarray(step_counts)
    if counts.dtype.kind == "f" and np.array_equal(counts, np.trunc(counts)) and _in_range(counts):
        counts = counts.astype(np.int64)
    if counts.shape != state.status.shape or counts.dtype.kind not in "iu" or not _in_range(counts):
        shown = list(counts.shape) if counts.shape != state.status.shape else "other values"
        expected = f"[batch={len(state.status)}] of numbers of steps from 0"
        raise ArgumentError.expected("step_counts", expected, shown)
    return counts.astype(np.int64)


def _in_range(counts: np.ndarray) -> bool:
    return bool((counts >= 0).all() and (counts <= MOST_STEPS).all())


def advance(
    engine: Engine,
    model: Model,
    state: State,
    ctrl: Any,
    steps: int,
    cancel: CancelToken,
    inputs: Mapping[str, Any] = MappingProxyType({}),
) -> State:
    """Return the state after a number of steps with constant controls.

    Args:
        engine: takes the steps.
        model: the model.
        state: the state before.
        ctrl: [batch, nu], or [nu] for all environments.
        steps: number of steps; zero only moves mocap bodies.
        cancel: stops the engine within one step.
        inputs: of `STEP_INPUTS` by name, each with a row per environment or for all. Mocap bodies stay where
            they are put.

    Raises:
        ArgumentError: the controls or inputs do not fit the model, or `steps` is negative or exceeds
            `MOST_STEPS` in total.
    """
    _check_steps(state, steps)
    batch = len(state.status)
    controls = _checked_control(model, batch, ctrl)
    if inputs:
        mocap = {name: inputs[name] for name in MOCAP_INPUTS if name in inputs}
        state = dataclasses.replace(state, mocap=_changed_mocap(model, state.mocap, mocap, batch))
    diverged = state.status != 0
    if not steps or diverged.all():
        return _stepped(model, state, steps, _unmoved(state))
    start = _without_diverged(model, state.status, state.qpos, state.qvel)
    end = _advanced(engine, model, start, controls, steps, state.params, {**inputs, **state.mocap}, cancel)
    if np.count_nonzero(diverged):
        # what diverged before stays NaN and is not judged
        rows = diverged[:, None]
        end = Advance(
            np.where(rows, np.nan, end.qpos),
            np.where(rows, np.nan, end.qvel),
            state.status | end.status,
            np.where(diverged, -1, end.unsettled_step),
            np.where(diverged, 0.0, end.residual),
        )
    return _stepped(model, state, steps, end)


def _unmoved(state: State) -> Advance:
    """Return the end of no steps."""
    batch = len(state.status)
    return Advance(state.qpos, state.qvel, state.status, np.full(batch, -1), np.zeros(batch))


@dataclasses.dataclass(frozen=True)
class StepCall:
    """The arguments of one `advance`."""

    state: State
    ctrl: Any
    steps: int
    inputs: Mapping[str, Any] = dataclasses.field(default_factory=dict)


def advance_together(
    engine: Engine, model: Model, calls: Sequence[StepCall], cancel: CancelToken
) -> list[State | RevoluteError]:
    """Advance several sessions in one call of the engine.

    Args:
        engine: takes the steps.
        model: the model of all calls.
        calls: the calls; all take the same number of steps, and have no inputs.
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
    size = sum(len(ctrl) for _, ctrl in good)
    merged = State(
        qpos=np.concatenate([state.qpos for state, _ in good]),
        qvel=np.concatenate([state.qvel for state, _ in good]),
        step_count=0,
        time=0.0,
        status=np.concatenate([state.status for state, _ in good]),
        step_counts=np.zeros(size, np.int64),
        mocap={name: np.concatenate([state.mocap[name] for state, _ in good]) for name in good[0][0].mocap},
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
        parts = (after.qpos, after.qvel, after.status, after.unsettled_step, after.residual)
        results.append(_stepped(model, call.state, steps, Advance(*(np.array(part[rows]) for part in parts))))
    return results


def jacobian(
    engine: Engine,
    model: Model,
    state: State,
    ctrl: Any,
    cancel: CancelToken,
    inputs: Mapping[str, Any] = MappingProxyType({}),
) -> StepJacobian:
    """Return the derivative of one step from a state, which is not changed.

    Args:
        engine: differentiates the step.
        model: the model.
        state: the state before the step.
        ctrl: [batch, nu], or [nu] for all environments.
        cancel: stops the engine.
        inputs: of `STEP_INPUTS` by name, each with a row per environment or for all.

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
    found = engine.jacobian(
        model,
        *start,
        controls,
        params=dict(state.params) or None,
        inputs={**state.mocap, **inputs},
        cancel=cancel,
    )
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
    size = model.nv + model.nqvel
    return 8 * batch * size * (size + model.nu)


def _stepped(model: Model, before: State, steps: int, end: Advance) -> State:
    """Return the state after `steps` more steps, with step counts and time advanced."""
    unsettled = before.unsettled_step
    if np.count_nonzero(end.unsettled_step >= 0):
        first = np.where(end.unsettled_step >= 0, before.step_counts + end.unsettled_step, -1)
        unsettled = np.where(unsettled >= 0, unsettled, first)
    return _counted(
        model,
        qpos=end.qpos,
        qvel=end.qvel,
        status=end.status,
        step_counts=before.step_counts + steps,
        params=before.params,
        unsettled_step=unsettled,
        residual=np.maximum(before.residual, end.residual),
        mocap=before.mocap,
    )


def _counted(model: Model, *, step_counts: np.ndarray, **fields: Any) -> State:
    """Return a state with the step count and the time that follow from the environments' counts."""
    count = int(step_counts.max())
    return State(step_count=count, time=count * model.timestep, step_counts=step_counts, **fields)


def _advanced(
    engine: Engine,
    model: Model,
    start: tuple[Float64Array, Float64Array],
    ctrl: Float64Array,
    steps: int,
    params: Mapping[str, Float64Array],
    inputs: Mapping[str, Any],
    cancel: CancelToken,
) -> Advance:
    """Return the end of some steps with constant controls."""
    if not params:
        return engine.advance(model, *start, ctrl, steps, inputs=inputs, cancel=cancel)
    control = Control.of(
        **{
            name: array.reshape(len(ctrl), 1, *input_shape(model, name))
            for name, array in step_inputs(model, inputs, len(ctrl), True).items()
        }
    )
    status = np.zeros(len(ctrl), np.int32)
    unsettled, residual = np.full(len(ctrl), -1), np.zeros(len(ctrl))
    # in parts, because a rollout has the controls of each step
    most = max(1, _CONTROLS // max(1, ctrl.size))
    for first in range(0, steps, most):
        held = np.repeat(ctrl[:, None], min(most, steps - first), axis=1)
        start = _without_diverged(model, status, *start)
        found = engine.rollout(
            model,
            *start,
            held,
            control=control,
            params=dict(params),
            checkpoints="none",
            states="final",
            cancel=cancel,
        )
        assert found.unsettled_step is not None and found.residual is not None
        judged = (status == 0) & (unsettled < 0) & (found.unsettled_step >= 0)
        unsettled = np.where(judged, first + found.unsettled_step, unsettled)
        residual = np.where(status == 0, np.maximum(residual, found.residual), residual)
        start, status = (found.final_qpos, found.final_qvel), status | found.status
    return Advance(*start, status, unsettled, residual)


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
    if array.shape not in ((batch, model.nu), (1, model.nu), (model.nu,)):
        raise ArgumentError.expected(
            "ctrl",
            f"shape [batch={batch}, nu={model.nu}] or [nu={model.nu}]",
            list(array.shape),
            advice=f"model '{model.name}' has {model.nu} actuators and this session {batch} environments",
        )
    if not native.all_finite(array):
        bad = np.argwhere(~np.isfinite(array))[0]
        raise ArgumentError.expected("ctrl", "finite values", array[tuple(bad)], at=str(bad.tolist()))
    return array if array.shape[:-1] == (batch,) else np.repeat(array.reshape(1, model.nu), batch, axis=0)

"""Pure functions that start and advance the state of a session; they run on an engine worker."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterable, Iterator, Mapping, Sequence
from types import MappingProxyType
from typing import Any, NamedTuple

import numpy as np

from revolute.contract.arrays import Float64Array, as_float64
from revolute.contract.controllers import MOCAP_INPUTS, PLAIN, Control
from revolute.contract.errors import ArgumentError, DivergedError, RevoluteError
from revolute_engine import Advance, CancelToken, Engine, Model, StepJacobian, native
from revolute_engine.parameters import check_finite, check_params
from revolute_engine.segments import check_control, periods_of
from revolute_engine.step_inputs import input_shape, step_inputs

_CONTROLS = 2**20
"""Largest number of controls of a part of a session's steps with a controller."""

_HELD = 2**30
"""Largest number of steps that a rollout holds a control for."""

_FEW = 1024
"""So many environments fit into memory; the engine checks whether more do."""

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
        ctrl: controls that acted last, [batch, nu], with the part of a controller; zero after a reset and for
            an environment that diverged. None in records of an earlier release, which means zero.
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
    ctrl: Float64Array | None = None

    def __post_init__(self) -> None:
        # a new state, and one that an earlier release stored
        if len(self.residual) != len(self.status):
            object.__setattr__(self, "unsettled_step", np.full(len(self.status), -1))
            object.__setattr__(self, "residual", np.zeros(len(self.status)))


def start_state(
    engine: Engine,
    model: Model,
    batch: int,
    qpos: Any = None,
    qvel: Any = None,
    *,
    mocap: Mapping[str, Any] = MappingProxyType({}),
    params: Mapping[str, Float64Array] = MappingProxyType({}),
) -> State:
    """Return a state at time zero.

    Args:
        engine: checks the state against the model.
        model: the model.
        batch: number of environments.
        qpos: [batch, nq], or [nq] for all; the model's own when None.
        qvel: [batch, nv], or [nv] for all; the model's own when None.
        mocap: of `MOCAP_INPUTS` by name, each with a row per environment or for all; others are the model's.
        params: checked parameters of the session's model.

    Raises:
        ArgumentError: the state does not fit the model.
    """
    if qpos is None and qvel is None and batch <= _FEW:
        # the model's own state needs no check
        start = _rows(model.qpos0, batch), _rows(model.qvel0, batch)
    else:
        given = model.qpos0 if qpos is None else qpos, model.qvel0 if qvel is None else qvel
        # no copy: the arrays of a request have no other user
        start = engine.start_states(model, batch, *given, own=False)
    rest = {name: _rows(getattr(model, name), batch) for name in _mocap_of(model)}
    return State(
        *start,
        step_count=0,
        time=0.0,
        status=np.zeros(batch, np.int32),
        step_counts=np.zeros(batch, np.int64),
        params=params,
        mocap=_changed_mocap(model, rest, mocap, batch),
        ctrl=np.zeros((batch, model.nu)),
    )


def _mocap_of(model: Model) -> tuple[str, ...]:
    return MOCAP_INPUTS if model.nmocap else ()


def _rows(row: Float64Array, batch: int) -> Float64Array:
    """Return the same row for each environment; a single one shares memory with `row`."""
    return row[None] if batch == 1 else np.repeat(row[None], batch, axis=0)


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
    start = start_state(engine, model, batch, qpos, qvel, mocap=mocap, params=state.params)
    if where is None:
        return start
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
        ctrl=None if state.ctrl is None else np.where(rows, 0.0, state.ctrl),
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
    ctrl: Any = None,
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
        ctrl: controls that acted last, [batch, nu], or [nu] for all; unchanged if None.

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
        ctrl=state.ctrl if ctrl is None else _checked_control(model, batch, ctrl),
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


def total_steps(ctrl: np.ndarray, steps: int | None, hold: int) -> int:
    """Return the number of steps of a call.

    Args:
        ctrl: controls, as of `advance`.
        steps: number of steps; None for one row of ctrl after the other.
        hold: steps that each row acts for.
    """
    if steps is not None:
        return steps
    return hold * (ctrl.shape[1] if ctrl.ndim == 3 else 1)


def advance(
    engine: Engine,
    model: Model,
    state: State,
    ctrl: Any,
    steps: int,
    cancel: CancelToken,
    inputs: Mapping[str, Any] = MappingProxyType({}),
    control: Control = PLAIN,
) -> State:
    """Return the state after a number of steps.

    Args:
        engine: takes the steps.
        model: the model.
        state: the state before.
        ctrl: controls of all steps, [batch, nu], or [nu] for all environments; or [batch, periods, nu], each
            row for `control.hold` steps.
        steps: number of steps; zero only moves mocap bodies.
        cancel: stops the engine within one step.
        inputs: of `STEP_INPUTS` by name, each with a row per environment or for all, or with a row per period
            [batch, periods, …]. Mocap bodies stay where they are put.
        control: hold and controller; its arrays have a row per period, as in a rollout.

    Raises:
        ArgumentError: the controls, inputs or controller do not fit the model, or `steps` is negative,
            exceeds `MOST_STEPS` in total, or does not fit the periods.
    """
    _check_steps(state, steps)
    batch = len(state.status)
    given = as_float64("ctrl", ctrl)
    periods = _checked_periods(given, steps, control.hold)
    controls = _checked_control(model, batch, given, periods)
    varying = control.has_controller or controls.ndim == 3
    if inputs:
        inputs = _checked_inputs(model, inputs, batch, periods)
        state = dataclasses.replace(state, mocap=_moved_mocap(state.mocap, inputs))
        varying = varying or any(each.shape[1] > 1 for each in inputs.values())
    gone = int(np.count_nonzero(state.status))
    if not steps or gone == batch:
        check_control(model, dataclasses.replace(control, previous_ctrl=state.ctrl), batch, periods)
        return _stepped(model, state, steps, _unmoved(state), state.ctrl)
    if varying or state.params:
        parts = _parts(batch, model.nu, periods, control.hold) if varying else _constant_parts(steps)
        return _stepped(
            model, state, steps, *_by_rollouts(engine, model, state, controls, parts, inputs, control, cancel)
        )
    start = state.qpos, state.qvel
    if gone:
        start = _without_diverged(model, state.status, *start)
    held = {**{name: rows[:, 0] for name, rows in inputs.items()}, **state.mocap} if inputs else state.mocap
    end = engine.advance(model, *start, controls, steps, inputs=held, cancel=cancel)
    if gone:
        # what diverged before stays NaN and is not judged
        diverged = state.status != 0
        rows = diverged[:, None]
        end = Advance(
            np.where(rows, np.nan, end.qpos),
            np.where(rows, np.nan, end.qvel),
            state.status | end.status,
            np.where(diverged, -1, end.unsettled_step),
            np.where(diverged, 0.0, end.residual),
        )
    return _stepped(model, state, steps, end, controls)


def _checked_periods(ctrl: np.ndarray, steps: int, hold: int) -> int:
    """Return the number of rows of controls that act in some steps."""
    if hold == 1 and ctrl.ndim < 3:
        return steps
    rows = ctrl.shape[1] if ctrl.ndim == 3 else None
    if steps % hold or (rows is not None and rows * hold != steps):
        one = f"a multiple of hold={hold}"
        expected = one if rows is None else f"{rows * hold}, the rows of ctrl times hold={hold}"
        raise ArgumentError.expected("steps", expected, steps)
    return steps // hold


def _checked_inputs(
    model: Model, inputs: Mapping[str, Any], batch: int, periods: int
) -> dict[str, Float64Array]:
    """Return inputs as [batch, periods, …], with one row if they are constant."""
    found = {}
    for name, value in inputs.items():
        own = input_shape(model, name)
        array = as_float64(name, value)
        over_time = array.ndim == len(own) + 2
        rows = periods if over_time else 1
        if over_time:
            if array.shape not in ((batch, periods, *own), (1, periods, *own)):
                expected = f"shape {list(own)}, {[batch, *own]} or {[batch, periods, *own]}"
                raise ArgumentError.expected(name, expected, list(array.shape))
            array = np.broadcast_to(array, (batch, periods, *own)).reshape(batch * periods, *own)
        checked = step_inputs(model, {name: array}, batch * rows, True)[name]
        found[name] = checked.reshape(batch, rows, *own)
    return found


def _moved_mocap(
    mocap: Mapping[str, Float64Array], inputs: Mapping[str, Float64Array]
) -> dict[str, Float64Array]:
    """Return where mocap bodies are after steps with checked inputs."""
    moved = {name: inputs[name] for name in MOCAP_INPUTS if name in inputs and inputs[name].shape[1]}
    return {**mocap, **{name: np.ascontiguousarray(rows[:, -1]) for name, rows in moved.items()}}


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
    control: Control = PLAIN


def advance_together(
    engine: Engine, model: Model, calls: Sequence[StepCall], cancel: CancelToken
) -> list[State | RevoluteError]:
    """Advance several sessions in one call of the engine.

    Args:
        engine: takes the steps.
        model: the model of all calls.
        calls: the calls; all take the same number of steps with constant controls, and have no inputs or
            controllers.
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
        end = Advance(*(np.array(part[rows]) for part in parts))
        results.append(_stepped(model, call.state, steps, end, ctrl))
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


def _stepped(model: Model, before: State, steps: int, end: Advance, ctrl: Float64Array | None) -> State:
    """Return the state after `steps` more steps that ended with `ctrl`; step counts and time go on."""
    unsettled = before.unsettled_step
    if np.count_nonzero(end.unsettled_step >= 0):
        first = np.where(end.unsettled_step >= 0, before.step_counts + end.unsettled_step, -1)
        unsettled = np.where(unsettled >= 0, unsettled, first)
    count = before.step_count + steps
    return State(
        end.qpos,
        end.qvel,
        count,
        count * model.timestep,
        end.status,
        before.step_counts + steps,
        before.params,
        unsettled,
        np.maximum(before.residual, end.residual),
        before.mocap,
        _running(end.status, ctrl) if ctrl is not None and np.count_nonzero(end.status) else ctrl,
    )


def _running(status: np.ndarray, ctrl: Float64Array) -> Float64Array:
    """Return controls without those of diverged environments, which need not be finite."""
    return np.where((status != 0)[:, None], 0.0, ctrl)


def _counted(model: Model, *, step_counts: np.ndarray, **fields: Any) -> State:
    """Return a state with the step count and the time that follow from the environments' counts."""
    count = int(step_counts.max())
    return State(step_count=count, time=count * model.timestep, step_counts=step_counts, **fields)


class _Part(NamedTuple):
    """Some of the steps of a call: `rows` rows of controls from the row `first`, each for `hold` steps."""

    first: int
    rows: int
    hold: int


def _parts(batch: int, nu: int, periods: int, hold: int) -> Iterator[_Part]:
    """Divide steps with several rows of controls, so that a part has at most `_CONTROLS` numbers."""
    most = max(1, _CONTROLS // max(1, batch * nu))
    return (_Part(first, min(most, periods - first), hold) for first in range(0, periods, most))


def _constant_parts(steps: int) -> Iterator[_Part]:
    """Divide steps in which nothing varies into rollouts that hold one row."""
    return (_Part(0, 1, min(_HELD, steps - done)) for done in range(0, steps, _HELD))


def _by_rollouts(
    engine: Engine,
    model: Model,
    state: State,
    ctrl: Float64Array,
    parts: Iterable[_Part],
    inputs: Mapping[str, Float64Array],
    control: Control,
    cancel: CancelToken,
) -> tuple[Advance, Float64Array]:
    """Return the end of some steps and the controls that acted last, from rollouts that keep nothing.

    Args:
        engine: takes the steps.
        model: the model.
        state: the state before; at least one environment has not diverged.
        ctrl: [batch, nu], or [batch, periods, nu].
        parts: the steps.
        inputs: checked, [batch, periods, …] or [batch, 1, …].
        control: the controller.
        cancel: stops the engine within one step.
    """
    batch, done = len(ctrl), 0
    given: dict[str, Any] = {**{name: pose[:, None] for name, pose in state.mocap.items()}, **inputs}
    whole = dataclasses.replace(control, **given)
    shown = ctrl if ctrl.ndim == 3 else ctrl[:, None]
    qpos, qvel, status, last = state.qpos, state.qvel, state.status, state.ctrl
    unsettled, residual = np.full(batch, -1), np.zeros(batch)
    for part in parts:
        acting = shown[:, part.first : part.first + part.rows] if shown.shape[1] > 1 else shown
        found = engine.rollout(
            model,
            *_without_diverged(model, status, qpos, qvel),
            np.broadcast_to(acting, (batch, part.rows, model.nu)),
            control=dataclasses.replace(
                periods_of(whole, part.first, part.rows), hold=part.hold, previous_ctrl=last
            ),
            params=dict(state.params) or None,
            checkpoints="none",
            states="final",
            cancel=cancel,
        )
        assert found.unsettled_step is not None and found.residual is not None
        judged = (status == 0) & (unsettled < 0) & (found.unsettled_step >= 0)
        unsettled = np.where(judged, done + found.unsettled_step, unsettled)
        residual = np.where(status == 0, np.maximum(residual, found.residual), residual)
        qpos, qvel, status = found.final_qpos, found.final_qvel, status | found.status
        last = _running(status, found.ctrl[:, -1])
        done += part.rows * part.hold
        if status.all():
            break
    assert last is not None
    gone = (status != 0)[:, None]
    end = Advance(np.where(gone, np.nan, qpos), np.where(gone, np.nan, qvel), status, unsettled, residual)
    return end, last


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


def _checked_control(model: Model, batch: int, ctrl: Any, periods: int | None = None) -> Float64Array:
    """Return the controls as [batch, nu], or if they have a row for each period as [batch, periods, nu]."""
    array = as_float64("ctrl", ctrl)
    nu = model.nu
    if periods is not None and array.shape in ((batch, periods, nu), (1, periods, nu)):
        check_finite("ctrl", array)
        return np.broadcast_to(array, (batch, periods, nu))
    if array.shape not in ((batch, nu), (1, nu), (nu,)):
        with_rows = "" if periods is None else f", or [batch={batch}, time={periods}, nu={nu}]"
        raise ArgumentError.expected(
            "ctrl",
            f"shape [batch={batch}, nu={nu}] or [nu={nu}]{with_rows}",
            list(array.shape),
            advice=f"model '{model.name}' has {model.nu} actuators and this session {batch} environments",
        )
    if not native.all_finite(array):
        bad = np.argwhere(~np.isfinite(array))[0]
        raise ArgumentError.expected("ctrl", "finite values", array[tuple(bad)], at=str(bad.tolist()))
    if array.ndim == 2 and len(array) == batch:
        return array
    return _rows(array.reshape(nu), batch)

"""Computes several independent calls on one model as one batch, and splits the results.

A batch fills the engine's SIMD packs, which a single environment would leave nearly empty. Environments do
not affect each other, so every result equals that of the separate call bit for bit. An error in one call does
not affect the others.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import Any, TypeVar

import numpy as np
import numpy.typing as npt

from revolute.contract.arrays import Float64Array
from revolute.contract.checkpoints import EVERY, Checkpoints
from revolute.contract.controllers import PLAIN, Control
from revolute.contract.errors import RevoluteError
from revolute.contract.gradient_method import EXACT, GradientMethod
from revolute.contract.loss import Loss, check_loss

from . import native
from ._arguments import Problem, check_rollout
from ._cotangents import INPUTS, check_cotangents, check_wrt
from ._engine import Engine
from ._failures import all_diverged, not_finite
from ._model import Model
from ._results import OK, Gradient, Rollout
from ._shaping import LossTuple, bound_terms, evaluated, rollout_result, with_batch, zero_notes
from .parameters import PARAMETERS, default_parameter, is_per_environment, summed_over_environments

Item = TypeVar("Item")
Checked = TypeVar("Checked")
Result = TypeVar("Result")


@dataclass(frozen=True)
class RolloutCall:
    """The arguments of one `Engine.rollout`."""

    qpos: Any
    qvel: Any
    ctrl: Any
    params: Mapping[str, Any] | None = None
    checkpoints: Checkpoints = EVERY
    states: str | None = None
    control: Control = PLAIN


@dataclass(frozen=True)
class BackwardCall:
    """The arguments of one `Engine.backward`."""

    rollout: Rollout
    qpos_bar: Any = None
    qvel_bar: Any = None
    wrt: Iterable[str] = INPUTS
    times: Any = None
    clip: float | None = None
    on_diverged: str = "raise"
    ctrl_bar: Any = None
    gradient: GradientMethod = EXACT


@dataclass(frozen=True)
class ValueAndGradientCall:
    """The arguments of one `Engine.value_and_gradient`."""

    inputs: RolloutCall
    loss: Loss
    wrt: Iterable[str] = INPUTS
    clip: float | None = None
    on_diverged: str = "raise"
    gradient: GradientMethod = EXACT


ValueAndGradientResult = tuple[Float64Array | float, Gradient]

_Arrays = dict[str, npt.NDArray[Any]]

_STATES = ("qpos", "qvel", "status", "diverged_step")
_SOLVED = ("unsettled_step", "residual")


def rollout_together(
    engine: Engine, model: Model, calls: Sequence[RolloutCall], cancel: native.CancelToken | None = None
) -> list[Rollout | RevoluteError]:
    """Compute several rollouts as one batch.

    Args:
        engine: the engine.
        model: the model of all calls.
        calls: the calls; all have the same number of steps, checkpoints "every" and plain controls.
        cancel: token whose `cancel()` stops all calls within one step.

    Returns:
        For each call its trajectories, or the error that the separate call would raise.

    Raises:
        Cancelled: the token was cancelled.
    """

    def check(call: RolloutCall) -> Problem:
        return check_rollout(model, call.qpos, call.qvel, call.ctrl, call.params)

    def compute(problems: Sequence[Problem]) -> list[Rollout | RevoluteError]:
        counts = [len(problem.ctrl) for problem in problems]
        merged = engine._simulate(model, _merged_problem(model, problems), EVERY, False, cancel)
        return [
            rollout_of_every_state(
                model, problem, {name: np.array(getattr(merged, name)[rows]) for name in (*_STATES, *_SOLVED)}
            )
            for problem, rows in zip(problems, _rows(counts), strict=True)
        ]

    return _compute_valid(calls, check, compute)


def backward_together(
    engine: Engine, model: Model, calls: Sequence[BackwardCall], cancel: native.CancelToken | None = None
) -> list[Gradient | RevoluteError]:
    """Compute several backward passes as one batch.

    Args:
        engine: the engine.
        model: the model of all trajectories.
        calls: the calls; all have the same number of steps, the same number of cotangents K, cotangents of
            all states without `clip` and `ctrl_bar`, the exact gradient, and trajectories with checkpoints
            "every" and plain controls.
        cancel: token whose `cancel()` stops all calls within one step.

    Returns:
        For each call its gradient, or the error that the separate call would raise.

    Raises:
        Cancelled: the token was cancelled.
    """

    def compute(checked_calls: Sequence[_CheckedBackward]) -> list[Gradient | RevoluteError]:
        counts = [len(checked.arrays["ctrl"]) for checked in checked_calls]
        wrt = list(dict.fromkeys(name for checked in checked_calls for name in checked.names))
        wanted = [name for name in wrt if name in PARAMETERS]
        params = _merged_params(model, [checked.rollout.params for checked in checked_calls], counts, wanted)
        merged = rollout_of_every_state(
            model,
            Problem(
                qpos=_merged_array(checked_calls, "qpos", first=True),
                qvel=_merged_array(checked_calls, "qvel", first=True),
                ctrl=_merged_array(checked_calls, "ctrl"),
                params=params,
                batched=True,
            ),
            {name: _merged_array(checked_calls, name) for name in _STATES},
        )
        bars = (_merged_bars(checked_calls, name) for name in ("qpos_bar", "qvel_bar"))
        pulled = engine.backward(model, merged, *bars, wrt=wrt, cancel=cancel)
        return [
            _result_or_error(partial(checked.part, pulled, rows))
            for checked, rows in zip(checked_calls, _rows(counts), strict=True)
        ]

    return _compute_valid(calls, lambda call: _CheckedBackward(model, call), compute)


def value_and_gradient_together(
    engine: Engine,
    model: Model,
    calls: Sequence[ValueAndGradientCall],
    cancel: native.CancelToken | None = None,
) -> list[ValueAndGradientResult | RevoluteError]:
    """Compute several value_and_gradient calls in one pass over all packs.

    Calls are computed as one batch if their losses differ only in weights and targets.

    Args:
        engine: the engine.
        model: the model of all calls.
        calls: the calls; all have the same number of steps, checkpoints "every", plain controls and the exact
            gradient, and neither `clip` nor `on_diverged`.
        cancel: token whose `cancel()` stops all calls within one step.

    Returns:
        For each call the result of `Engine.value_and_gradient`, or the error that the separate call would
        raise.

    Raises:
        Cancelled: the token was cancelled.
    """

    def compute(checked_calls: Sequence[_CheckedLoss]) -> list[ValueAndGradientResult | RevoluteError]:
        places: dict[Hashable, list[int]] = {}
        for place, checked in enumerate(checked_calls):
            places.setdefault(checked.merge_key, []).append(place)
        results: dict[int, Any] = {}
        for group in places.values():
            answers = _evaluate_together(engine, model, [checked_calls[place] for place in group], cancel)
            results.update(zip(group, answers, strict=True))
        return [results[place] for place in range(len(checked_calls))]

    return _compute_valid(calls, lambda call: _CheckedLoss.checked(model, call), compute)


@dataclass(frozen=True)
class _CheckedLoss:
    """One checked call of `value_and_gradient_together`.

    Attributes:
        problem: the rollout.
        terms: the loss, bound to the rollout.
        names: what to differentiate by.
    """

    problem: Problem
    terms: list[LossTuple]
    names: list[str]

    @classmethod
    def checked(cls, model: Model, call: ValueAndGradientCall) -> _CheckedLoss:
        """Check a call.

        Raises:
            RevoluteError: as `Engine.value_and_gradient` does.
        """
        names, loss, inputs = check_wrt(call.wrt, model), check_loss(call.loss), call.inputs
        problem = check_rollout(model, inputs.qpos, inputs.qvel, inputs.ctrl, inputs.params, copy_ctrl=False)
        return cls(problem, bound_terms(model, loss, problem), names)

    @property
    def merge_key(self) -> Hashable:
        """Key of the losses that can be computed as one batch."""
        return tuple((*plain, tuple(entries)) for *plain, entries, _weight, _target in self.terms)


def _evaluate_together(
    engine: Engine, model: Model, checked_calls: Sequence[_CheckedLoss], cancel: native.CancelToken | None
) -> list[ValueAndGradientResult | RevoluteError]:
    """Evaluate losses of one merge key as one batch."""
    counts = [len(checked.problem.ctrl) for checked in checked_calls]
    whole = _merged_problem(model, [checked.problem for checked in checked_calls])
    names = list(dict.fromkeys(name for checked in checked_calls for name in checked.names))
    terms = [_merged_term(parts) for parts in zip(*(checked.terms for checked in checked_calls), strict=True)]
    merged = engine._evaluate(model, whole, EVERY, terms, names, cancel)

    def answer(checked: _CheckedLoss, rows: slice) -> ValueAndGradientResult:
        found = merged.of(rows, checked.names)
        return evaluated(model, checked.problem, EVERY, found)

    return [
        _result_or_error(partial(answer, checked, rows))
        for checked, rows in zip(checked_calls, _rows(counts), strict=True)
    ]


def _merged_term(parts: Sequence[LossTuple]) -> LossTuple:
    """Merge one term of all calls: each environment keeps the weight and target of its call."""
    *plain, weight, target = zip(*parts, strict=True)
    first = [values[0] for values in plain]
    return (*first, _stacked(weight), _stacked(target))


def _stacked(arrays: Sequence[Float64Array]) -> Float64Array:
    """Concatenate broadcast arrays [batch, time, entries], keeping time and entries broadcast if possible."""
    time, entries = (
        slice(None) if any(array.strides[axis] for array in arrays) else slice(0, 1) for axis in (1, 2)
    )
    joined = np.concatenate([array[:, time, entries] for array in arrays])
    return np.broadcast_to(joined, (len(joined), *arrays[0].shape[1:]))


@dataclass
class _CheckedBackward:
    """One checked call of `backward_together`, with its batch axis."""

    model: Model
    call: BackwardCall
    names: list[str] = field(init=False)
    arrays: dict[str, npt.NDArray[Any]] = field(init=False)
    bars: dict[str, Float64Array | None] = field(init=False)
    cotangents: int = field(init=False)
    has_k: bool = field(init=False)

    def __post_init__(self) -> None:
        rollout = self.rollout
        self.names = check_wrt(self.call.wrt, self.model)
        self.arrays = {
            name: with_batch(np.asarray(getattr(rollout, name)), rollout.batched)
            for name in (*INPUTS, "status", "diverged_step")
        }
        completed = self.arrays["status"] == OK
        shapes = {"qpos_bar": self.arrays["qpos"].shape, "qvel_bar": self.arrays["qvel"].shape}
        given = {"qpos_bar": self.call.qpos_bar, "qvel_bar": self.call.qvel_bar}
        self.bars, self.cotangents, self.has_k = check_cotangents(shapes, given, completed, rollout.batched)
        if not completed.any():
            raise all_diverged(self.model, self.arrays["diverged_step"])

    @property
    def rollout(self) -> Rollout:
        return self.call.rollout

    def part(self, merged: Gradient, rows: slice) -> Gradient:
        """Return this call's part of the merged gradient.

        Raises:
            DivergedError: no environment of this call has finite derivatives.
        """
        status = np.array(merged.status[rows])
        completed = status == OK
        if not completed.any():
            raise not_finite("backward", self.arrays["status"] == OK)
        arrays = {name: self._array(name, merged.arrays[name][:, rows], completed) for name in self.names}
        batched = self.rollout.batched
        marked = status if batched else status[0, ...]
        return Gradient(
            arrays, marked, self.rollout.diverged_step, self.rollout.report, notes=zero_notes(arrays)
        )

    def _array(self, name: str, rows: Float64Array, completed: npt.NDArray[np.bool_]) -> Float64Array:
        """Give a gradient [K, batch, …] the shape of this call's input; sum a shared parameter."""
        params = self.rollout.params
        if name in PARAMETERS and not (name in params and is_per_environment(name, params[name])):
            summed = summed_over_environments(rows, completed)
            return summed if self.has_k else summed[0, ...]
        own = np.array(rows if self.rollout.batched else rows[:, 0])
        return own if self.has_k else own[0]


def _compute_valid(
    items: Sequence[Item],
    check: Callable[[Item], Checked],
    compute: Callable[[Sequence[Checked]], list[Result | RevoluteError]],
) -> list[Result | RevoluteError]:
    """Check all items, compute the valid ones together, and return a result or an error for each."""
    results: list[Any] = [_result_or_error(partial(check, item)) for item in items]
    good = [place for place, found in enumerate(results) if not isinstance(found, RevoluteError)]
    if good:
        for place, found in zip(good, compute([results[place] for place in good]), strict=True):
            results[place] = found
    return results


def _result_or_error(call: Callable[[], Result]) -> Result | RevoluteError:
    try:
        return call()
    except RevoluteError as error:
        return error


def _rows(counts: Sequence[int]) -> list[slice]:
    """Return each call's rows in the merged batch."""
    ends = np.cumsum(counts).tolist()
    return [slice(end - count, end) for count, end in zip(counts, ends, strict=True)]


def _merged_problem(model: Model, problems: Sequence[Problem]) -> Problem:
    """Merge checked rollouts into one."""
    return Problem(
        qpos=np.concatenate([problem.qpos for problem in problems]),
        qvel=np.concatenate([problem.qvel for problem in problems]),
        ctrl=np.concatenate([problem.ctrl for problem in problems]),
        params=_merged_params(
            model, [problem.params for problem in problems], [len(problem.ctrl) for problem in problems]
        ),
        batched=True,
    )


def _merged_array(checked_calls: Sequence[_CheckedBackward], name: str, *, first: bool = False) -> Any:
    """Concatenate one array of all trajectories; with `first`, only its first time."""
    return np.concatenate(
        [checked.arrays[name][:, 0] if first else checked.arrays[name] for checked in checked_calls]
    )


def _merged_bars(checked_calls: Sequence[_CheckedBackward], name: str) -> Float64Array | None:
    """Merge the cotangents of all calls to [K, batch, time + 1, n]; None if no call has any."""
    if all(checked.bars[name] is None for checked in checked_calls):
        return None
    state = name.removesuffix("_bar")
    parts = [
        np.zeros((checked.cotangents, *checked.arrays[state].shape)) if bar is None else bar
        for checked, bar in ((checked, checked.bars[name]) for checked in checked_calls)
    ]
    return np.concatenate(parts, axis=1)


def rollout_of_every_state(model: Model, problem: Problem, arrays: _Arrays) -> Rollout:
    """Build a rollout with checkpoints "every" from the arrays `_STATES` and, if known, `_SOLVED`.

    All have a batch axis.
    """
    states = arrays["qpos"], arrays["qvel"]
    last = tuple(np.ascontiguousarray(array[:, -1:]) for array in states)
    return rollout_result(model, problem, EVERY, {**arrays, "kept": states, "last": last})


def _merged_params(
    model: Model,
    given: Sequence[Mapping[str, Float64Array]],
    counts: Sequence[int],
    wanted: Sequence[str] = (),
) -> dict[str, Float64Array]:
    """Return per-environment values of all parameters that a call gives, and of those in `wanted`."""
    names = dict.fromkeys([*(name for params in given for name in params), *wanted])
    merged = {}
    for name in names:
        shape = PARAMETERS[name].shape(model)
        values = [params.get(name, default_parameter(model, name)) for params in given]
        spread = [
            np.broadcast_to(value, (count, *shape)) for value, count in zip(values, counts, strict=True)
        ]
        merged[name] = np.concatenate(spread)
    return merged

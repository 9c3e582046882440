"""Several independent calls on one model as one batch, and the results taken apart again.

A batch fills the engine's packs, which a single environment leaves nearly empty. Environments do not see
their neighbours, so that every part is, bit for bit, what its call would have given alone; an error of one
call is that call's alone.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, TypeVar

import numpy as np
import numpy.typing as npt

from revolute.contract.checkpoints import EVERY, Checkpoints
from revolute.contract.errors import RevoluteError
from revolute.contract.loss import Loss, check_loss

from . import native
from ._arguments import Problem, check_rollout
from ._cotangents import INPUTS, check_cotangents, check_wrt
from ._engine import Engine
from ._failures import all_diverged, not_finite
from ._model import Model
from ._results import OK, Gradient, Rollout
from ._shaping import LossTuple, bound_terms, evaluated, rollout_result, with_batch
from .parameters import PARAMETERS, default_parameter, is_per_environment, summed_over_environments

Float64Array = npt.NDArray[np.float64]
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


@dataclass(frozen=True)
class BackwardCall:
    """The arguments of one `Engine.backward`."""

    rollout: Rollout
    qpos_bar: Any = None
    qvel_bar: Any = None
    wrt: Iterable[str] = INPUTS
    times: Any = None


@dataclass(frozen=True)
class ValueAndGradientCall:
    """The arguments of one `Engine.value_and_gradient`."""

    inputs: RolloutCall
    loss: Loss
    wrt: Iterable[str] = INPUTS


ValueAndGradientResult = tuple[Float64Array | float, Gradient]

_Arrays = dict[str, npt.NDArray[Any]]

_STATES = ("qpos", "qvel", "status", "diverged_step")


def rollout_together(
    engine: Engine, model: Model, calls: Sequence[RolloutCall], cancel: native.CancelToken | None = None
) -> list[Rollout | RevoluteError]:
    """Simulate what several calls ask for, in one.

    Args:
        engine: the engine.
        model: the model of all calls.
        calls: the calls; all have the same number of steps, and keep every state.
        cancel: stops all of them within one step.

    Returns:
        For each call its trajectories, or the error that it would have raised alone.

    Raises:
        Cancelled: the token was cancelled.
    """

    def check(call: RolloutCall) -> Problem:
        return check_rollout(model, call.qpos, call.qvel, call.ctrl, call.params)

    def compute(problems: Sequence[Problem]) -> list[Rollout | RevoluteError]:
        counts = [len(problem.ctrl) for problem in problems]
        joint = engine._simulate(model, _joined_problem(model, problems), EVERY, False, cancel)
        return [
            rollout_of_every_state(
                model, problem, {name: np.array(getattr(joint, name)[rows]) for name in _STATES}
            )
            for problem, rows in zip(problems, _rows(counts), strict=True)
        ]

    return _each(calls, check, compute)


def backward_together(
    engine: Engine, model: Model, calls: Sequence[BackwardCall], cancel: native.CancelToken | None = None
) -> list[Gradient | RevoluteError]:
    """Pull the cotangents of several trajectories back, in one call.

    Args:
        engine: the engine.
        model: the model of all trajectories.
        calls: the calls; all have the same number of steps and of cotangents, which are of all states, and
            their trajectories keep every state.
        cancel: stops all of them within one step.

    Returns:
        For each call its gradient, or the error that it would have raised alone.

    Raises:
        Cancelled: the token was cancelled.
    """

    def compute(pulls: Sequence[_Pull]) -> list[Gradient | RevoluteError]:
        counts = [len(pull.arrays["ctrl"]) for pull in pulls]
        wrt = list(dict.fromkeys(name for pull in pulls for name in pull.names))
        wanted = [name for name in wrt if name in PARAMETERS]
        params = _joint_params(model, [pull.rollout.params for pull in pulls], counts, wanted)
        joint = rollout_of_every_state(
            model,
            Problem(
                qpos=_joined(pulls, "qpos", first=True),
                qvel=_joined(pulls, "qvel", first=True),
                ctrl=_joined(pulls, "ctrl"),
                params=params,
                batched=True,
            ),
            {name: _joined(pulls, name) for name in _STATES},
        )
        bars = (_joined_bars(pulls, name) for name in ("qpos_bar", "qvel_bar"))
        pulled = engine.backward(model, joint, *bars, wrt=wrt, cancel=cancel)
        return [
            _guarded(lambda pull=pull, rows=rows: pull.part(pulled, rows))  # type: ignore[misc]
            for pull, rows in zip(pulls, _rows(counts), strict=True)
        ]

    return _each(calls, lambda call: _Pull(model, call), compute)


def value_and_gradient_together(
    engine: Engine,
    model: Model,
    calls: Sequence[ValueAndGradientCall],
    cancel: native.CancelToken | None = None,
) -> list[ValueAndGradientResult | RevoluteError]:
    """Simulate, evaluate the losses of several calls and differentiate them, in one pass over all packs.

    Calls whose losses have other terms than weights and targets go apart from the others.

    Args:
        engine: the engine.
        model: the model of all calls.
        calls: the calls; all have the same number of steps, and keep every state.
        cancel: stops all of them within one step.

    Returns:
        For each call what `Engine.value_and_gradient` returns, or the error that it would have raised alone.

    Raises:
        Cancelled: the token was cancelled.
    """

    def compute(questions: Sequence[_Question]) -> list[ValueAndGradientResult | RevoluteError]:
        places: dict[Hashable, list[int]] = {}
        for place, question in enumerate(questions):
            places.setdefault(question.kind, []).append(place)
        results: dict[int, Any] = {}
        for group in places.values():
            answers = _evaluate_together(engine, model, [questions[place] for place in group], cancel)
            results.update(zip(group, answers, strict=True))
        return [results[place] for place in range(len(questions))]

    return _each(calls, lambda call: _Question.checked(model, call), compute)


@dataclass(frozen=True)
class _Question:
    """One checked call of `value_and_gradient_together`.

    Attributes:
        problem: the rollout.
        terms: the loss, fitted to it.
        names: what to differentiate by.
    """

    problem: Problem
    terms: list[LossTuple]
    names: list[str]

    @classmethod
    def checked(cls, model: Model, call: ValueAndGradientCall) -> _Question:
        """Check a call.

        Raises:
            RevoluteError: as `Engine.value_and_gradient` does.
        """
        names, loss, inputs = check_wrt(call.wrt, model), check_loss(call.loss), call.inputs
        problem = check_rollout(model, inputs.qpos, inputs.qvel, inputs.ctrl, inputs.params, own_ctrl=False)
        return cls(problem, bound_terms(model, loss, problem), names)

    @property
    def kind(self) -> Hashable:
        """What the terms of losses have to share to be evaluated together."""
        return tuple((*plain, tuple(entries)) for *plain, entries, _weight, _target in self.terms)


def _evaluate_together(
    engine: Engine, model: Model, questions: Sequence[_Question], cancel: native.CancelToken | None
) -> list[ValueAndGradientResult | RevoluteError]:
    """Evaluate losses of one kind as one batch."""
    counts = [len(question.problem.ctrl) for question in questions]
    whole = _joined_problem(model, [question.problem for question in questions])
    names = list(dict.fromkeys(name for question in questions for name in question.names))
    terms = [_joined_term(parts) for parts in zip(*(question.terms for question in questions), strict=True)]
    joint = engine._evaluate(model, whole, EVERY, terms, names, cancel)

    def answer(question: _Question, rows: slice) -> ValueAndGradientResult:
        found = joint.of(rows, question.names)
        return evaluated(model, question.problem, EVERY, found)

    return [
        _guarded(lambda question=question, rows=rows: answer(question, rows))  # type: ignore[misc]
        for question, rows in zip(questions, _rows(counts), strict=True)
    ]


def _joined_term(parts: Sequence[LossTuple]) -> LossTuple:
    """Return one term of all calls, each environment with the weight and the target of its call."""
    *plain, weight, target = zip(*parts, strict=True)
    first = [values[0] for values in plain]
    return (*first, _stacked(weight), _stacked(target))


def _stacked(arrays: Sequence[Float64Array]) -> Float64Array:
    """Return broadcast arrays [batch, time, entries] one after the other, without writing repetitions out
    that all of them have along time or entries."""
    time, entries = (
        slice(None) if any(array.strides[axis] for array in arrays) else slice(0, 1) for axis in (1, 2)
    )
    joined = np.concatenate([array[:, time, entries] for array in arrays])
    return np.broadcast_to(joined, (len(joined), *arrays[0].shape[1:]))


@dataclass
class _Pull:
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

    def part(self, joint: Gradient, rows: slice) -> Gradient:
        """Return this call's part of the joint gradient.

        Raises:
            DivergedError: no environment of this call has finite derivatives.
        """
        status = np.array(joint.status[rows])
        completed = status == OK
        if not completed.any():
            raise not_finite("backward", self.arrays["status"] == OK)
        arrays = {name: self._array(name, joint.arrays[name][:, rows], completed) for name in self.names}
        batched = self.rollout.batched
        marked = status if batched else status[0, ...]
        return Gradient(arrays, marked, self.rollout.diverged_step, self.rollout.report)

    def _array(self, name: str, rows: Float64Array, completed: npt.NDArray[np.bool_]) -> Float64Array:
        """Return [K, B, …] as this call's input is shaped; what the environments share is summed."""
        params = self.rollout.params
        if name in PARAMETERS and not (name in params and is_per_environment(name, params[name])):
            summed = summed_over_environments(rows, completed)
            return summed if self.has_k else summed[0, ...]
        own = np.array(rows if self.rollout.batched else rows[:, 0])
        return own if self.has_k else own[0]


def _each(
    items: Sequence[Item],
    check: Callable[[Item], Checked],
    compute: Callable[[Sequence[Checked]], list[Result | RevoluteError]],
) -> list[Result | RevoluteError]:
    """Compute the items that pass their check together, and return a result or an error for each."""
    results: list[Any] = [_guarded(lambda item=item: check(item)) for item in items]  # type: ignore[misc]
    good = [place for place, found in enumerate(results) if not isinstance(found, RevoluteError)]
    if good:
        for place, found in zip(good, compute([results[place] for place in good]), strict=True):
            results[place] = found
    return results


def _guarded(call: Callable[[], Result]) -> Result | RevoluteError:
    try:
        return call()
    except RevoluteError as error:
        return error


def _rows(counts: Sequence[int]) -> list[slice]:
    """Return where each call's environments are in the batch of all."""
    ends = np.cumsum(counts).tolist()
    return [slice(end - count, end) for count, end in zip(counts, ends, strict=True)]


def _joined_problem(model: Model, problems: Sequence[Problem]) -> Problem:
    """Return the rollouts of several calls as one; what was checked call by call needs no second check."""
    return Problem(
        qpos=np.concatenate([problem.qpos for problem in problems]),
        qvel=np.concatenate([problem.qvel for problem in problems]),
        ctrl=np.concatenate([problem.ctrl for problem in problems]),
        params=_joint_params(
            model, [problem.params for problem in problems], [len(problem.ctrl) for problem in problems]
        ),
        batched=True,
    )


def _joined(pulls: Sequence[_Pull], name: str, *, first: bool = False) -> Any:
    """Return one array of all trajectories; `first` only its first time."""
    return np.concatenate([pull.arrays[name][:, 0] if first else pull.arrays[name] for pull in pulls])


def _joined_bars(pulls: Sequence[_Pull], name: str) -> Float64Array | None:
    """Return the cotangents of all trajectories, [K, batch, time + 1, n]; zeros for a call without, None when
    all are."""
    if all(pull.bars[name] is None for pull in pulls):
        return None
    state = name.removesuffix("_bar")
    parts = [
        np.zeros((pull.cotangents, *pull.arrays[state].shape)) if bar is None else bar
        for pull, bar in ((pull, pull.bars[name]) for pull in pulls)
    ]
    return np.concatenate(parts, axis=1)


def rollout_of_every_state(model: Model, problem: Problem, arrays: _Arrays) -> Rollout:
    """Return a rollout from the arrays of all its states, `_STATES`, with batch axis."""
    states = arrays["qpos"], arrays["qvel"]
    last = tuple(np.ascontiguousarray(array[:, -1:]) for array in states)
    return rollout_result(model, problem, EVERY, {**arrays, "kept": states, "last": last})


def _joint_params(
    model: Model,
    given: Sequence[Mapping[str, Float64Array]],
    counts: Sequence[int],
    wanted: Sequence[str] = (),
) -> dict[str, Float64Array]:
    """Return the parameters of all calls per environment: those that one gives, and those `wanted`."""
    names = dict.fromkeys([*(name for params in given for name in params), *wanted])
    joint = {}
    for name in names:
        shape = PARAMETERS[name].shape(model)
        values = [params.get(name, default_parameter(model, name)) for params in given]
        spread = [
            np.broadcast_to(value, (count, *shape)) for value, count in zip(values, counts, strict=True)
        ]
        joint[name] = np.concatenate(spread)
    return joint

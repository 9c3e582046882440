"""Converts between users' shapes and those of the compiled engine, which always has a batch axis."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import replace
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from revolute.contract.arrays import Float64Array
from revolute.contract.checkpoints import CheckpointReport, Checkpoints
from revolute.contract.controllers import PLAIN
from revolute.contract.gradient_method import EXACT, GradientMethod
from revolute.contract.loss import FORMS, Loss, check_within_float64

from . import native
from ._arguments import Problem
from ._controllers import AXES_OF_OWN, is_shared
from ._cotangents import INPUTS
from ._failures import all_diverged, not_finite
from ._model import Model
from ._probes import Probe, numbers_of, quantity_probes, state_entries
from ._results import NOT_FINITE, OK, Gradient, Rollout, checkpoint_report
from .parameters import PARAMETERS, is_per_environment, summed_over_environments

LossTuple = tuple[int, bool, tuple[int, ...], int, tuple[Probe, ...], list[int], Float64Array, Float64Array]
"""A bound loss term for the compiled engine: quantity, running, times, form, probes, entries, weight,
target."""

_FORMS = (*FORMS, "rotation")
_MEASURED = len(INPUTS)
"""Number of the quantity whose entries are those of the probes."""


class Evaluation(NamedTuple):
    """A loss and its gradient as the compiled engine returns them, one row per environment.

    Attributes:
        value: [batch].
        status: [batch].
        diverged_step: [batch].
        pulled: gradients [1, batch, …] by name of the input, also for parameters.
        replayed_steps: [batch].
        cotangents_finite: [batch], 0 if the derivatives of the loss are not finite.
        clipped: [1, batch], number of steps whose cotangent was clipped.
        unsettled_step: [batch].
        residual: [batch].
    """

    value: Float64Array
    status: npt.NDArray[np.int32]
    diverged_step: npt.NDArray[np.int64]
    pulled: dict[str, Float64Array]
    replayed_steps: npt.NDArray[Any]
    cotangents_finite: npt.NDArray[Any]
    clipped: npt.NDArray[np.int64]
    unsettled_step: npt.NDArray[np.int64]
    residual: Float64Array

    def of(self, rows: slice, names: Iterable[str]) -> Evaluation:
        """Return a copy with only the given environments and gradients."""
        pulled = {name: np.array(self.pulled[name][:, rows]) for name in names}
        return Evaluation(
            np.array(self.value[rows]),
            np.array(self.status[rows]),
            np.array(self.diverged_step[rows]),
            pulled,
            self.replayed_steps[rows],
            self.cotangents_finite[rows],
            self.clipped[:, rows],
            np.array(self.unsettled_step[rows]),
            np.array(self.residual[rows]),
        )


def with_batch(array: npt.NDArray, batched: bool) -> npt.NDArray:
    """Add the batch axis if the result has none."""
    return array if batched else array[None]


def marked(array: Float64Array, good: npt.NDArray[np.bool_], batched: bool) -> Float64Array:
    """Set the rows of diverged environments to NaN, and drop the batch axis if the user gave none."""
    array[~good] = np.nan
    array.setflags(write=False)
    return array if batched else array[0]


def bound_terms(model: Model, loss: Loss, problem: Problem) -> list[LossTuple]:
    """Bind a loss to a rollout, in the compiled engine's form. Terms of an empty ctrl (T = 0) are dropped.

    Raises:
        ArgumentError: a term does not fit the model or the trajectory.
    """
    batch, periods, nu = problem.ctrl.shape
    times = problem.steps + 1
    shapes = {"qpos": (times, model.nq), "qvel": (times, model.nqvel), "ctrl": (periods, nu)}
    bound: list[LossTuple] = []
    for position, term in enumerate(loss.terms):
        name = f"loss.terms.{position}"
        selection, probes = None, list[Probe]()
        if term.quantity in shapes:
            if term.elements is not None:
                selection = state_entries(model, f"{name}.{term.kind}", term.quantity, term.elements)
            shape, quantity = shapes[term.quantity], INPUTS.index(term.quantity)
        else:
            probes = quantity_probes(
                model, f"{name}.{term.kind}", term.quantity, term.elements, term.relative_to
            )
            shape, quantity = (times, numbers_of(probes)), _MEASURED
        if shape[0] == 0:
            continue
        found = term.bind(batch, shape, name, selection)
        form = _FORMS.index(found.form)
        numbers = (found.entries, found.weight, found.target)
        bound.append((quantity, found.running, found.times, form, tuple(probes), *numbers))
    return bound


def evaluated(
    model: Model,
    problem: Problem,
    checkpoints: Checkpoints,
    found: Evaluation,
    method: GradientMethod = EXACT,
    *,
    clip: float = 0.0,
    raises: bool = True,
) -> tuple[Float64Array | float, Gradient]:
    """Convert the compiled engine's result to that of `Engine.value_and_gradient`.

    Args:
        model: the model.
        problem: the rollout.
        checkpoints: its checkpoints.
        found: the result.
        method: how it was differentiated.
        clip: bound of the cotangents; 0 for none.
        raises: whether it is an error that every environment diverged, or that the loss overflows; without,
            the value of these environments is infinite.

    Raises:
        ArgumentError: the loss overflows float64.
        DivergedError: every environment diverged.
    """
    batch, steps = len(problem.ctrl), problem.steps
    value, status, diverged_step = found.value, found.status, found.diverged_step
    completed = status == OK
    if raises:
        check_within_float64(value, completed & ~np.isfinite(value))
        if not completed.any():
            raise all_diverged(model, diverged_step)
        check_within_float64(np.full(batch, np.inf), completed & (found.cotangents_finite == 0))
    else:
        value[~np.isfinite(value)] = np.inf
    diverged_step.setflags(write=False)
    ends = status, diverged_step if problem.batched else diverged_step[0, ...]
    report = checkpoint_report(
        model.nq + model.nqvel, checkpoints, batch, steps, int(found.replayed_steps.sum())
    )
    clipped = found.clipped if clip else None
    gradient = gradient_result(
        model, found.pulled, problem, ends, report, has_k=False, clipped=clipped, raises=raises
    )
    gradient = replace(
        gradient,
        method=str(method),
        unsettled_step=found.unsettled_step if problem.batched else found.unsettled_step[0, ...],
        residual=found.residual if problem.batched else found.residual[0, ...],
    )
    return (value if problem.batched else float(value[0])), gradient


def rollout_result(
    model: Model, problem: Problem, checkpoints: Checkpoints, found: Mapping[str, Any]
) -> Rollout:
    """Convert the compiled engine's result to a Rollout; arrays become read-only."""

    def shaped(array: npt.NDArray) -> npt.NDArray:
        view = array.view() if problem.batched else array[0, ...]
        view.setflags(write=False)
        return view

    kept_qpos, kept_qvel = map(shaped, found["kept"])
    states = None
    if "states" in found:
        states = shaped(found["states"][0]), shaped(found["states"][1])
    for value in problem.params.values():
        value.setflags(write=False)
    return Rollout(
        model_id=model.id,
        checkpoints=checkpoints,
        kept_qpos=kept_qpos,
        kept_qvel=kept_qvel,
        final_qpos=shaped(found["last"][0][:, 0]),
        final_qvel=shaped(found["last"][1][:, 0]),
        ctrl=shaped(found.get("ctrl", problem.ctrl)),
        params=problem.params,
        status=shaped(found["status"]),
        diverged_step=shaped(found["diverged_step"]),
        batched=problem.batched,
        all_states=(kept_qpos, kept_qvel) if checkpoints.policy == "every" else states,
        **{name: shaped(found[name]) for name in ("unsettled_step", "residual") if name in found},
        control=problem.control,
    )


def gradient_result(
    model: Model,
    pulled: dict[str, Float64Array],
    inputs: Problem | Rollout,
    ends: tuple[npt.NDArray[np.int32], npt.NDArray[np.int64]],
    report: CheckpointReport,
    has_k: bool,
    *,
    clipped: npt.NDArray[np.int64] | None = None,
    raises: bool = True,
) -> Gradient:
    """Convert the compiled engine's gradients [K, batch, ...] to a Gradient.

    Args:
        model: the model.
        pulled: the gradients by name; emptied.
        inputs: the inputs that the gradients are shaped like.
        ends: status [batch], and diverged_step in the result's shape.
        report: cost of the checkpoints.
        has_k: whether the result has the axis K.
        clipped: number of clipped cotangents [K, batch]; None if none may be.
        raises: whether it is an error that no environment has a finite gradient.
    """
    status, diverged_step = ends
    completed = status == OK
    finite = completed & finite_rows(pulled.values())
    if raises and not np.count_nonzero(finite):
        raise not_finite("backward", completed)
    marked = np.where(completed & ~finite, NOT_FINITE, status).astype(np.int32)
    shaped = {name: _shaped(model, name, pulled.pop(name), inputs, finite, has_k) for name in list(pulled)}
    if clipped is not None:
        clipped = clipped if inputs.batched else clipped[:, 0]
        clipped = clipped if has_k else clipped[0, ...]
    status = marked if inputs.batched else marked[0, ...]
    return Gradient(shaped, status, diverged_step, report, clipped, zero_notes(shaped))


def zero_notes(arrays: Mapping[str, Float64Array]) -> tuple[str, ...]:
    """Return a note for each gradient that is exactly zero."""
    notes: tuple[str, ...] = ()
    for name, array in arrays.items():
        # the first number tells of most that they are not
        if array.size and array.item(0) == 0.0 and not np.count_nonzero(array):
            notes += (
                f"{name}: the gradient is exactly zero; nothing that the cotangents weigh depends on {name} "
                "at this trajectory (contacts that stick or do not touch pass nothing on)",
            )
    return notes


def finite_rows(arrays: Iterable[Float64Array]) -> npt.NDArray[np.bool_]:
    """Return for each environment (second axis) whether all numbers are finite."""
    return np.logical_and.reduce([native.finite_rows(array) for array in arrays])


def _shaped(
    model: Model,
    name: str,
    pulled: Float64Array,
    inputs: Problem | Rollout,
    completed: npt.NDArray[np.bool_],
    has_k: bool,
) -> Float64Array:
    """Give one gradient the shape of its input. Diverged environments are NaN, or left out of a sum."""
    if inputs.control is not PLAIN and name in inputs.control.arrays:
        return _shaped_of_controller(name, pulled, inputs, completed, has_k)
    if name in PARAMETERS:
        pulled = pulled.reshape(pulled.shape[:2] + PARAMETERS[name].shape(model))
        if not (name in inputs.params and is_per_environment(name, inputs.params[name])):
            summed = _summed(pulled, completed)
            return summed if has_k else summed[0, ...]
    pulled[:, ~completed] = np.nan
    gradient = pulled if inputs.batched else pulled[:, 0]
    return gradient if has_k else gradient[0]


def _shaped_of_controller(
    name: str,
    pulled: Float64Array,
    inputs: Problem | Rollout,
    completed: npt.NDArray[np.bool_],
    has_k: bool,
) -> Float64Array:
    """Give the gradient [K, batch, …] by an array of a controller the shape of that array."""
    given = inputs.control.arrays[name]
    if name not in AXES_OF_OWN or is_shared(given, AXES_OF_OWN[name], len(completed)):
        pulled = _summed(pulled, completed)
    else:
        pulled[:, ~completed] = np.nan
    gradient = pulled.reshape(len(pulled), *given.shape)
    return gradient if has_k else gradient[0]


def _summed(pulled: Float64Array, completed: npt.NDArray[np.bool_]) -> Float64Array:
    """Sum gradients [K, batch, …] over the completed environments; NaN if there are none."""
    if not completed.any():
        return np.full(pulled.shape[:1] + pulled.shape[2:], np.nan)
    return summed_over_environments(pulled, completed)

"""Checks the arguments of derivatives: cotangents, tangents, times and names."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

import numpy as np
import numpy.typing as npt

from revolute.contract.arrays import Float64Array, as_float64
from revolute.contract.controllers import PLAIN, Control
from revolute.contract.errors import ArgumentError
from revolute.contract.scalars import positive_number

from ._model import Model
from .parameters import check_finite, parameters_of

INPUTS = ("qpos", "qvel", "ctrl")
"""Inputs of a rollout besides the parameters."""


def check_wrt(
    wrt: Iterable[str], model: Model, control: Control = PLAIN, others: Iterable[str] = ()
) -> list[str]:
    """Return the names to differentiate by, each once.

    Args:
        wrt: the names.
        model: the model.
        control: how the rows of ctrl act; its arrays have names too.
        others: further names.

    Raises:
        ArgumentError: a name is unknown; the text lists the known ones.
    """
    valid = (*INPUTS, *control.arrays, *others, *parameters_of(model))
    names = [wrt] if isinstance(wrt, str) else list(wrt)
    for name in names:
        if name not in valid:
            raise ArgumentError.expected("wrt", f"names among {', '.join(valid)}", repr(name))
    if not names:
        raise ArgumentError.expected("wrt", f"at least one name among {', '.join(valid)}", "none")
    return list(dict.fromkeys(names))


def check_tangents(
    shapes: Mapping[str, tuple[int, ...]],
    values: Mapping[str, Any],
    batched: bool,
) -> dict[str, Float64Array]:
    """Check the tangents of a trajectory's inputs.

    Args:
        shapes: shape of each tangent, with its batch axis, by name.
        values: the tangents as given, None for zero. The environments share a tangent without a batch axis.
        batched: whether the trajectory has a batch axis.

    Returns:
        Arrays of the given shapes by name; zeros for None.

    Raises:
        ArgumentError: a shape does not match the trajectory, or a number is not finite.
    """
    checked = {}
    for name, shape in shapes.items():
        if values[name] is None:
            checked[name] = np.zeros(shape)
            continue
        array = as_float64(name, values[name])
        if array.shape != shape[1:] and not (batched and array.shape in (shape, (1, *shape[1:]))):
            own = f" or {list(shape)}" if batched else ""
            advice = "tangents of qpos have nv entries" if name == "qpos_tan" else None
            raise ArgumentError.expected(
                name, f"shape {list(shape[1:])}{own}", list(array.shape), advice=advice
            )
        check_finite(name, array)
        checked[name] = np.ascontiguousarray(np.broadcast_to(array, shape))
    return checked


def check_times(times: Any, steps: int) -> npt.NDArray[np.int64] | None:
    """Return the times of cotangents as indices from 0, or None for all states.

    Args:
        times: indices of states, ascending; negative ones count from the end; None for all.
        steps: number of steps T.

    Raises:
        ArgumentError: `times` are not ascending, distinct indices within the trajectory.
    """
    if times is None:
        return None
    given = np.atleast_1d(np.asarray(times))
    good = given.ndim == 1 and given.size > 0 and given.dtype.kind in "iu"
    if good:
        indices = np.where(given < 0, given + steps + 1, given).astype(np.int64)
        good = bool(indices.min() >= 0) and indices.max() <= steps and bool((np.diff(indices) > 0).all())
    if not good:
        text = repr(times)
        raise ArgumentError.expected(
            "times",
            f"indices of states from {-steps - 1} to {steps}, ascending, each once",
            text if len(text) <= 60 else f"{text[:57]}...",
        )
    return np.ascontiguousarray(indices)


def check_clip(clip: Any) -> float:
    """Return the bound of cotangents; 0 for None, which is no bound.

    Raises:
        ArgumentError: it is not a positive number.
    """
    return 0.0 if clip is None else positive_number("clip", clip)


def check_cotangents(
    shapes: Mapping[str, tuple[int, ...]],
    values: Mapping[str, Any],
    completed: npt.NDArray[np.bool_],
    batched: bool,
) -> tuple[dict[str, Float64Array | None], int, bool]:
    """Check the cotangents of a trajectory.

    Args:
        shapes: shape of each cotangent, with its batch axis, by name.
        values: the cotangents as given, None for zero.
        completed: environments that did not diverge; cotangents of the others are set to zero.
        batched: whether the trajectory has a batch axis.

    Returns:
        Arrays [K, batch, times, n] by name (None for zero), K, and whether the user gave the axis K.

    Raises:
        ArgumentError: a shape does not match the trajectory, or a number is not finite.
    """
    given = {name: as_float64(name, value) for name, value in values.items() if value is not None}
    if not given:
        names = "qpos_bar, qvel_bar and ctrl_bar"
        raise ArgumentError.expected(names, "an array in at least one of them", "None in all")
    stacked = {name: _with_k(name, array, shapes[name], batched) for name, array in given.items()}
    has_k = {name: array.ndim == len(shapes[name]) + batched for name, array in given.items()}
    counts = {name: len(array) for name, array in stacked.items()}
    if len(set(counts.values())) > 1 or len(set(has_k.values())) > 1:
        got = " and ".join(f"{name} {list(array.shape)}" for name, array in given.items())
        raise ArgumentError.expected("qvel_bar", "the same number of cotangents as in qpos_bar", got)
    checked: dict[str, Float64Array | None] = dict.fromkeys(shapes)
    for name, array in stacked.items():
        if np.count_nonzero(completed) < len(completed):
            array = np.where(completed[None, :, None, None], array, 0.0)
        # show the place in the user's shape, unless a batch axis was repeated
        check_finite(name, array.reshape(given[name].shape) if array.size == given[name].size else array)
        checked[name] = array
    return checked, next(iter(counts.values())), next(iter(has_k.values()))


def _with_k(name: str, array: Float64Array, shape: tuple[int, ...], batched: bool) -> Float64Array:
    """Return a cotangent as [K, batch, time + 1, n]."""
    user = shape if batched else shape[1:]
    if batched and array.shape[-len(shape) :] == (1, *shape[1:]):
        # a batch axis of length 1 repeats
        leading = array.shape[: -len(shape)]
        array = np.ascontiguousarray(np.broadcast_to(array, (*leading, *shape)))
    if array.shape == user:
        return array.reshape(1, *shape)
    if array.shape[1:] == user and len(array):
        return array.reshape(len(array), *shape)
    expected = list(user)
    raise ArgumentError.expected(
        name,
        f"shape {expected} or [K, {', '.join(str(size) for size in expected)}]",
        list(array.shape),
        advice="it has the shape of the trajectory: time + 1 states",
    )

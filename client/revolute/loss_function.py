"""A loss as a Python function: ValueAndGradient simulates, calls the function, and differentiates."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from .contract.arrays import Float64Array, as_float64
from .contract.errors import ArgumentError


@dataclass(frozen=True, eq=False)
class States:
    """The trajectory that a loss function receives; its arrays are read-only.

    Attributes:
        qpos: configurations at times 0 … T, [batch, T + 1, nq].
        qvel: velocities at times 0 … T, [batch, T + 1, nv].
        ctrl: controls as they acted, [batch, T / hold, nu].
        status: [batch] int32, 0 for an environment that stayed finite, 1 for one that diverged.
        diverged_step: [batch] int64, first step whose result is not finite, or -1.
    """

    qpos: Float64Array
    qvel: Float64Array
    ctrl: Float64Array
    status: npt.NDArray[np.int32]
    diverged_step: npt.NDArray[np.int64]

    @classmethod
    def from_document(cls, document: Mapping[str, Any], ctrl: np.ndarray) -> States:
        """Build the states from a Trajectory document and the controls that were sent."""
        names = ("qpos", "qvel", "status", "diverged_step")
        arrays = {name: document[name].view() for name in names} | {"ctrl": ctrl.view()}
        for array in arrays.values():
            array.flags.writeable = False
        return cls(**arrays)


LossFunction = Callable[[States], tuple[Any, Any, Any] | tuple[Any, Any, Any, Any]]
"""Returns the loss, d loss / d qpos, d loss / d qvel and, if it likes, d loss / d ctrl at fixed states.
A derivative may be None for zero."""


def evaluate(loss: LossFunction, states: States) -> tuple[Any, dict[str, Float64Array | None]]:
    """Call a loss function and check its result.

    Args:
        loss: the function.
        states: the trajectory.

    Returns:
        The value, unchanged, and the derivatives by the field names of the message Cotangents.

    Raises:
        ArgumentError: the function does not return three or four values, or a derivative is not an array of
            numbers.
    """
    found = loss(states)
    if not isinstance(found, tuple) or len(found) not in (3, 4):
        raise ArgumentError.expected(
            "loss", "a function that returns (value, qpos_bar, qvel_bar), or ctrl_bar too", _shown(found)
        )
    value, *bars = found
    return value, {
        name: None if bar is None else as_float64(name, bar)
        for name, bar in zip(("qpos_bar", "qvel_bar", "ctrl_bar"), bars, strict=False)
    }


def infinite_where_diverged(value: Any, status: npt.NDArray[np.int32]) -> Any:
    """Return a loss that is infinite for environments that diverged.

    Args:
        value: the loss of each environment, [batch], or one number for all.
        status: status of each environment.
    """
    diverged = status != 0
    if not diverged.any():
        return value
    values = as_float64("loss", value)
    if values.shape == diverged.shape:
        return np.where(diverged, np.inf, values)
    return np.full(values.shape, np.inf)


def _shown(found: Any) -> str:
    return f"{len(found)} things" if isinstance(found, tuple) else type(found).__name__

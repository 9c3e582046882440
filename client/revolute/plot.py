"""Plots of an optimisation: losses, and the size of a gradient over time.

    figure = revolute.plot.losses(values)
    figure = revolute.plot.gradient_norms(gradient, timestep=model.timestep)
    figure.savefig("norms.png")

A notebook shows a figure that is the last line of a cell.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from .contract.arrays import as_float64
from .contract.errors import ArgumentError

try:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure, FigureBase
except ImportError as error:
    raise ImportError(
        "revolute.plot needs matplotlib; install it with: pip install 'revolute[plot]'", name=error.name
    ) from error

__all__ = ["gradient_norms", "losses"]


def losses(values: Any, *, axes: Axes | None = None) -> FigureBase:
    """Plot losses over iterations, on a logarithmic scale if all are positive.

    Args:
        values: loss of each iteration, [iterations], or of a batch, [iterations, batch].
        axes: where to draw; None for a new figure.

    Returns:
        The figure.

    Raises:
        ArgumentError: the shape is another one.
    """
    array = as_float64("values", values)
    if array.ndim not in (1, 2):
        raise ArgumentError.expected("values", "shape [iterations] or [iterations, batch]", list(array.shape))
    drawn = _axes(axes)
    drawn.plot(array, color="tab:blue", alpha=1.0 if array.ndim == 1 else 0.5)
    finite = array[np.isfinite(array)]
    if finite.size and (finite > 0).all():
        drawn.set_yscale("log")
    drawn.set(xlabel="iteration", ylabel="loss")
    return drawn.figure


def gradient_norms(
    gradient: Mapping[str, Any], *, timestep: float | None = None, axes: Axes | None = None
) -> FigureBase:
    """Plot |d loss / d ctrl| at each time: how far back the gradient reaches, and where it explodes.

    Args:
        gradient: what `Trajectory.backward` returned, with "ctrl" among its names, [batch, T, nu] or [T, nu].
        timestep: time between two rows of ctrl in s; None to count rows.
        axes: where to draw; None for a new figure.

    Returns:
        The figure, with one line per environment.

    Raises:
        ArgumentError: the gradient has no "ctrl".
    """
    if not isinstance(gradient, Mapping) or "ctrl" not in gradient:
        raise ArgumentError.expected("gradient", "a gradient by ctrl", type(gradient).__name__)
    ctrl = as_float64("gradient.ctrl", gradient["ctrl"])
    if ctrl.ndim not in (2, 3):
        raise ArgumentError.expected("gradient.ctrl", "shape [batch, time, nu]", list(ctrl.shape))
    norms = np.linalg.norm(ctrl, axis=-1).reshape(-1, ctrl.shape[-2])
    drawn = _axes(axes)
    times = np.arange(norms.shape[1]) * (1 if timestep is None else timestep)
    drawn.plot(times, norms.T, color="tab:blue", alpha=1.0 if len(norms) == 1 else 0.5)
    # 0 has no logarithm
    if (norms[np.isfinite(norms)] > 0).any():
        drawn.set_yscale("log")
    drawn.set(xlabel="row of ctrl" if timestep is None else "time (s)", ylabel="|d loss / d ctrl|")
    return drawn.figure


def _axes(axes: Axes | None) -> Axes:
    if axes is None:
        axes = Figure(figsize=(5.0, 3.2), layout="constrained").subplots()
    axes.grid(alpha=0.3)
    return axes

"""Draws the demo's picture: the loss, the moved coordinate over time, and a film strip of the robot."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import numpy as np
from matplotlib.figure import Figure


@dataclass(frozen=True)
class MovedPath:
    """The moved coordinate over time, before and after the optimisation, with its target."""

    label: str
    time: np.ndarray
    before: np.ndarray
    after: np.ndarray
    target: float


def draw(
    file: Path,
    title: str,
    losses: list[float],
    path: MovedPath,
    film: np.ndarray | None,
    film_times: np.ndarray,
) -> None:
    """Write the picture as a PNG.

    Args:
        file: path of the PNG.
        title: title of the picture.
        losses: loss after each iteration.
        path: the moved coordinate over time.
        film: pictures [frames, height, width, 3]; None to draw only the plots.
        film_times: time of each picture in seconds.
    """
    figure = Figure(figsize=(12, 4.2 if film is None else 7), layout="constrained")
    figure.suptitle(title)
    plots = figure.subfigures(1 if film is None else 2, 1, squeeze=False)[:, 0]
    loss_axes, path_axes = plots[0].subplots(1, 2)
    loss_axes.semilogy(range(len(losses)), losses, color="tab:blue")
    loss_axes.set(xlabel="iteration", ylabel="loss", title="loss")
    path_axes.plot(path.time, path.before, color="tab:gray", label="first controls")
    path_axes.plot(path.time, path.after, color="tab:blue", label="optimised controls")
    path_axes.axhline(path.target, color="tab:red", linestyle="--", label="target")
    path_axes.set(xlabel="time (s)", ylabel=path.label, title=path.label)
    path_axes.legend()
    for axes in (loss_axes, path_axes):
        axes.grid(alpha=0.3)
    if film is not None:
        for axes, frame, time in zip(plots[1].subplots(1, len(film)), film, film_times, strict=True):
            axes.imshow(frame)
            axes.set_axis_off()
            axes.set_title(f"{time:.2f} s", fontsize=9)
    figure.savefig(file, dpi=100, format="png")

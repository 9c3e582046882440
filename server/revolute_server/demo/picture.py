"""Draws the demo's picture: the loss, the moved coordinate over time, and a film strip of the robot."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import numpy as np
from matplotlib.figure import Figure

import revolute
from revolute.plot import losses as plot_losses
from revolute.render import Arrows, motion_of, pictures

GREY, RED = (0.4, 0.4, 0.4), (0.85, 0.1, 0.1)
SIZE = (360, 360)


@dataclass(frozen=True)
class MovedPath:
    """The moved coordinate over time, before and after the optimisation, with its target."""

    label: str
    time: np.ndarray
    before: np.ndarray
    after: np.ndarray
    target: float


def film_strip(
    trajectory: revolute.Trajectory, steps: list[int], posts: np.ndarray | None
) -> tuple[list[np.ndarray], str]:
    """Draw the robot at some states.

    Args:
        trajectory: the trajectory.
        steps: numbers of the states.
        posts: lines to draw, [2 lines, 2 ends, xyz]: the second one, the target, in red; None for no lines.

    Returns:
        The pictures, and the reason if there are no pictures.
    """
    lines = [] if posts is None else [Arrows(posts[:1], GREY), Arrows(posts[1:], RED)]
    try:
        return list(pictures(motion_of(trajectory), steps, size=SIZE, lines=lines)), ""
    except revolute.UnavailableError as error:
        return [], str(error)


def draw(
    file: Path,
    title: str,
    losses: list[float],
    path: MovedPath,
    film: list[np.ndarray],
    film_times: np.ndarray,
) -> None:
    """Write the picture as a PNG.

    Args:
        file: path of the PNG.
        title: title of the picture.
        losses: loss after each iteration.
        path: the moved coordinate over time.
        film: pictures [height, width, 3]; none to draw only the plots.
        film_times: time of each picture in seconds.
    """
    figure = Figure(figsize=(12, 7 if film else 4.2), layout="constrained")
    figure.suptitle(title)
    plots = figure.subfigures(2 if film else 1, 1, squeeze=False)[:, 0]
    loss_axes, path_axes = plots[0].subplots(1, 2)
    plot_losses(losses, axes=loss_axes)
    loss_axes.set(title="loss")
    path_axes.plot(path.time, path.before, color="tab:gray", label="first controls")
    path_axes.plot(path.time, path.after, color="tab:blue", label="optimised controls")
    path_axes.axhline(path.target, color="tab:red", linestyle="--", label="target")
    path_axes.set(xlabel="time (s)", ylabel=path.label, title=path.label)
    path_axes.legend(loc="upper center", bbox_to_anchor=(0.5, -0.2), ncols=3)  # below, where no line is
    path_axes.grid(alpha=0.3)
    if film:
        for axes, frame, time in zip(plots[1].subplots(1, len(film)), film, film_times, strict=True):
            axes.imshow(frame)
            axes.set_axis_off()
            axes.set_title(f"{time:.2f} s", fontsize=9)
    figure.savefig(file, dpi=100, format="png")

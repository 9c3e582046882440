"""What the scripts share: arguments, timing, the check of a gradient against the peer's own differences."""

from __future__ import annotations

import json
import statistics
import sys
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np


@dataclass(frozen=True)
class Job:
    """The scene and how much of it to run; see benchmarks/peers/scene.py for the files."""

    folder: Path
    steps: int
    repeats: int

    @classmethod
    def from_command_line(cls) -> Job:
        """Return the job that the three arguments name."""
        return cls(Path(sys.argv[1]), int(sys.argv[2]), int(sys.argv[3]))

    def file(self, name: str) -> str:
        """Return the path of a file of the scene."""
        return str(self.folder / name)

    def start(self) -> np.ndarray:
        """Return the start positions, MuJoCo's order."""
        return np.load(self.folder / "start.npy")

    def controls(self) -> np.ndarray:
        """Return the joint targets, [steps, 12]."""
        return np.load(self.folder / "controls.npy")[: self.steps]

    def direction(self) -> np.ndarray:
        """Return the direction in which gradients by the controls are checked, [steps, 12]."""
        return np.random.default_rng(20210718).normal(size=(self.steps, 12))


def emit(**row: Any) -> None:
    """Print one row; the driver adds the peer's name and version."""
    print(json.dumps(row), flush=True)


def failed(what: str, error: BaseException) -> None:
    """Print a row that says why there are no figures."""
    text = " ".join(str(error).split()) or type(error).__name__
    emit(what=what, note=f"{type(error).__name__}: {text}"[:160])


def timed(call: Callable[[], Any], repeats: int) -> tuple[Any, float]:
    """Return the call's result and the median of its seconds of processor time; it has run once before."""
    seconds = []
    for _ in range(repeats):
        start = time.process_time()
        result = call()
        seconds.append(time.process_time() - start)
    return result, statistics.median(seconds)


def once(call: Callable[[], Any]) -> tuple[Any, float]:
    """Return the call's result and its seconds of processor time, compilation included."""
    start = time.process_time()
    result = call()
    return result, time.process_time() - start


def difference_error(
    loss: Callable[[np.ndarray], float],
    controls: np.ndarray,
    gradient: np.ndarray,
    direction: np.ndarray,
    h: float,
) -> float:
    """Return |g.d - difference| / |difference| along one direction d; the difference is central."""
    difference = (loss(controls + h * direction) - loss(controls - h * direction)) / (2 * h)
    return float(abs(np.sum(gradient * direction) - difference) / abs(difference))

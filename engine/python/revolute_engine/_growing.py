"""States of a rollout that others read while it is computed."""

from __future__ import annotations

import numpy as np

from . import _native
from ._model import Model


class GrowingStates:
    """Memory for all states of a rollout of one environment, and how many of them are there.

    Args:
        model: the model.
        steps: of the rollout.

    Attributes:
        qpos: positions [1, time + 1, nq]; the first `count` of them are there.
        qvel: velocities [1, time + 1, nv], likewise.
        progress: counts them.
    """

    def __init__(self, model: Model, steps: int) -> None:
        self.qpos = np.empty((1, steps + 1, model.nq))
        self.qvel = np.empty((1, steps + 1, model.nv))
        self.progress = _native.Progress()

    @property
    def count(self) -> int:
        """Number of states that are there, and stay as they are."""
        states: int = self.progress.states
        return states

"""States of a rollout that others read while it is computed."""

from __future__ import annotations

import numpy as np

from . import _native
from ._model import Model


class GrowingStates:
    """Memory for all states of a rollout, and how many of them are there.

    Args:
        model: the model.
        batch: number of environments.
        steps: of the rollout.

    Attributes:
        qpos: positions [batch, time + 1, nq]; the first `count` rows are there, in the order in which
            they lie in memory.
        qvel: velocities [batch, time + 1, nv], likewise.
        progress: counts them.
    """

    def __init__(self, model: Model, batch: int, steps: int) -> None:
        self.qpos = np.empty((batch, steps + 1, model.nq))
        self.qvel = np.empty((batch, steps + 1, model.nv))
        self.progress = _native.Progress()

    @property
    def count(self) -> int:
        """Number of states that are there, and stay as they are."""
        states: int = self.progress.states
        return states


def grows(batch: int) -> bool:
    """Tell whether states of a batch are there before the last: environments of one pack end together."""
    return batch == 1 or batch > _native.lanes

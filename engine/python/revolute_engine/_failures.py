"""Errors of failed calls: cancelled, diverged, out of memory."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from revolute.contract.errors import DivergedError, LimitError

from ._model import Model
from ._results import Cancelled


def cancelled(call: str) -> Cancelled:
    return Cancelled(f"{call}: stopped by its cancel token; nothing was computed")


def all_diverged(model: Model, diverged_step: npt.NDArray[np.int64]) -> DivergedError:
    first = int(np.argmin(diverged_step))
    return DivergedError(
        f"rollout: expected at least one environment with finite states, got none of {len(diverged_step)}: "
        f"model '{model.name}' diverged first at step {int(diverged_step[first])} in environment {first}; "
        "use a smaller timestep or smaller controls",
        argument="rollout",
    )


def not_finite(call: str, completed: npt.NDArray[np.bool_]) -> DivergedError:
    """Return the error for non-finite derivatives in every environment: the trajectory is too unstable."""
    first = int(np.argmax(completed))
    return DivergedError(
        f"{call}: expected finite derivatives in at least one environment, got none; the states of "
        f"environment {first} are finite, but their derivatives grow beyond all numbers; use fewer steps or "
        "smaller cotangents",
        argument=call,
    )


def states_bytes(model: Model, batch: int, states: int) -> int:
    return batch * states * (model.nq + model.nqvel) * 8


def too_large(model: Model, batch: int, steps: int, states: int) -> LimitError:
    size = states_bytes(model, batch, states)
    return LimitError(
        f"ctrl: expected a trajectory that fits in memory, got {batch} environments of {steps} steps "
        f"({size / 1e9:.3g} GB); simulate fewer at a time, or with checkpoints='slots=32'",
        argument="ctrl",
    )


def too_many_cotangents(count: int, size: int) -> LimitError:
    return LimitError(
        f"qpos_bar: expected gradients that fit in memory, got {count} of {size / 1e9:.3g} GB each; "
        "pull fewer cotangents back at a time",
        argument="qpos_bar",
    )

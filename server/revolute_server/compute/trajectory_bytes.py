"""Sizes in bytes of the arrays of a rollout and of its gradient, before either is computed."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from revolute.contract.checkpoints import Checkpoints
from revolute_engine import Model, Rollout


def _batch_and_time(ctrl: Any) -> tuple[int, int]:
    """Return batch and time of controls; zeros for an invalid shape, which is refused later."""
    shape = np.shape(ctrl)
    if len(shape) not in (2, 3):
        return 0, 0
    return (shape[0] if len(shape) == 3 else 1), shape[-2]


def kept_bytes(model: Model, ctrl: Any, checkpoints: Checkpoints) -> int:
    """Return the bytes that a rollout with these controls keeps, including controls and final state."""
    batch, steps = _batch_and_time(ctrl)
    states = checkpoints.kept_states(steps) + (checkpoints.policy != "every")
    return 8 * batch * (states * (model.nq + model.nqvel) + steps * model.nu)


def working_bytes(model: Model, ctrl: Any, checkpoints: Checkpoints) -> int:
    """Return the bytes of states that a backward pass holds at a time, if all environments run at once."""
    batch, steps = _batch_and_time(ctrl)
    return 8 * batch * checkpoints.working_states(steps) * (model.nq + model.nqvel)


def states_bytes(model: Model, ctrl: Any) -> int:
    """Return the bytes of all states."""
    batch, steps = _batch_and_time(ctrl)
    return 8 * batch * (steps + 1) * (model.nq + model.nqvel)


def gradient_bytes(
    model: Model,
    rollout: Rollout,
    qpos_bar: Any,
    qvel_bar: Any,
    wrt: Sequence[str],
    times: Sequence[int] | None,
) -> int:
    """Return the bytes of a gradient, of a copy of its cotangents, and of the states held during the pass."""
    given = np.size(qpos_bar) + np.size(qvel_bar)
    states = rollout.batch * (rollout.steps + 1 if times is None else max(1, len(times)))
    sizes = (
        np.size(qpos_bar) // max(1, states * model.nq),
        np.size(qvel_bar) // max(1, states * model.nqvel),
    )
    by_ctrl = rollout.ctrl.size if "ctrl" in wrt else 0
    return 8 * (given + max(1, *sizes) * by_ctrl) + working_bytes(model, rollout.ctrl, rollout.checkpoints)

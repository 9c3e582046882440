"""Sizes in bytes of the arrays of a rollout and of its gradient, before either is computed."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from revolute.contract.checkpoints import Checkpoints
from revolute.contract.controllers import PLAIN, Control
from revolute_engine import Model, Rollout


def _batch_and_rows(ctrl: Any) -> tuple[int, int]:
    """Return batch and rows of controls; zeros for an invalid shape, which is refused later."""
    shape = np.shape(ctrl)
    if len(shape) not in (2, 3):
        return 0, 0
    return (shape[0] if len(shape) == 3 else 1), shape[-2]


def kept_bytes(model: Model, ctrl: Any, checkpoints: Checkpoints, control: Control = PLAIN) -> int:
    """Return the bytes that a rollout with these controls keeps, including controls and final state."""
    batch, rows = _batch_and_rows(ctrl)
    states = checkpoints.kept_states(rows * control.hold) + (checkpoints.policy != "every")
    controller = sum(array.nbytes for array in control.arrays.values())
    return controller + 8 * batch * (states * (model.nq + model.nqvel) + rows * model.nu)


def working_bytes(model: Model, ctrl: Any, checkpoints: Checkpoints, control: Control = PLAIN) -> int:
    """Return the bytes of states that a backward pass holds at a time, if all environments run at once."""
    batch, rows = _batch_and_rows(ctrl)
    return 8 * batch * checkpoints.working_states(rows * control.hold) * (model.nq + model.nqvel)


def states_bytes(model: Model, ctrl: Any, control: Control = PLAIN) -> int:
    """Return the bytes of all states."""
    batch, rows = _batch_and_rows(ctrl)
    return 8 * batch * (rows * control.hold + 1) * (model.nq + model.nqvel)


def controller_bytes(model: Model, ctrl: Any, control: Control, wrt: Sequence[str]) -> int:
    """Return the bytes of the gradients by a controller's arrays, before they are summed."""
    batch, rows = _batch_and_rows(ctrl)
    each = {
        "feedback.gain": rows * model.nu * (model.nv + model.nqvel),
        "feedback.qpos": rows * model.nq,
        "feedback.qvel": rows * model.nqvel,
        "qfrc_applied": rows * model.nv,
        "xfrc_applied": rows * 6 * model.nbody,
        "mocap_pos": rows * 3 * model.nmocap,
        "mocap_quat": rows * 4 * model.nmocap,
    }
    if control.policy is not None:
        goal = control.policy.goal
        each |= {
            "policy.weights": control.policy.weights.size,
            "policy.goal": 0 if goal is None else rows * goal.shape[-1],
        }
    return 8 * batch * sum(each[name] for name in set(wrt) & set(control.arrays))


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
    by_controller = controller_bytes(model, rollout.ctrl, rollout.control, wrt)
    working = working_bytes(model, rollout.ctrl, rollout.checkpoints, rollout.control)
    return 8 * given + max(1, *sizes) * (8 * by_ctrl + by_controller) + working

"""Binds the controllers of a rollout to its model and shape, in the compiled engine's form."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from revolute.contract.arrays import Float64Array, as_float64
from revolute.contract.controllers import ACTIVATIONS, MLP, OBSERVATIONS, Control, Feedback
from revolute.contract.errors import ArgumentError

from . import native
from ._model import Model
from ._probes import Probe, numbers_of, quantity_probes
from .parameters import check_finite
from .step_inputs import check_mocap_quat, input_shape

_CLOCK = native.probe_kinds.index("clock")

NativeController = dict[str, Any] | None
"""The arrays of a controller, broadcast to [batch, periods, n], and its numbers, by name."""


def bind(model: Model, control: Control, batch: int, periods: int, batched: bool) -> NativeController:
    """Return a controller in the compiled engine's form.

    Args:
        model: the model.
        control: how the rows of ctrl act.
        batch: number of environments.
        periods: rows of ctrl.
        batched: whether ctrl has a batch axis.

    Raises:
        ArgumentError: an array or a layer does not fit the model or ctrl.
    """
    axes = (batch, periods, batched)
    found: dict[str, Any] = {}
    if control.feedback is not None:
        found = _feedback(model, control.feedback, axes)
    if control.policy is not None:
        found = _policy(model, control.policy, axes)
        if control.previous_ctrl is not None:
            check_no_clock(found)
            previous = np.broadcast_to(control.previous_ctrl, (batch, model.nu))
            found["previous_ctrl"] = previous[:, None]
    found |= {
        name: _periods(name, array, input_shape(model, name), axes) for name, array in control.inputs.items()
    }
    check_mocap_quat(control.mocap_quat)
    return found or None


def check_no_clock(controller: NativeController) -> None:
    """Raise an error for a policy that observes the time, which a rollout in parts does not know.

    Args:
        controller: as of `bind`.
    """
    observed = (controller or {}).get("observe", [])
    if any(probe[0] == _CLOCK for _kind, probes in observed for probe in probes):
        raise ArgumentError.expected(
            "policy.observe",
            "no clock in a streamed rollout or a session",
            "one",
            advice="use a rollout in one piece, or give the time as goal",
        )


def bind_tangents(
    model: Model,
    control: Control,
    tangents: Mapping[str, Any] | None,
    batch: int,
    periods: int,
    batched: bool,
) -> NativeController:
    """Return tangents of a controller's arrays in the compiled engine's form.

    Args:
        model: the model.
        control: how the rows of ctrl act.
        tangents: by the names of the arrays in `wrt`, shaped like these; that of feedback.qpos has nv
            numbers. None for zero.
        batch: number of environments.
        periods: rows of ctrl.
        batched: whether ctrl has a batch axis.

    Raises:
        ArgumentError: there is no such array, or a shape does not fit.
    """
    found: dict[str, Any] = {}
    for name, value in (tangents or {}).items():
        if name not in control.arrays:
            known = ", ".join(control.arrays) or "none: the rollout has no controller"
            raise ArgumentError.expected("control_tan", f"names among {known}", repr(name)[:60])
        label, own = f"control_tan.{name}", control.arrays[name]
        array = as_float64(label, value)
        check_finite(label, array)
        if name == "policy.weights":
            if array.shape != own.shape:
                raise ArgumentError.expected(label, f"shape {list(own.shape)}", list(array.shape))
            found["weights"] = array
            continue
        size = own.shape[own.ndim - AXES_OF_OWN[name] :]
        if name == "feedback.qpos":
            size = (model.nv,)
        found[name.rpartition(".")[2]] = _periods(label, array, size, (batch, periods, batched))
    return found or None


def _feedback(model: Model, feedback: Feedback, axes: tuple[int, int, bool]) -> dict[str, Any]:
    sizes = {"gain": (model.nu, model.nv + model.nqvel), "qpos": (model.nq,), "qvel": (model.nqvel,)}
    found = {
        name: _periods(f"feedback.{name}", getattr(feedback, name), size, axes)
        for name, size in sizes.items()
    }
    for _joint, start in model.quaternions:
        if not (np.linalg.norm(feedback.qpos[..., start : start + 4], axis=-1) > 0).all():
            raise ArgumentError.expected(
                "feedback.qpos", "quaternions (w x y z) of non-zero length", "one of zeros"
            )
    return found


def _policy(model: Model, policy: MLP, axes: tuple[int, int, bool]) -> dict[str, Any]:
    goal = np.empty(0) if policy.goal is None else policy.goal
    if goal.ndim == 0:
        raise ArgumentError.expected("policy.goal", "shape [n], [time, n] or [batch, time, n]", "a number")
    observed = {name: _observed(model, name) for name in policy.observe}
    own = {
        "qpos": model.nq + 2 * len(model.quaternions),
        "qvel": model.nqvel,
        "previous_ctrl": model.nu,
        "goal": goal.shape[-1],
    }
    counts = {
        name: own[name] if name in own else numbers_of(probes) for name, (_, probes) in observed.items()
    }
    inputs = sum(counts.values())
    if (policy.sizes[0], policy.sizes[-1]) != (inputs, model.nu):
        parts = ", ".join(f"{name} {count}" for name, count in counts.items())
        raise ArgumentError.expected(
            "policy.weights",
            f"a network of {inputs} inputs ({parts}) and nu={model.nu} outputs",
            f"one of {policy.sizes[0]} and {policy.sizes[-1]}",
        )
    if policy.scale.shape not in ((), (model.nu,)):
        raise ArgumentError.expected(
            "policy.scale", f"a number or shape [nu={model.nu}]", list(policy.scale.shape)
        )
    return {
        "observe": list(observed.values()),
        "hidden": list(policy.sizes[1:-1]),
        "activation": ACTIVATIONS.index(policy.activation),
        "squash": policy.squash,
        "weights": policy.weights,
        "scale": np.array(np.broadcast_to(policy.scale, (model.nu,))),
        "goal": _periods("policy.goal", goal, goal.shape[-1:], axes),
    }


def _observed(model: Model, name: str) -> tuple[int, list[Probe]]:
    """Return the place of an observation in the engine's enum ObservationKind, and what it measures."""
    if name in OBSERVATIONS:
        return OBSERVATIONS.index(name), []
    return len(OBSERVATIONS), quantity_probes(model, "policy.observe", name)


def _periods(
    name: str, array: Float64Array, size: Sequence[int], axes: tuple[int, int, bool]
) -> Float64Array:
    """Broadcast an array to [batch, periods, n], one row for each row of ctrl."""
    batch, periods, batched = axes
    leading = (batch, periods) if batched else (periods,)
    given, tail = array.shape[: array.ndim - len(size)], array.shape[array.ndim - len(size) :]
    fits = len(given) <= len(leading) and all(
        here in (1, there) for here, there in zip(given[::-1], leading[::-1], strict=False)
    )
    if tail != tuple(size) or not fits:
        own, first = ", ".join(map(str, size)), f"batch={batch}, " if batched else ""
        raise ArgumentError.expected(
            name,
            f"shape [{own}] or [{first}time={periods}, {own}]",
            list(array.shape),
            advice="an axis of length 1 repeats; there is one time per row of ctrl",
        )
    count = int(np.prod(size))
    return np.broadcast_to(array.reshape(*given, count), (batch, periods, count))


def is_shared(array: Float64Array, axes_of_own: int, batch: int) -> bool:
    """Tell whether all environments share an array of a controller.

    Args:
        array: the array as given.
        axes_of_own: number of its axes without batch and time.
        batch: number of environments.
    """
    return array.ndim < axes_of_own + 2 or (len(array) == 1 and batch > 1)


AXES_OF_OWN = {
    "feedback.gain": 2,
    "feedback.qpos": 1,
    "feedback.qvel": 1,
    "policy.goal": 1,
    "qfrc_applied": 1,
    "xfrc_applied": 2,
    "mocap_pos": 2,
    "mocap_quat": 2,
}
"""Axes of a controller's arrays besides batch and time; weights have neither."""

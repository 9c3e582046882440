"""Checks the arguments of the engine's calls: shapes, finite numbers, quaternions and names.

The batch axis is optional. `ctrl` decides: [batch, time, nu] is a batch, [time, nu] a single environment.
Nothing is guessed from sizes. All environments of a batch share a state without a batch axis. A batch axis of
length 1 repeats, including that of ctrl if a state has a longer one.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

import numpy as np

from revolute.contract.arrays import Float64Array, as_float64, owned_float64, repeated_controls
from revolute.contract.checkpoints import EVERY, Checkpoints
from revolute.contract.controllers import PLAIN, Control
from revolute.contract.errors import ArgumentError

from . import native
from ._controllers import NativeController, bind
from ._failures import states_bytes, too_large
from ._model import Model
from ._names import element_name
from .parameters import check_finite, check_params, parameter_rows

_MIN_QUATERNION = 1e-8
QUATERNION_SQUARES = (_MIN_QUATERNION**2, _MIN_QUATERNION**-2)
"""Smallest and largest squared length of a valid quaternion."""

_PHYSICAL_MEMORY = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
"""Physical memory of this machine in bytes; larger trajectories are rejected."""


class Problem(NamedTuple):
    """The checked arguments of a rollout, each with its batch axis.

    Attributes:
        qpos: start positions [batch, nq].
        qvel: start velocities [batch, nv].
        ctrl: controls [batch, periods, nu].
        params: model parameters by name, as given; without a batch axis, the environments share them.
        batched: whether the user gave a batch axis.
        control: how the rows of ctrl act.
        controller: the controller in the compiled engine's form.
    """

    qpos: Float64Array
    qvel: Float64Array
    ctrl: Float64Array
    params: dict[str, Float64Array]
    batched: bool
    control: Control = PLAIN
    controller: NativeController = None

    @property
    def steps(self) -> int:
        """Number of steps T."""
        return self.ctrl.shape[1] * self.control.hold

    def native_inputs(
        self,
    ) -> tuple[Float64Array, Float64Array, Float64Array, int, NativeController, dict[str, Float64Array]]:
        """Return the inputs as the compiled engine takes them."""
        rows = parameter_rows(self.params)
        return self.qpos, self.qvel, self.ctrl, self.control.hold, self.controller, rows


def check_rollout(
    model: Model,
    qpos: Any,
    qvel: Any,
    ctrl: Any,
    params: Mapping[str, Any] | None,
    control: Control = PLAIN,
    checkpoints: Checkpoints = EVERY,
    *,
    all_states: bool = False,
    copy_ctrl: bool = True,
    copy_states: bool = True,
) -> Problem:
    """Check the arguments of a rollout.

    Args:
        model: the model.
        qpos: start positions [batch, nq] or [nq].
        qvel: start velocities [batch, nv] or [nv].
        ctrl: controls [batch, time, nu] or [time, nu].
        params: model parameters by name, without or with batch axis.
        control: how the rows of ctrl act.
        checkpoints: which states are kept.
        all_states: whether the result holds all states.
        copy_ctrl: copy the controls, e.g. because the result keeps them.
        copy_states: copy the start states.

    Returns:
        The arguments as float64 arrays. Without `copy_ctrl` or `copy_states` they may share the user's
        memory.

    Raises:
        ArgumentError: an argument is wrong.
        LimitError: the trajectory does not fit in this machine's memory.
    """
    controls = owned_float64("ctrl", ctrl) if copy_ctrl else as_float64("ctrl", ctrl)
    read_state = owned_float64 if copy_states else as_float64
    start = {"qpos": read_state("qpos", qpos), "qvel": read_state("qvel", qvel)}

    def states(steps: int) -> int:
        return checkpoints.states(steps) + (steps + 1 if all_states and checkpoints.policy != "every" else 1)

    sound = _sound(model, start["qpos"], start["qvel"], controls, 2) if params is None else None
    if sound is not None:
        problem, steps = sound, sound.ctrl.shape[1] * control.hold
        _check_memory(model, len(sound.ctrl), steps, states(steps))
    else:
        problem = _check(model, start, controls, params, ("time", f"nu={model.nu}"), states, control.hold)
    if control is PLAIN:
        return problem
    batch, periods = problem.ctrl.shape[:2]
    controller = bind(model, control, batch, periods, problem.batched)
    return problem._replace(control=control, controller=controller)


def check_step(model: Model, qpos: Any, qvel: Any, ctrl: Any, params: Mapping[str, Any] | None) -> Problem:
    """Check the arguments of one step, as `check_rollout` does; ctrl is [batch, nu] or [nu].

    The arrays may share the user's memory, because nothing is kept after the call.
    """
    controls = as_float64("ctrl", ctrl)
    position, velocity = as_float64("qpos", qpos), as_float64("qvel", qvel)
    if params is None and (problem := _sound(model, position, velocity, controls, 1)) is not None:
        return problem
    start = {"qpos": position, "qvel": velocity}
    return _check(model, start, controls, params, (f"nu={model.nu}",), lambda _: 2)


def _sound(
    model: Model, qpos: Float64Array, qvel: Float64Array, ctrl: Float64Array, axes: int
) -> Problem | None:
    """Check everything in one native call; separate checks take as long as one step.

    Args:
        model: the model.
        qpos: start positions.
        qvel: start velocities.
        ctrl: controls.
        axes: number of axes of ctrl without the batch axis.

    Returns:
        The arguments; None if an array is wrong, or has to be repeated, or is too large for this check.
    """
    if not native.are_sound(model.native, qpos, qvel, ctrl, axes, *QUATERNION_SQUARES):
        return None
    if ctrl.ndim > axes:
        return Problem(qpos, qvel, ctrl, {}, batched=True)
    return Problem(qpos[None], qvel[None], ctrl[None], {}, batched=False)


def _check(
    model: Model,
    states: dict[str, Float64Array],
    controls: Float64Array,
    params: Mapping[str, Any] | None,
    axes: tuple[str, ...],
    count_states: Callable[[int], int],
    hold: int = 1,
) -> Problem:
    """Check all arguments.

    Args:
        model: the model.
        states: start states by name.
        controls: ctrl.
        params: model parameters by name.
        axes: axes of ctrl without the batch axis.
        count_states: returns the number of states held per environment, for a number of steps.
        hold: steps that each row of ctrl acts for.
    """
    repeated = repeated_controls(controls, states["qpos"], states["qvel"], axes=len(axes))
    if repeated is not controls:
        controls = np.ascontiguousarray(repeated)
    batch, batched = _batch(model, controls, states, axes)
    steps = controls.shape[-2] * hold if "time" in axes else 1
    _check_memory(model, batch, steps, count_states(steps))
    check_finite("ctrl", controls)
    for name, state in states.items():
        states[name] = _state(model, name, state, batch, batched)
    return Problem(
        qpos=states["qpos"],
        qvel=states["qvel"],
        ctrl=controls if batched else controls[None],
        params=check_params(model, params, batch, batched),
        batched=batched,
    )


def _check_memory(model: Model, batch: int, steps: int, count: int) -> None:
    """Refuse a trajectory of which `count` states per environment do not fit in this machine's memory."""
    if states_bytes(model, batch, count) > _PHYSICAL_MEMORY:
        raise too_large(model, batch, steps, count)


def _batch(
    model: Model, ctrl: Float64Array, states: Mapping[str, Float64Array], axes: tuple[str, ...]
) -> tuple[int, bool]:
    """Return the number of environments and whether there is a batch axis; check the shape of ctrl."""
    batched = ctrl.ndim == len(axes) + 1
    if not (batched or ctrl.ndim == len(axes)) or ctrl.shape[-1] != model.nu:
        known = next((str(len(state)) for state in states.values() if state.ndim == 2 and len(state)), None)
        first = f"batch={known}" if known and batched else "batch"
        with_batch, without = (f"[{', '.join(each)}]" for each in ((first, *axes), axes))
        raise ArgumentError.expected(
            "ctrl",
            f"shape {with_batch}" + ("" if batched else f" or {without}"),
            list(ctrl.shape),
            advice=_sizes(model),
        )
    if batched and len(ctrl) == 0:
        raise ArgumentError.expected("ctrl", "a batch of at least one environment", list(ctrl.shape))
    return len(ctrl) if batched else 1, batched


def _sizes(model: Model) -> str:
    return f"model '{model.name}' has {model.nu} actuators and {model.nv} velocities"


def _state(model: Model, name: str, state: Float64Array, batch: int, batched: bool) -> Float64Array:
    """Return a start state as [batch, n], checked."""
    symbol = {"qpos": "nq", "qvel": "nv + na" if model.na else "nv"}[name]
    size = {"qpos": model.nq, "qvel": model.nqvel}[name]
    if name == "qvel" and model.na and state.shape[-1:] == (model.nv,):
        # velocities alone: no activation
        state = np.concatenate([state, np.zeros((*state.shape[:-1], model.na))], axis=-1)
    shared = state.shape == (size,) or (batched and state.shape == (1, size))
    if not shared and not (batched and state.shape == (batch, size)):
        shapes = (
            f"shape [batch={batch}, {symbol}={size}] or [{symbol}={size}]"
            if batched
            else f"shape [{symbol}={size}]"
        )
        activations = f", na={model.na}" if model.na else ""
        advice = f"model '{model.name}' has nq={model.nq} and nv={model.nv}{activations}"
        if not batched and state.ndim == 2:
            advice = "ctrl has no batch axis: leave it out here too, or give ctrl one"
        raise ArgumentError.expected(name, shapes, list(state.shape), advice=advice)
    check_finite(name, state)
    if name == "qpos":
        check_quaternions(model, state)
    if not shared:
        return state
    row = state.reshape(1, size)
    return row if batch == 1 else np.repeat(row, batch, axis=0)


def check_quaternions(model: Model, qpos: Float64Array) -> None:
    """Raise an error for quaternions of zero length. The engine normalises all others."""
    shortest, longest = QUATERNION_SQUARES
    if native.quaternions_within(model.native, qpos, shortest, longest):
        return
    rows = qpos.reshape(-1, model.nq)
    for joint, start in model.quaternions:
        quaternions = rows[:, start : start + 4]
        squares = np.einsum("ij,ij->i", quaternions, quaternions).tolist()
        row = next((row for row, square in enumerate(squares) if not shortest < square < longest), None)
        if row is None:
            continue
        values = " ".join(f"{value:g}" for value in rows[row, start : start + 4])
        name = element_name(model.mujoco_model, "joint", joint)
        where = f"[{row}, {start}:{start + 4}]" if qpos.ndim == 2 else f"[{start}:{start + 4}]"
        raise ArgumentError.expected(
            "qpos",
            "a quaternion (w x y z) of non-zero length",
            f"[{values}]",
            at=where,
            advice=f"it is the orientation of {name}, at rest [1 0 0 0]",
        )

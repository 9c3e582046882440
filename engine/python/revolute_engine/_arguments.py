"""Checks what users pass to the engine: shapes, finite numbers, quaternions and names, before any work
starts.

The batch axis may be left out. `ctrl` decides: [batch, time, nu] is a batch, [time, nu] a single environment.
Nothing is guessed from sizes. A state without batch axis is shared by all environments of a batch.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from revolute.contract.arrays import as_float64, owned_float64
from revolute.contract.checkpoints import EVERY, Checkpoints
from revolute.contract.errors import ArgumentError

from . import native
from ._failures import states_bytes, too_large
from ._model import Model
from ._names import element_name
from .parameters import check_finite, check_params

Float64Array = npt.NDArray[np.float64]

_MIN_QUATERNION = 1e-8
QUATERNION_SQUARES = (_MIN_QUATERNION**2, _MIN_QUATERNION**-2)
"""Squared lengths between which a quaternion has a direction."""

_MEMORY = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
"""Bytes of this machine; no trajectory is larger."""


class Problem(NamedTuple):
    """The checked arguments of a rollout, each with its batch axis.

    Attributes:
        qpos: start positions [batch, nq].
        qvel: start velocities [batch, nv].
        ctrl: controls [batch, time, nu].
        params: model parameters by name, as given: without batch axis they are shared.
        batched: the user gave a batch axis.
    """

    qpos: Float64Array
    qvel: Float64Array
    ctrl: Float64Array
    params: dict[str, Float64Array]
    batched: bool


def check_rollout(
    model: Model,
    qpos: Any,
    qvel: Any,
    ctrl: Any,
    params: Mapping[str, Any] | None,
    *,
    checkpoints: Checkpoints = EVERY,
    all_states: bool = False,
    own_ctrl: bool = True,
    own_states: bool = True,
) -> Problem:
    """Check the arguments of a rollout.

    Args:
        model: the model.
        qpos: start positions [batch, nq] or [nq].
        qvel: start velocities [batch, nv] or [nv].
        ctrl: controls [batch, time, nu] or [time, nu].
        params: model parameters by name, without or with batch axis.
        checkpoints: which states are kept.
        all_states: all states are asked for.
        own_ctrl: the controls are kept beyond the call, so they may share no memory with the user's.
        own_states: likewise the start states.

    Returns:
        The arguments as float64 arrays that share no memory with the user's, except as `own_ctrl` and
        `own_states` say.

    Raises:
        ArgumentError: names the argument, what was expected and what was given.
        LimitError: no machine like this has the memory.
    """
    controls = owned_float64("ctrl", ctrl) if own_ctrl else as_float64("ctrl", ctrl)
    read_state = owned_float64 if own_states else as_float64
    start = {"qpos": read_state("qpos", qpos), "qvel": read_state("qvel", qvel)}

    def states(steps: int) -> int:
        return checkpoints.states(steps) + (steps + 1 if all_states and checkpoints.policy != "every" else 1)

    return _check(model, start, controls, params, ("time", f"nu={model.nu}"), states)


def check_step(model: Model, qpos: Any, qvel: Any, ctrl: Any, params: Mapping[str, Any] | None) -> Problem:
    """Check the arguments of one step, as `check_rollout` does; ctrl is [batch, nu] or [nu].

    Nothing is kept beyond the call, so the arrays may be the user's.
    """
    controls = as_float64("ctrl", ctrl)
    position, velocity = as_float64("qpos", qpos), as_float64("qvel", qvel)
    if params is None and native.is_sound_step(
        model.native, position, velocity, controls, *QUATERNION_SQUARES
    ):
        # one environment or few at their best, in one look: a step is as short as the looks one by one
        if controls.ndim == 2:
            return Problem(position, velocity, controls, {}, batched=True)
        return Problem(position[None], velocity[None], controls[None], {}, batched=False)
    start = {"qpos": position, "qvel": velocity}
    return _check(model, start, controls, params, (f"nu={model.nu}",), lambda _: 2)


def _check(
    model: Model,
    states: dict[str, Float64Array],
    controls: Float64Array,
    params: Mapping[str, Any] | None,
    axes: tuple[str, ...],
    count_states: Callable[[int], int],
) -> Problem:
    """Check all arguments; `axes` are those of ctrl without the batch, `count_states` gives the states per
    environment that so many steps need."""
    batch, batched = _batch(model, controls, states, axes)
    steps = controls.shape[-2] if "time" in axes else 1
    count = count_states(steps)
    if states_bytes(model, batch, count) > _MEMORY:
        raise too_large(model, batch, steps, count)
    check_finite("ctrl", controls)
    for name, state in states.items():
        states[name] = _state(model, name, state, batch, batched)
    return Problem(
        **states,
        ctrl=controls if batched else controls[None],
        params=check_params(model, params, batch, batched),
        batched=batched,
    )


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
    symbol = {"qpos": "nq", "qvel": "nv"}[name]
    size = getattr(model, symbol)
    shared = state.shape == (size,)
    if not shared and not (batched and state.shape == (batch, size)):
        shapes = (
            f"shape [batch={batch}, {symbol}={size}] or [{symbol}={size}]"
            if batched
            else f"shape [{symbol}={size}]"
        )
        advice = f"model '{model.name}' has nq={model.nq} and nv={model.nv}"
        if not batched and state.ndim == 2:
            advice = "ctrl has no batch axis: leave it out here too, or give ctrl one"
        raise ArgumentError.expected(name, shapes, list(state.shape), advice=advice)
    check_finite(name, state)
    if name == "qpos":
        _check_quaternions(model, state)
    if not shared:
        return state
    return state[None] if batch == 1 else np.repeat(state[None], batch, axis=0)


def _check_quaternions(model: Model, qpos: Float64Array) -> None:
    """Refuse quaternions without a direction; the engine normalises all others."""
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

"""Checks what users pass to the engine: shapes, finite numbers, quaternions and names, before any work
starts.

The batch axis may be left out. `ctrl` decides: [batch, time, nu] is a batch, [time, nu] a single environment.
Nothing is guessed from sizes. A state without batch axis is shared by all environments of a batch.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from revolute.arrays import as_float64, owned_float64
from revolute.errors import ArgumentError

from ._model import Model

Float64Array = npt.NDArray[np.float64]

INPUTS = ("qpos", "qvel", "ctrl")
"""Inputs of a rollout that gradients are given by."""

PARAMETERS = {"geom_friction": "ngeom", "body_mass": "nbody"}
"""Model parameters that may be given per environment and differentiated by, with their size's name."""

_MIN_QUATERNION = 1e-8


@dataclass(frozen=True)
class Problem:
    """The checked arguments of a rollout, each with its batch axis.

    Attributes:
        qpos: start positions [batch, nq].
        qvel: start velocities [batch, nv].
        ctrl: controls [batch, time, nu].
        params: model parameters by name, [1, n] shared or [batch, n] per environment.
        shared: names of the parameters that were given without batch axis.
        batched: the user gave a batch axis.
    """

    qpos: Float64Array
    qvel: Float64Array
    ctrl: Float64Array
    params: dict[str, Float64Array]
    shared: frozenset[str]
    batched: bool


def check_rollout(model: Model, qpos: Any, qvel: Any, ctrl: Any, params: Mapping[str, Any] | None) -> Problem:
    """Check the arguments of a rollout.

    Args:
        model: the model.
        qpos: start positions [batch, nq] or [nq].
        qvel: start velocities [batch, nv] or [nv].
        ctrl: controls [batch, time, nu] or [time, nu].
        params: model parameters by name, [n] or [batch, n].

    Returns:
        The arguments as float64 arrays that share no memory with the user's.

    Raises:
        ArgumentError: names the argument, what was expected and what was given.
    """
    controls = owned_float64("ctrl", ctrl)
    states = {"qpos": owned_float64("qpos", qpos), "qvel": owned_float64("qvel", qvel)}
    batched = controls.ndim == 3
    batch = _batch_size(model, controls, states)
    if not batched:
        controls = controls[None]
    _check_finite("ctrl", controls if batched else controls[0])
    for name, state in states.items():
        states[name] = _state(model, name, state, batch, batched)
    checked = _params(model, params, batch, batched)
    shared = frozenset(name for name, value in checked.items() if value.ndim == 1)
    rows = {name: np.atleast_2d(value) for name, value in checked.items()}
    return Problem(**states, ctrl=controls, params=rows, shared=shared, batched=batched)


def _batch_size(model: Model, ctrl: Float64Array, states: Mapping[str, Float64Array]) -> int:
    """Return the number of environments; check the shape of ctrl."""
    known = next((str(len(state)) for state in states.values() if state.ndim == 2 and len(state)), None)
    axes = f"batch={known}" if known and ctrl.ndim == 3 else "batch"
    if ctrl.ndim not in (2, 3) or ctrl.shape[-1] != model.nu:
        raise ArgumentError.expected(
            "ctrl",
            f"shape [{axes}, time, nu={model.nu}]" + ("" if ctrl.ndim == 3 else f" or [time, nu={model.nu}]"),
            list(ctrl.shape),
            advice=_sizes(model),
        )
    if ctrl.ndim == 3 and len(ctrl) == 0:
        raise ArgumentError.expected("ctrl", "a batch of at least one environment", list(ctrl.shape))
    return len(ctrl) if ctrl.ndim == 3 else 1


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
    _check_finite(name, state)
    if name == "qpos":
        _check_quaternions(model, state)
    return np.repeat(state[None], batch, axis=0) if shared else state


def _check_finite(name: str, array: Float64Array) -> None:
    """Refuse NaN and infinity, with the place of the first one."""
    finite = np.isfinite(array)
    if not finite.all():
        where = tuple(int(index) for index in np.argwhere(~finite)[0])
        raise ArgumentError.expected(
            name, "finite values", array[where], at=str(list(where)), advice="replace it before the call"
        )


def _check_quaternions(model: Model, qpos: Float64Array) -> None:
    """Refuse quaternions without a direction; the engine normalises all others."""
    rows = qpos.reshape(-1, model.nq)
    for joint, start in _quaternion_addresses(model):
        length = np.linalg.norm(rows[:, start : start + 4], axis=1)
        bad = np.flatnonzero(~((length > _MIN_QUATERNION) & (length < 1 / _MIN_QUATERNION)))
        if bad.size:
            row = int(bad[0])
            values = " ".join(f"{value:g}" for value in rows[row, start : start + 4])
            where = f"[{row}, {start}:{start + 4}]" if qpos.ndim == 2 else f"[{start}:{start + 4}]"
            raise ArgumentError.expected(
                "qpos",
                "a quaternion (w x y z) of non-zero length",
                f"[{values}]",
                at=where,
                advice=f"it is the orientation of joint '{model.joint_names[joint]}', at rest [1 0 0 0]",
            )


def _quaternion_addresses(model: Model) -> list[tuple[int, int]]:
    """Return (joint, first index in qpos) of each quaternion."""
    kinds, addresses = model.arrays["jnt_type"], model.arrays["jnt_qposadr"]
    offset = {0: 3, 1: 0}
    return [
        (joint, int(addresses[joint]) + offset[kind])
        for joint, kind in enumerate(kinds.tolist())
        if kind in offset
    ]


def _params(
    model: Model, params: Mapping[str, Any] | None, batch: int, batched: bool
) -> dict[str, Float64Array]:
    """Return the model parameters as [n] or [batch, n], checked."""
    if params is None:
        return {}
    if not isinstance(params, Mapping):
        raise ArgumentError.expected("params", "a mapping of names to arrays", type(params).__name__)
    checked = {}
    for name, given in params.items():
        if name not in PARAMETERS:
            raise ArgumentError.expected("params", f"names among {', '.join(PARAMETERS)}", repr(name))
        checked[name] = _param(model, name, owned_float64(name, given), batch, batched)
    return checked


def _param(model: Model, name: str, value: Float64Array, batch: int, batched: bool) -> Float64Array:
    """Return one model parameter as [n] or [batch, n], checked."""
    symbol = PARAMETERS[name]
    size = getattr(model, symbol)
    if value.shape != (size,) and not (batched and value.shape == (batch, size)):
        per_env = f" or [batch={batch}, {symbol}={size}]" if batched else ""
        raise ArgumentError.expected(name, f"shape [{symbol}={size}]{per_env}", list(value.shape))
    _check_finite(name, value)
    least = (
        np.where(model.body_mass > 0, np.finfo(float).tiny, 0.0) if name == "body_mass" else np.zeros(size)
    )
    low = np.argwhere(value < least)
    if low.size:
        where = tuple(int(index) for index in low[0])
        what = "masses > 0 for bodies with mass" if name == "body_mass" else "coefficients >= 0"
        raise ArgumentError.expected(name, what, value[where], at=str(list(where)))
    return value


def check_wrt(wrt: Iterable[str]) -> list[str]:
    """Return the names to differentiate by, each once.

    Raises:
        ArgumentError: a name is not known; the text lists those that are.
    """
    valid = (*INPUTS, *PARAMETERS)
    names = [wrt] if isinstance(wrt, str) else list(wrt)
    for name in names:
        if name not in valid:
            raise ArgumentError.expected("wrt", f"names among {', '.join(valid)}", repr(name))
    if not names:
        raise ArgumentError.expected("wrt", f"at least one name among {', '.join(valid)}", "none")
    return list(dict.fromkeys(names))


def check_cotangents(
    shapes: Mapping[str, tuple[int, ...]],
    values: Mapping[str, Any],
    completed: npt.NDArray[np.bool_],
    batched: bool,
) -> tuple[dict[str, Float64Array], bool]:
    """Check the cotangents of a trajectory.

    Args:
        shapes: shape of each state array, with its batch axis, by the name of its cotangent.
        values: the cotangents as given, None for zero.
        completed: environments that did not diverge; the others' cotangents are taken as zero.
        batched: the trajectory has a batch axis.

    Returns:
        Arrays [K, batch, time + 1, n] by name, and whether the user gave the axis K.

    Raises:
        ArgumentError: a shape does not match the trajectory, or a number is not finite.
    """
    given = {name: as_float64(name, value) for name, value in values.items() if value is not None}
    if not given:
        raise ArgumentError.expected(" and ".join(shapes), "an array in at least one of them", "None in both")
    stacked = {name: _with_k(name, array, shapes[name], batched) for name, array in given.items()}
    has_k = {name: array.ndim == len(shapes[name]) + batched for name, array in given.items()}
    counts = {name: len(array) for name, array in stacked.items()}
    if len(set(counts.values())) > 1 or len(set(has_k.values())) > 1:
        got = " and ".join(f"{name} {list(array.shape)}" for name, array in given.items())
        raise ArgumentError.expected("qvel_bar", "the same number of cotangents as in qpos_bar", got)
    count = next(iter(counts.values()))
    for name, shape in shapes.items():
        array = stacked.setdefault(name, np.zeros((count, *shape)))
        if not completed.all():
            stacked[name] = array = np.where(completed[None, :, None, None], array, 0.0)
        _check_finite(name, array.reshape(given[name].shape) if name in given else array)
    return stacked, next(iter(has_k.values()))


def _with_k(name: str, array: Float64Array, shape: tuple[int, ...], batched: bool) -> Float64Array:
    """Return a cotangent as [K, batch, time + 1, n]."""
    user = shape if batched else shape[1:]
    if array.shape == user:
        return array.reshape(1, *shape)
    if array.shape[1:] == user and len(array):
        return array.reshape(len(array), *shape)
    expected = list(user)
    raise ArgumentError.expected(
        name,
        f"shape {expected} or [K, {', '.join(str(size) for size in expected)}]",
        list(array.shape),
        advice="it has the shape of the trajectory: time + 1 states",
    )

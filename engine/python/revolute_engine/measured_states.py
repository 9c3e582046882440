"""Shapes and checks for measuring at states: inputs, names of quantities, results and cotangents."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np

from revolute.contract.arrays import Float64Array, as_float64
from revolute.contract.errors import ArgumentError
from revolute.contract.measures import measure_of

from ._arguments import check_quaternions
from ._model import Model
from ._probes import Probe, need_ctrl, numbers_of, quantity_probes
from .parameters import check_finite, check_params
from .step_inputs import check_mocap_quat, input_shape


class States(NamedTuple):
    """Checked states to measure at.

    Attributes:
        qpos: [batch, count, nq].
        qvel: [batch, count, nv + na], activations behind velocities.
        ctrl: [batch, count, nu], or None.
        inputs: those of `STEP_INPUTS` that are given, each [batch, count, size].
        time: time of each of the `count` states in s.
        params: parameters by name, without or with batch axis.
        lead: axes of the results before those of the quantity.
    """

    qpos: Float64Array
    qvel: Float64Array
    ctrl: Float64Array | None
    inputs: dict[str, Float64Array]
    time: Float64Array
    params: dict[str, Float64Array]
    lead: tuple[int, ...]


def check_states(
    model: Model,
    qpos: Any,
    qvel: Any,
    ctrl: Any,
    time: Any,
    params: Mapping[str, Any] | None,
    inputs: Mapping[str, Any],
    *,
    diverged: bool = False,
) -> States:
    """Check states to measure at; arguments and errors are those of `Engine.states_to_measure`."""
    positions = as_float64("qpos", qpos)
    if positions.ndim not in (1, 2, 3) or positions.shape[-1] != model.nq or not positions.size:
        raise ArgumentError.expected(
            "qpos", f"shape [nq={model.nq}], [batch, nq] or [batch, time, nq]", list(positions.shape)
        )
    lead = positions.shape[:-1]
    shape = (*lead, *([1] * (2 - len(lead))))
    if not diverged:
        check_finite("qpos", positions)
        check_quaternions(model, positions)
    arrays: dict[str, Float64Array | None] = {}
    for name, value, size in (("qvel", qvel, model.nqvel), ("ctrl", ctrl, model.nu)):
        if value is None:
            arrays[name] = None
            continue
        array = _with_lead(name, value, lead, size)
        if not (diverged and name == "qvel"):
            check_finite(name, array)
        arrays[name] = array.reshape(*shape, size)
    velocities = np.zeros((*shape, model.nqvel)) if arrays["qvel"] is None else arrays["qvel"]
    clock = np.zeros(1) if time is None else as_float64("time", time)
    if clock.ndim > 1 or clock.size not in (1, shape[1]):
        raise ArgumentError.expected("time", f"a number or {shape[1]} numbers", list(clock.shape))
    return States(
        positions.reshape(*shape, model.nq),
        velocities,
        arrays["ctrl"],
        _inputs(model, inputs, lead, shape),
        np.ascontiguousarray(np.broadcast_to(clock, shape[1])),
        check_params(model, params, shape[0], bool(lead)),
        lead,
    )


def _with_lead(name: str, value: Any, lead: tuple[int, ...], size: int) -> Float64Array:
    array = as_float64(name, value)
    given = array.shape[:-1]
    repeats = len(given) == len(lead) and all(
        here in (1, there) for here, there in zip(given, lead, strict=True)
    )
    if array.shape[-1:] != (size,) or (given and not repeats):
        raise ArgumentError.expected(name, f"shape {[*lead, size]} or [{size}]", list(array.shape))
    return np.ascontiguousarray(np.broadcast_to(array, (*lead, size)))


def _inputs(
    model: Model, given: Mapping[str, Any], lead: tuple[int, ...], shape: tuple[int, ...]
) -> dict[str, Float64Array]:
    found = {}
    for name, value in given.items():
        if value is None:
            continue
        own = input_shape(model, name)
        array = as_float64(name, value)
        check_finite(name, array)
        if array.shape not in (own, (*lead, *own)):
            raise ArgumentError.expected(name, f"shape {[*lead, *own]} or {list(own)}", list(array.shape))
        if name == "mocap_quat":
            check_mocap_quat(array)
        size = int(np.prod(own))
        found[name] = np.ascontiguousarray(np.broadcast_to(array, (*lead, *own))).reshape(*shape, size)
    return found


class Quantity(NamedTuple):
    """A requested quantity.

    Attributes:
        probes: the probes that measure it.
        shape: axes of the result after those of the states.
    """

    probes: list[Probe]
    shape: tuple[int, ...]


def check_quantities(model: Model, argument: str, names: Iterable[str]) -> dict[str, Quantity]:
    """Return the quantities that names stand for.

    Raises:
        ArgumentError: no name, an unknown one, or a sensor that the engine does not compute.
    """
    wanted = [names] if isinstance(names, str) else list(names)
    if not wanted or not all(isinstance(name, str) for name in wanted):
        raise ArgumentError.expected(argument, "at least one name, such as 'site_pos'", repr(names)[:60])
    found = {}
    for name in wanted:
        probes = quantity_probes(model, argument, name)
        numbers = numbers_of(probes)
        named = measure_of(argument, name)
        of_all = named.element is None and named.quantity != "sensor"
        found[name] = Quantity(
            probes, (len(probes), numbers // max(1, len(probes))) if of_all else (numbers,)
        )
    return found


def all_probes(quantities: Mapping[str, Quantity], states: States) -> list[Probe]:
    """Return the probes of all quantities, one after the other.

    Raises:
        ArgumentError: one of them needs controls, and there are none.
    """
    for name, quantity in quantities.items():
        if states.ctrl is None and need_ctrl(quantity.probes):
            raise ArgumentError.expected("ctrl", f"controls, which {name} depends on", "none")
    return [probe for quantity in quantities.values() for probe in quantity.probes]


def split_values(
    quantities: Mapping[str, Quantity], values: Float64Array, lead: Sequence[int]
) -> dict[str, Float64Array]:
    """Return values [batch, count, numbers] by name, in the shapes of the results."""
    found, first = {}, 0
    for name, quantity in quantities.items():
        end = first + numbers_of(quantity.probes)
        found[name] = np.ascontiguousarray(values[..., first:end]).reshape(*lead, *quantity.shape)
        first = end
    return found


def joined_cotangents(
    quantities: Mapping[str, Quantity], given: Mapping[str, Any], states: States
) -> tuple[Float64Array, bool]:
    """Return cotangents [K, batch, count, numbers], and whether they have the axis K.

    Raises:
        ArgumentError: a cotangent does not have the shape of its quantity, or a number is not finite.
    """
    parts: list[Float64Array] = []
    has_k = False
    for name, quantity in quantities.items():
        shape = (*states.lead, *quantity.shape)
        bar = as_float64(f"cotangents.{name}", given[name])
        check_finite(f"cotangents.{name}", bar)
        if bar.shape != shape and not (bar.shape[1:] == shape and len(bar)):
            raise ArgumentError.expected(
                f"cotangents.{name}",
                f"shape {list(shape)} or [K, {', '.join(map(str, shape))}]",
                list(bar.shape),
            )
        own_k = bar.shape != shape
        if parts and (own_k != has_k or (own_k and len(bar) != len(parts[0]))):
            raise ArgumentError.expected(
                f"cotangents.{name}", "the same leading axis K as of the others", list(bar.shape)
            )
        has_k = own_k
        parts.append(
            bar.reshape(len(bar) if has_k else 1, *states.qpos.shape[:2], numbers_of(quantity.probes))
        )
    return np.ascontiguousarray(np.concatenate(parts, axis=-1)), has_k

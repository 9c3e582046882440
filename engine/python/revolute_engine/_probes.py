"""What is measured, as the compiled engine's probes: quantities of elements, and the file's sensors."""

from __future__ import annotations

from collections.abc import Sequence

import mujoco

from revolute.contract.errors import ArgumentError
from revolute.contract.measures import find_elements, measure_of

from . import native
from ._model import Model
from ._probe import CTRL, Probe, probe_of
from ._sensors import sensor_fault, sensor_probe

_FRAMES = {
    "body": mujoco.mjtObj.mjOBJ_XBODY,
    "geom": mujoco.mjtObj.mjOBJ_GEOM,
    "site": mujoco.mjtObj.mjOBJ_SITE,
}
"""Frames by kind of element. MuJoCo calls a body's own frame xbody, and the frame of its inertia body."""


def numbers_of(probes: Sequence[Probe]) -> int:
    """Return the number of values that probes give."""
    return sum(native.probe_sizes[probe.kind] or probe.size for probe in probes)


def need_ctrl(probes: Sequence[Probe]) -> bool:
    """Return whether any probe depends on the control."""
    return any(probe.kind >= CTRL for probe in probes)


def names_of(model: Model, kind: str) -> list[str]:
    """Return the names of all elements of a kind."""
    names: list[str] = getattr(model, f"{kind}_names")
    return names


def quantity_probes(
    model: Model,
    argument: str,
    name: str,
    elements: Sequence[str] | None = None,
    relative_to: str | None = None,
) -> list[Probe]:
    """Return the probes of a measured quantity.

    Args:
        model: the model.
        argument: name for error texts.
        name: the quantity, such as "site_pos", or that of one element, "site_pos:hand"; either may end with a
            frame to measure in, "@body:chassis".
        elements: names or numbers of the elements; None for all.
        relative_to: frame to measure in, such as "body:chassis"; None for the world.

    Raises:
        ArgumentError: there is no such quantity or element, or the engine does not compute a sensor.
    """
    named = measure_of(argument, name)
    measure, relative_to = named.measure, relative_to or named.relative_to
    wanted = elements if named.element is None else [named.element]
    names = names_of(model, measure.kind)
    if wanted is None and measure.elements > 1:
        raise ArgumentError.expected(argument, f"two {measure.kind}s for {name}", "none")
    found = range(len(names)) if wanted is None else find_elements(argument, measure.kind, names, wanted)
    if measure.kind == "sensor":
        return [_sensor(model, argument, index) for index in found]
    if measure.probe.startswith("subtree"):
        return [_subtree(model, argument, measure.probe, names, body) for body in found]
    frame = int(mujoco.mjtObj.mjOBJ_BODY if named.quantity == "body_com" else _FRAMES[measure.kind])
    if measure.elements > 1:
        first, second = found
        other = {"reference": frame, "reference_id": second}
        return [probe_of(measure.probe, frame=frame, frame_id=first, **other)]
    reference = _reference(model, argument, relative_to)
    return [probe_of(measure.probe, frame=frame, frame_id=index, **reference) for index in found]


def _reference(model: Model, argument: str, relative_to: str | None) -> dict[str, int]:
    if relative_to is None:
        return {}
    kind, _, element = relative_to.partition(":")
    if kind not in _FRAMES:
        raise ArgumentError.expected(argument, "a frame such as 'body:chassis'", repr(relative_to)[:80])
    index = find_elements(argument, kind, names_of(model, kind), [element])[0]
    return {"reference": int(_FRAMES[kind]), "reference_id": index}


def _subtree(model: Model, argument: str, probe: str, names: Sequence[str], body: int) -> Probe:
    if model.mujoco_model.body_subtreemass[body] <= 0:
        raise ArgumentError.expected(argument, "a body that carries mass", repr(names[body]))
    return probe_of(probe, body)


def state_entries(model: Model, argument: str, quantity: str, elements: Sequence[str]) -> list[int]:
    """Return the entries of qpos, qvel or ctrl that belong to joints or actuators.

    Raises:
        ArgumentError: there is no such joint or actuator.
    """
    if quantity == "ctrl":
        return find_elements(argument, "actuator", model.actuator_names, elements)
    joints = find_elements(argument, "joint", model.joint_names, elements)
    first = model.arrays["jnt_qposadr" if quantity == "qpos" else "jnt_dofadr"].tolist()
    ends = [*first[1:], model.nq if quantity == "qpos" else model.nv]
    return [entry for joint in joints for entry in range(first[joint], ends[joint])]


def _sensor(model: Model, argument: str, sensor: int) -> Probe:
    """Return the probe of a sensor of the file.

    Raises:
        ArgumentError: the engine does not compute this sensor.
    """
    compiled, known = model.mujoco_model, model.sensor_probes
    if sensor in known:
        return known[sensor]
    if fault := sensor_fault(compiled, sensor, model.options["contact_model"]):
        why, advice = fault
        got = f"'{model.sensor_names[sensor]}' {why}"
        raise ArgumentError.expected(argument, "sensors that the engine computes", got, advice=advice)
    known[sensor] = sensor_probe(compiled, sensor)
    return known[sensor]

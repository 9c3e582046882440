"""What is measured, as the compiled engine's probes: quantities of elements, and the file's sensors."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Sequence
from typing import NamedTuple

import mujoco
import numpy as np
import numpy.typing as npt

from revolute.contract.errors import ArgumentError
from revolute.contract.measures import find_elements, measure_of

from . import native
from ._kinds import members
from ._model import Model
from ._static_bodies import static_bodies

_NO_FRAME = 0
_FRAMES = {
    "body": mujoco.mjtObj.mjOBJ_XBODY,
    "geom": mujoco.mjtObj.mjOBJ_GEOM,
    "site": mujoco.mjtObj.mjOBJ_SITE,
}
"""Frames by kind of element. MuJoCo calls a body's own frame xbody, and the frame of its inertia body."""

_ACCELERATION = native.probe_kinds.index("limit_force")
"""Probes from this kind on need the acceleration and the forces of constraints."""

_CTRL = native.probe_kinds.index("force_of_actuator")
"""Probes from this kind on need the control."""


class Probe(NamedTuple):
    """One probe of the compiled engine (engine/include/revolute/probes.hpp).

    Attributes:
        kind: place in `native.probe_kinds`.
        place: qpos, dof, actuator or body, by kind.
        frame: MuJoCo's mjtObj of the measured frame, 0 for none.
        frame_id: number of the object.
        reference: mjtObj of the reference frame, 0 for the world.
        reference_id: number of its object.
        shape: mjtGeom of a touch sensor's zone.
        vector: magnetic field, or size of a touch sensor's zone.
        cutoff: bound on the numbers, 0 for none.
        positive: whether only large numbers are cut off.
    """

    kind: int
    place: int = 0
    frame: int = _NO_FRAME
    frame_id: int = 0
    reference: int = _NO_FRAME
    reference_id: int = 0
    shape: int = 0
    vector: tuple[float, ...] = (0.0, 0.0, 0.0)
    cutoff: float = 0.0
    positive: bool = False


def probe_of(name: str, place: int = 0, **fields: object) -> Probe:
    """Return a probe by the name of its kind."""
    return Probe(native.probe_kinds.index(name), place, **fields)  # type: ignore[arg-type]


def numbers_of(probes: Sequence[Probe]) -> int:
    """Return how many numbers probes give."""
    return sum(native.probe_sizes[probe.kind] for probe in probes)


def need_ctrl(probes: Sequence[Probe]) -> bool:
    """Return whether any probe depends on the control."""
    return any(probe.kind >= _CTRL for probe in probes)


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
        return list(itertools.chain.from_iterable(sensor_probes(model, argument, index) for index in found))
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


# --- sensors ---


def _clock(model: mujoco.MjModel, sensor: int) -> Probe:
    return probe_of("clock")


def _joint(name: str, address: str) -> Callable[[mujoco.MjModel, int], Probe]:
    return lambda model, sensor: probe_of(name, int(getattr(model, address)[model.sensor_objid[sensor]]))


def _actuator(name: str) -> Callable[[mujoco.MjModel, int], Probe]:
    return lambda model, sensor: probe_of(name, int(model.sensor_objid[sensor]))


def _frame(name: str) -> Callable[[mujoco.MjModel, int], Probe]:
    def make(model: mujoco.MjModel, sensor: int) -> Probe:
        reference = {}
        if model.sensor_refid[sensor] >= 0:
            reference = {
                "reference": int(model.sensor_reftype[sensor]),
                "reference_id": int(model.sensor_refid[sensor]),
            }
        return probe_of(
            name,
            frame=int(model.sensor_objtype[sensor]),
            frame_id=int(model.sensor_objid[sensor]),
            **reference,
        )

    return make


def _magnetometer(model: mujoco.MjModel, sensor: int) -> Probe:
    return _frame("local_field")(model, sensor)._replace(vector=tuple(model.opt.magnetic.tolist()))


def _touch(model: mujoco.MjModel, sensor: int) -> Probe:
    site = int(model.sensor_objid[sensor])
    return _frame("touch")(model, sensor)._replace(
        shape=int(model.site_type[site]), vector=tuple(model.site_size[site].tolist())
    )


_SENSORS: dict[str, Callable[[mujoco.MjModel, int], Probe]] = {
    "CLOCK": _clock,
    "JOINTPOS": _joint("joint_position", "jnt_qposadr"),
    "JOINTVEL": _joint("joint_velocity", "jnt_dofadr"),
    "BALLQUAT": _joint("ball_quaternion", "jnt_qposadr"),
    "BALLANGVEL": _joint("ball_velocity", "jnt_dofadr"),
    "JOINTLIMITPOS": _joint("limit_position", "jnt_dofadr"),
    "JOINTLIMITVEL": _joint("limit_velocity", "jnt_dofadr"),
    "JOINTLIMITFRC": _joint("limit_force", "jnt_dofadr"),
    "JOINTACTFRC": _joint("actuator_force_on_joint", "jnt_dofadr"),
    "ACTUATORPOS": _actuator("actuator_position"),
    "ACTUATORVEL": _actuator("actuator_velocity"),
    "ACTUATORFRC": _actuator("force_of_actuator"),
    "FRAMEPOS": _frame("position"),
    "FRAMEQUAT": _frame("quaternion"),
    "FRAMEXAXIS": _frame("x_axis"),
    "FRAMEYAXIS": _frame("y_axis"),
    "FRAMEZAXIS": _frame("z_axis"),
    "FRAMELINVEL": _frame("linear_velocity"),
    "FRAMEANGVEL": _frame("angular_velocity"),
    "FRAMELINACC": _frame("linear_acceleration"),
    "FRAMEANGACC": _frame("angular_acceleration"),
    "VELOCIMETER": _frame("local_linear_velocity"),
    "GYRO": _frame("local_angular_velocity"),
    "ACCELEROMETER": _frame("local_acceleration"),
    "MAGNETOMETER": _magnetometer,
    "FORCE": _frame("force"),
    "TORQUE": _frame("torque"),
    "TOUCH": _touch,
    "SUBTREECOM": _actuator("subtree_com"),
    "SUBTREELINVEL": _actuator("subtree_linear_velocity"),
    "SUBTREEANGMOM": _actuator("subtree_angular_momentum"),
}
"""Probes of sensors, by MuJoCo's mjtSensor."""

_SENSOR_FRAMES = (
    _NO_FRAME,
    *(int(getattr(mujoco.mjtObj, f"mjOBJ_{name}")) for name in ("BODY", "XBODY", "GEOM", "SITE")),
)


def sensor_probes(model: Model, argument: str, sensor: int) -> list[Probe]:
    """Return the probe of a sensor of the file.

    Raises:
        ArgumentError: the engine does not compute this sensor.
    """
    compiled = model.mujoco_model
    if fault := sensor_fault(compiled, sensor, model.options["contact_model"]):
        why, advice = fault
        got = f"'{model.sensor_names[sensor]}' {why}"
        raise ArgumentError.expected(argument, "sensors that the engine computes", got, advice=advice)
    probe = _SENSORS[_kind(compiled, sensor)](compiled, sensor)
    positive = int(compiled.sensor_datatype[sensor]) == int(mujoco.mjtDataType.mjDATATYPE_POSITIVE)
    real = positive or int(compiled.sensor_datatype[sensor]) == int(mujoco.mjtDataType.mjDATATYPE_REAL)
    return [probe._replace(cutoff=float(compiled.sensor_cutoff[sensor]) if real else 0.0, positive=positive)]


def sensor_fault(model: mujoco.MjModel, sensor: int, contact_model: str) -> tuple[str, str] | None:
    """Return why the engine does not compute a sensor, and what to do; None if it does."""
    kind = _kind(model, sensor)
    of_kind = f"of type {kind.lower()}"
    if kind not in _SENSORS:
        return of_kind, "leave it out"
    probe = _SENSORS[kind](model, sensor)
    timing = (getattr(model, f"sensor_{name}", None) for name in ("delay", "interval"))
    if not {probe.frame, probe.reference} <= set(_SENSOR_FRAMES):
        return f"{of_kind} of a camera", "measure a site in its place"
    if any(values is not None and np.any(values[sensor]) for values in timing):
        return f"{of_kind} with a delay or an interval", "set both to 0"
    if probe.kind >= _ACCELERATION and contact_model != "mujoco":
        return of_kind, "it needs accelerations and forces: load the model with contact_model='mujoco'"
    if kind in ("FORCE", "TORQUE") and _is_fixed(model, int(model.sensor_objid[sensor])):
        return f"{of_kind} on a body that does not move", "put its site on a body with a joint above it"
    if kind in _OF_ACTUATORS and not _drive_joints(model, _actuators_of(model, kind, probe)):
        return f"{of_kind} of an actuator with activation or not on a joint", "leave it out"
    if kind == "ACTUATORFRC" and model.jnt_actfrclimited[model.actuator_trnid[probe.place, 0]]:
        return f"{of_kind} on a joint with actuatorfrcrange", "set forcerange on the actuator in its place"
    if kind.startswith("SUBTREE") and model.body_subtreemass[probe.place] <= 0:
        return f"{of_kind} of a subtree without mass", "leave it out"
    return None


_OF_ACTUATORS = ("ACTUATORPOS", "ACTUATORVEL", "ACTUATORFRC", "JOINTACTFRC")


def _actuators_of(model: mujoco.MjModel, kind: str, probe: Probe) -> npt.NDArray[np.int64]:
    """Return the actuators that a sensor reads; for the force on a joint all of them, as any may pull it."""
    return np.arange(model.nu) if kind == "JOINTACTFRC" else np.array([probe.place])


def _drive_joints(model: mujoco.MjModel, actuators: npt.NDArray[np.int64]) -> bool:
    """Return whether actuators act on hinges or slides, without activation or a limit on a joint's sum."""
    joint_transmissions = (mujoco.mjtTrn.mjTRN_JOINT, mujoco.mjtTrn.mjTRN_JOINTINPARENT)
    on_joints = np.isin(model.actuator_trntype[actuators], [int(kind) for kind in joint_transmissions])
    plain = model.actuator_dyntype[actuators] == int(mujoco.mjtDyn.mjDYN_NONE)
    if not (on_joints & plain).all():
        return False
    joints = model.actuator_trnid[actuators, 0]
    shared = np.bincount(joints, minlength=model.njnt)[joints] > 1
    scalar = np.isin(model.jnt_type[joints], (2, 3))  # slide, hinge
    muscles = model.actuator_gaintype[actuators] == int(mujoco.mjtGain.mjGAIN_MUSCLE)
    return bool((scalar & ~muscles & ~(shared & model.jnt_actfrclimited[joints].astype(bool))).all())


def _kind(model: mujoco.MjModel, sensor: int) -> str:
    return members("mjtSensor").get(int(model.sensor_type[sensor]), "unknown")


def _is_fixed(model: mujoco.MjModel, site: int) -> bool:
    """Return whether no joint moves the body of a site."""
    return bool(static_bodies(model)[model.site_bodyid[site]])

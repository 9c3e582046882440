"""One probe of the compiled engine: one quantity that it measures at a state."""

from __future__ import annotations

from typing import NamedTuple

from . import native

NO_FRAME = 0
"""In place of an mjtObj: there is no frame."""

ACCELERATION = native.probe_kinds.index("limit_force")
"""Probes from this kind on need the acceleration and the forces of constraints."""

CTRL = native.probe_kinds.index("force_of_actuator")
"""Probes from this kind on need the control."""


class Probe(NamedTuple):
    """One probe of the compiled engine (engine/include/revolute/probes.hpp).

    Attributes:
        kind: place in `native.probe_kinds`.
        place: qpos, dof, actuator, tendon or body, by kind.
        frame: MuJoCo's mjtObj of the measured frame, 0 for none.
        frame_id: number of the object.
        reference: mjtObj of the reference frame, 0 for the world.
        reference_id: number of its object.
        shape: mjtGeom of the site that is a zone.
        vector: magnetic field, or size of the zone.
        cutoff: bound on the numbers, 0 for none.
        positive: whether only large numbers are cut off.
        size: number of values, for kinds that do not have a fixed number.
        integers, numbers: further data of the kind (engine/include/revolute/stages/measurement.hpp).
        offset: position and quaternion of the frame in the object's, or nothing.
        reference_offset: the same for the reference frame.
    """

    kind: int
    place: int = 0
    frame: int = NO_FRAME
    frame_id: int = 0
    reference: int = NO_FRAME
    reference_id: int = 0
    shape: int = 0
    vector: tuple[float, ...] = (0.0, 0.0, 0.0)
    cutoff: float = 0.0
    positive: bool = False
    size: int = 0
    integers: tuple[int, ...] = ()
    numbers: tuple[float, ...] = ()
    offset: tuple[float, ...] = ()
    reference_offset: tuple[float, ...] = ()


def probe_of(name: str, place: int = 0, **fields: object) -> Probe:
    """Return a probe by the name of its kind."""
    return Probe(native.probe_kinds.index(name), place, **fields)  # type: ignore[arg-type]

"""Table of MuJoCo's element types: which ones the engine simulates.

It covers geoms, joints, actuators, transmissions, equality constraints, sensors and tendons. A type is
simulated, noted (it only measures, and has no effect on the motion), or an error. A type that is not in the
table, e.g. of a later MuJoCo, is an error too.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache

import mujoco
import numpy as np
import numpy.typing as npt

from revolute.contract.errors import ModelError

from ._names import element_name


@dataclass(frozen=True)
class Kind:
    """How the engine treats one type of element.

    Attributes:
        what: name in the error text; empty if the type is not an error.
        advice: advice in the error text.
    """

    what: str = ""
    advice: str = ""


SIMULATED = Kind()
"""The engine simulates it."""

NOTED = Kind()
"""The element only measures; it has no effect on the motion."""

_JOINT = "drive a joint, a tendon, a site or a body"
_GAIN = "use a fixed, affine or muscle gain"
_BIAS = "use an affine or muscle bias"
_EQUALITIES = "use connect, weld, joint or tendon"
_SHAPES = "use a plane, hfield, sphere, capsule, ellipsoid, cylinder, box or mesh"
_ACTIVATION = Kind("this kind of activation dynamics (dyntype)", "use integrator, filter or muscle")
_PICTURE = Kind("a shape for pictures", _SHAPES)


def _transmission(to: str) -> Kind:
    return Kind(f"a transmission to a {to}", _JOINT)


def _gain(name: str) -> Kind:
    return Kind(f"gain type {name}", _GAIN)


def _bias(name: str) -> Kind:
    return Kind(f"bias type {name}", _BIAS)


def _equality(name: str) -> Kind:
    return Kind(f"an equality constraint of type {name}", _EQUALITIES)


_SENSORS = (
    *("TOUCH", "ACCELEROMETER", "VELOCIMETER", "GYRO", "FORCE", "TORQUE", "MAGNETOMETER", "RANGEFINDER"),
    *("CAMPROJECTION", "JOINTPOS", "JOINTVEL", "TENDONPOS", "TENDONVEL", "ACTUATORPOS", "ACTUATORVEL"),
    *("ACTUATORFRC", "JOINTACTFRC", "TENDONACTFRC", "BALLQUAT", "BALLANGVEL", "JOINTLIMITPOS"),
    *("JOINTLIMITVEL", "JOINTLIMITFRC", "TENDONLIMITPOS", "TENDONLIMITVEL", "TENDONLIMITFRC", "FRAMEPOS"),
    *("FRAMEQUAT", "FRAMEXAXIS", "FRAMEYAXIS", "FRAMEZAXIS", "FRAMELINVEL", "FRAMEANGVEL", "FRAMELINACC"),
    *("FRAMEANGACC", "SUBTREECOM", "SUBTREELINVEL", "SUBTREEANGMOM", "INSIDESITE", "GEOMDIST"),
    *("GEOMNORMAL", "GEOMFROMTO", "CONTACT", "E_POTENTIAL", "E_KINETIC", "CLOCK", "TACTILE", "PLUGIN"),
    "USER",
)

KINDS: dict[str, dict[str, Kind]] = {
    "mjtGeom": {
        **dict.fromkeys(("PLANE", "HFIELD", "SPHERE", "CAPSULE", "ELLIPSOID"), SIMULATED),
        **dict.fromkeys(("CYLINDER", "BOX", "MESH"), SIMULATED),
        "SDF": Kind("a signed distance field (type sdf)", _SHAPES),
        "FLEX": Kind("a deformable body", "use rigid bodies"),
        **dict.fromkeys(
            ("ARROW", "ARROW1", "ARROW2", "LINE", "LINEBOX", "SKIN", "LABEL", "TRIANGLE", "NONE"), _PICTURE
        ),
    },
    "mjtJoint": dict.fromkeys(("FREE", "BALL", "SLIDE", "HINGE"), SIMULATED),
    "mjtTrn": {
        **dict.fromkeys(("JOINT", "JOINTINPARENT", "SLIDERCRANK", "TENDON", "SITE", "BODY"), SIMULATED),
        "SO3": _transmission("so3"),
        "UNDEFINED": Kind("an actuator without a transmission", _JOINT),
    },
    "mjtDyn": {
        **dict.fromkeys(("NONE", "INTEGRATOR", "FILTER", "FILTEREXACT", "MUSCLE"), SIMULATED),
        **dict.fromkeys(("DCMOTOR", "PID", "USER"), _ACTIVATION),
    },
    "mjtGain": {
        **dict.fromkeys(("FIXED", "AFFINE", "MUSCLE"), SIMULATED),
        **{name: _gain(name.lower()) for name in ("DCMOTOR", "SO3", "PID", "USER")},
    },
    "mjtBias": {
        **dict.fromkeys(("NONE", "AFFINE", "MUSCLE"), SIMULATED),
        **{name: _bias(name.lower()) for name in ("DCMOTOR", "SO3", "USER")},
    },
    "mjtEq": {
        **dict.fromkeys(("CONNECT", "WELD", "JOINT", "TENDON"), SIMULATED),
        **{name: _equality(name.lower()) for name in ("FLEX", "FLEXVERT", "FLEXSTRAIN", "DISTANCE")},
    },
    "mjtSensor": dict.fromkeys(_SENSORS, NOTED),
    "mjtWrap": dict.fromkeys(("NONE", "JOINT", "PULLEY", "SITE", "SPHERE", "CYLINDER"), SIMULATED),
}
"""Treatment of each type: by MuJoCo enumeration, then by member name without the prefix."""


@cache
def members(enumeration: str) -> dict[int, str]:
    """Return the member names of an enumeration, without the prefix, by number.

    Args:
        enumeration: name of the enumeration, such as mjtGeom.
    """
    found = getattr(mujoco, enumeration).__members__
    return {int(value): name.partition("_")[2] for name, value in found.items() if "_" in name}


def kind_of(enumeration: str, number: int) -> Kind:
    """Return the treatment of one type; a type that is not in the table is an error."""
    name = members(enumeration).get(number, str(number))
    unknown = Kind(f"{enumeration.removeprefix('mjt').lower()} type {name.lower()}", "use another type")
    return KINDS[enumeration].get(name, unknown)


def check_kinds(model: mujoco.MjModel, label: str, kind: str, enumeration: str, types: npt.ArrayLike) -> None:
    """Raise an error for the first element of an unsupported type.

    Args:
        model: the compiled model.
        label: name of the file in messages.
        kind: name of the elements in messages, e.g. "geom".
        enumeration: MuJoCo's enumeration of their types.
        types: the type of each element.

    Raises:
        ModelError: an element has an unsupported type.
    """
    numbers = np.asarray(types).ravel()
    refused = [number for number in set(numbers.tolist()) if kind_of(enumeration, number).what]
    first = np.flatnonzero(np.isin(numbers, refused))
    if first.size:
        found = kind_of(enumeration, int(numbers[first[0]]))
        element = element_name(model, kind, int(first[0]))
        raise ModelError(f"{label}: {element}: {found.what} is not supported; {found.advice}")

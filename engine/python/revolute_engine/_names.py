"""Names of a model's elements: for messages, for the model's lists, and checks."""

from __future__ import annotations

import itertools
from collections.abc import Mapping, Sequence

import mujoco

from revolute.contract.errors import ModelError
from revolute.contract.names import name_fault

JOINT_TYPES = ("free", "ball", "slide", "hinge")
"""Names of joint types, by MuJoCo's numbers."""


def element_name(model: mujoco.MjModel, kind: str, index: int) -> str:
    """Return an element's name for messages: `geom 'foot'`, or `geom 3 of body 'leg'` if it is unnamed."""
    name = str(getattr(model, kind)(index).name) if hasattr(model, kind) else ""
    if name:
        return f"{kind} '{name}'"
    if kind in ("geom", "joint"):
        body = int(model.geom_bodyid[index] if kind == "geom" else model.jnt_bodyid[index])
        return f"{kind} {index} of {_body_name(model.body(body).name, body)}"
    return f"{kind} {index}"


def all_joints(spec: mujoco.MjSpec) -> list[mujoco.MjsJoint]:
    """Return the joints of an uncompiled model, body by body. `spec.joints` takes quadratic time."""
    return [joint for body in spec.bodies for joint in body.joints]


_LISTED = (
    *(("body", "nbody"), ("joint", "njnt"), ("geom", "ngeom"), ("site", "nsite"), ("actuator", "nu")),
    *(("sensor", "nsensor"), ("key", "nkey")),
)
"""Elements whose names a model lists, and the field with their number."""


def check_names(model_name: str, compiled: mujoco.MjModel, label: str) -> None:
    """Check the names of a model and its elements.

    Args:
        model_name: name of the model.
        compiled: the compiled model, with the names of the elements.
        label: name of the model in messages.

    Raises:
        ModelError: a name is too long, or contains an invisible character.
    """
    _check("the model", model_name, label)
    for kind, count in _LISTED:
        accessor = getattr(compiled, kind)
        for index in range(getattr(compiled, count)):
            _check(f"{kind} {index}", accessor(index).name, label)


def _check(element: str, name: str, label: str) -> None:
    if fault := name_fault(name):
        raise ModelError.expected(
            label, f"{fault[0]} in the name of {element}", fault[1], advice="choose another name"
        )


def joint_name(joint: mujoco.MjsJoint, index: int) -> str:
    """Return the name for messages of the index-th joint of an uncompiled model."""
    if joint.name:
        return f"joint '{joint.name}'"
    # bodies have no numbers yet
    body = f"body '{joint.parent.name}'" if joint.parent.name else "a body without a name"
    return f"joint {index} of {body}"


def _body_name(name: str, index: int) -> str:
    return f"body '{name}'" if name else f"body {index}"


def body_names(model: mujoco.MjModel) -> list[str]:
    """Return unique names of the bodies; an unnamed body is `body_<number>`."""
    given = [model.body(index).name for index in range(model.nbody)]
    return _unique(given, [f"body_{index}" for index in range(model.nbody)])


def joint_names(model: mujoco.MjModel) -> list[str]:
    """Return unique names of the joints; an unnamed joint is `<body>/<number among the body's joints>`."""
    given = [model.joint(index).name for index in range(model.njnt)]
    return _unique(given, _by_body(model, model.jnt_bodyid.tolist(), model.body_jntadr.tolist()))


def geom_names(model: mujoco.MjModel) -> list[str]:
    """Return unique names of the shapes; an unnamed shape is `<body>/<number among the body's shapes>`."""
    given = [model.geom(index).name for index in range(model.ngeom)]
    return _unique(given, _by_body(model, model.geom_bodyid.tolist(), model.body_geomadr.tolist()))


def site_names(model: mujoco.MjModel) -> list[str]:
    """Return unique names of the sites; an unnamed site is `<body>/<number among the body's sites>`."""
    given = [model.site(index).name for index in range(model.nsite)]
    owners = model.site_bodyid.tolist()
    first: dict[int, int] = {}
    for index, body in enumerate(owners):
        first.setdefault(body, index)
    return _unique(given, _by_body(model, owners, first))


def sensor_names(model: mujoco.MjModel) -> list[str]:
    """Return unique names of the sensors; an unnamed sensor is `sensor_<number>`."""
    given = [model.sensor(index).name for index in range(model.nsensor)]
    return _unique(given, [f"sensor_{index}" for index in range(model.nsensor)])


def sensor_kinds() -> dict[int, str]:
    """Return the types of sensors by MuJoCo's numbers, in lower case."""
    members = mujoco.mjtSensor.__members__
    return {int(kind): name.removeprefix("mjSENS_").lower() for name, kind in members.items()}


def actuator_names(model: mujoco.MjModel) -> list[str]:
    """Return unique names of the actuators; an unnamed one has the name of the joint or element it drives."""
    given = [model.actuator(index).name for index in range(model.nu)]
    joints, bodies = joint_names(model), body_names(model)

    def driven(index: int) -> str:
        kind, target = mujoco.mjtTrn(int(model.actuator_trntype[index])), int(model.actuator_trnid[index, 0])
        if kind in (mujoco.mjtTrn.mjTRN_JOINT, mujoco.mjtTrn.mjTRN_JOINTINPARENT):
            return joints[target]
        if kind == mujoco.mjtTrn.mjTRN_BODY:
            return bodies[target]
        elements = model.tendon if kind == mujoco.mjtTrn.mjTRN_TENDON else model.site
        return str(elements(target).name) or f"actuator_{index}"

    return _unique(given, [driven(index) for index in range(model.nu)])


def _by_body(
    model: mujoco.MjModel, owners: Sequence[int], first: Sequence[int] | Mapping[int, int]
) -> list[str]:
    bodies = body_names(model)
    return [f"{bodies[body]}/{index - first[body]}" for index, body in enumerate(owners)]


def _unique(given: list[str], otherwise: list[str]) -> list[str]:
    """Replace empty names by those in `otherwise`, with `_2`, `_3`, … appended if a name is taken."""
    taken, names = set(given), []
    for name, other in zip(given, otherwise, strict=True):
        if not name:
            candidates = itertools.chain([other], (f"{other}_{number}" for number in itertools.count(2)))
            name = next(each for each in candidates if each not in taken)
            taken.add(name)
        names.append(name)
    return names

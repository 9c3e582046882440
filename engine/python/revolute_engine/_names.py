"""The names of a model and its elements: how messages write them, and what they may be."""

from __future__ import annotations

import itertools

import mujoco

from revolute.contract.errors import ModelError
from revolute.contract.names import name_fault

JOINT_TYPES = ("free", "ball", "slide", "hinge")
"""Names of joint types, by MuJoCo's numbers."""


def element_name(model: mujoco.MjModel, kind: str, index: int) -> str:
    """Return how messages name an element: `geom 'foot'`, or `geom 3 of body 'leg'` without a name."""
    name = str(getattr(model, kind)(index).name) if hasattr(model, kind) else ""
    if name:
        return f"{kind} '{name}'"
    if kind in ("geom", "joint"):
        body = int(model.geom_bodyid[index] if kind == "geom" else model.jnt_bodyid[index])
        return f"{kind} {index} of {_body_name(model.body(body).name, body)}"
    return f"{kind} {index}"


def all_joints(spec: mujoco.MjSpec) -> list[mujoco.MjsJoint]:
    """Return the joints of a model that is not compiled yet, body by body.

    `spec.joints` gives the same in quadratic time.
    """
    return [joint for body in spec.bodies for joint in body.joints]


_LISTED = (("body", "nbody"), ("joint", "njnt"), ("geom", "ngeom"), ("actuator", "nu"), ("key", "nkey"))
"""Elements whose names a model's description lists, and where their number is."""


def check_names(model_name: str, compiled: mujoco.MjModel, label: str) -> None:
    """Refuse names that may not be kept and listed.

    Args:
        model_name: the model's own.
        compiled: has the names of the elements.
        label: what messages call the model.

    Raises:
        ModelError: a name is too long, or has a character that is not seen.
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
    """Return how messages name a joint, the index-th, of a model that is not compiled yet."""
    if joint.name:
        return f"joint '{joint.name}'"
    # bodies have no numbers yet
    body = f"body '{joint.parent.name}'" if joint.parent.name else "a body without a name"
    return f"joint {index} of {body}"


def _body_name(name: str, index: int) -> str:
    return f"body '{name}'" if name else f"body {index}"


def body_names(model: mujoco.MjModel) -> list[str]:
    """Return unique names of the bodies; one without a name is `body_<number>`."""
    given = [model.body(index).name for index in range(model.nbody)]
    return _unique(given, [f"body_{index}" for index in range(model.nbody)])


def joint_names(model: mujoco.MjModel) -> list[str]:
    """Return unique names of the joints; one without a name is `<body>/<number among the body's joints>`."""
    given = [model.joint(index).name for index in range(model.njnt)]
    return _unique(given, _by_body(model, model.jnt_bodyid.tolist(), model.body_jntadr.tolist()))


def geom_names(model: mujoco.MjModel) -> list[str]:
    """Return unique names of the shapes; one without a name is `<body>/<number among the body's shapes>`."""
    given = [model.geom(index).name for index in range(model.ngeom)]
    return _unique(given, _by_body(model, model.geom_bodyid.tolist(), model.body_geomadr.tolist()))


def actuator_names(model: mujoco.MjModel) -> list[str]:
    """Return unique names of the actuators, which drive joints; one without a name has its joint's."""
    given = [model.actuator(index).name for index in range(model.nu)]
    joints = joint_names(model)
    return _unique(given, [joints[joint] for joint in model.actuator_trnid[:, 0].tolist()])


def _by_body(model: mujoco.MjModel, owners: list[int], first: list[int]) -> list[str]:
    bodies = body_names(model)
    return [f"{bodies[body]}/{index - first[body]}" for index, body in enumerate(owners)]


def _unique(given: list[str], otherwise: list[str]) -> list[str]:
    """Return the names as given, and others in place of empty ones, with `_2`, `_3`, … where one is taken."""
    taken, names = set(given), []
    for name, other in zip(given, otherwise, strict=True):
        if not name:
            candidates = itertools.chain([other], (f"{other}_{number}" for number in itertools.count(2)))
            name = next(each for each in candidates if each not in taken)
            taken.add(name)
        names.append(name)
    return names

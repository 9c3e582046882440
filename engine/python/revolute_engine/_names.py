"""How messages name the elements of a model."""

from __future__ import annotations

import mujoco

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


def joint_name(joint: mujoco.MjsJoint, index: int) -> str:
    """Return how messages name a joint, the index-th, of a model that is not compiled yet."""
    if joint.name:
        return f"joint '{joint.name}'"
    # bodies have no numbers yet
    body = f"body '{joint.parent.name}'" if joint.parent.name else "a body without a name"
    return f"joint {index} of {body}"


def _body_name(name: str, index: int) -> str:
    return f"body '{name}'" if name else f"body {index}"

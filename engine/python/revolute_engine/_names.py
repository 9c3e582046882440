"""How messages name the elements of a model."""

from __future__ import annotations

import mujoco

JOINT_TYPES = ("free", "ball", "slide", "hinge")
"""Names of joint types, by MuJoCo's numbers."""


def element_name(model: mujoco.MjModel, kind: str, index: int) -> str:
    """Return how messages name an element: `geom 'foot'`, or `geom 3 of body 'leg'` without a name."""
    name = str(getattr(model, kind)(index).name)
    if name:
        return f"{kind} '{name}'"
    if kind in ("geom", "joint"):
        body = int(model.geom_bodyid[index] if kind == "geom" else model.jnt_bodyid[index])
        return f"{kind} {index} of body '{model.body(body).name}'"
    return f"{kind} {index}"

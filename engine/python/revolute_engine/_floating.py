"""Moves the links of URDF floating joints below a fixed base to the world.

MuJoCo allows free joints only on children of the world. If all joints between the world and a floating joint
are fixed, its child link can be attached to the world directly, at the same pose.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import mujoco
import numpy as np

from revolute.contract.errors import ModelError

from ._xml import Element


@dataclass(frozen=True)
class Floating:
    """A floating joint below a fixed base.

    Attributes:
        joint: name of the joint.
        link: name of the floating link.
        position: start position of the link in the world.
        quaternion: start orientation of the link in the world, w x y z.
    """

    joint: str
    link: str
    position: np.ndarray
    quaternion: np.ndarray


def floating_joints(spec: mujoco.MjSpec, label: str, base: str | None) -> list[Floating]:
    """Find the floating joints below a fixed base in a URDF document.

    Args:
        spec: the document as MuJoCo reads it.
        label: name of the file in messages.
        base: "free", "fixed" or None.

    Returns:
        The joints, for `without_joints` and `add_free_joints`.

    Raises:
        ModelError: a joint between the world and the floating joint can move.
    """
    found = [
        (joint, body)
        for body in spec.bodies
        for joint in body.joints
        if joint.type == mujoco.mjtJoint.mjJNT_FREE and body.parent.name != "world"
    ]
    found_joints = []
    for joint, body in found:
        above = body.parent
        position, quaternion = np.array(body.pos), np.array(body.quat)
        while above.name != "world":
            if list(above.joints) or base == "free":
                moving = f"link '{above.name}'" if list(above.joints) else "a free base"
                raise ModelError(
                    f"{label}: joint '{joint.name}': type floating is supported below a fixed base, got one "
                    f"below {moving}; connect the link to the world"
                )
            position, quaternion = _placed(above, position, quaternion)
            above = above.parent
        found_joints.append(Floating(joint.name, body.name, position, quaternion))
    return found_joints


def without_joints(root: Element, found_joints: list[Floating]) -> Element:
    """Return the document without these joints."""
    names = {floating.joint for floating in found_joints}
    children = [
        child for child in root.children if child.tag != "joint" or child.attributes.get("name") not in names
    ]
    return replace(root, children=children)


def add_free_joints(spec: mujoco.MjSpec, found_joints: list[Floating]) -> None:
    """Give the links, now children of the world, their free joints and poses."""
    for floating in found_joints:
        body = spec.body(floating.link)
        body.pos, body.quat = floating.position, floating.quaternion
        body.add_freejoint(name=floating.joint)


def _placed(
    body: mujoco.MjsBody, position: np.ndarray, quaternion: np.ndarray
) -> tuple[np.ndarray, np.ndarray]:
    """Convert a pose from a body's frame to its parent's frame."""
    turned, product = np.zeros(3), np.zeros(4)
    mujoco.mju_rotVecQuat(turned, position, body.quat)
    mujoco.mju_mulQuat(product, body.quat, quaternion)
    return body.pos + turned, product

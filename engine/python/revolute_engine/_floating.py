"""URDF's floating joint below a base that is fixed: a body of its own in the world.

MuJoCo allows a free joint at the top level only. Where nothing moves between the world and the joint,
its child may as well hang on the world, at the pose that the joints in between give it.
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
        joint: its name.
        link: the link that floats.
        position: where it starts in the world.
        quaternion: how it is turned there, w x y z.
    """

    joint: str
    link: str
    position: np.ndarray
    quaternion: np.ndarray


def floating_joints(spec: mujoco.MjSpec, label: str, base: str | None) -> list[Floating]:
    """Find the floating joints below a fixed base in a URDF document.

    Args:
        spec: the document as MuJoCo reads it.
        label: what messages call the file.
        base: how the base is held.

    Returns:
        The joints; without them, and with `float_links`, MuJoCo compiles the document.

    Raises:
        ModelError: something moves between the world and the joint.
    """
    found = [
        (joint, body)
        for body in spec.bodies
        for joint in body.joints
        if joint.type == mujoco.mjtJoint.mjJNT_FREE and body.parent.name != "world"
    ]
    taken = []
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
        taken.append(Floating(joint.name, body.name, position, quaternion))
    return taken


def without_joints(root: Element, taken: list[Floating]) -> Element:
    """Return the document without these joints."""
    names = {floating.joint for floating in taken}
    children = [
        child for child in root.children if child.tag != "joint" or child.attributes.get("name") not in names
    ]
    return replace(root, children=children)


def float_links(spec: mujoco.MjSpec, taken: list[Floating]) -> None:
    """Give the links that hang on the world now their free joints and poses."""
    for floating in taken:
        body = spec.body(floating.link)
        body.pos, body.quat = floating.position, floating.quaternion
        body.add_freejoint(name=floating.joint)


def _placed(
    body: mujoco.MjsBody, position: np.ndarray, quaternion: np.ndarray
) -> tuple[np.ndarray, np.ndarray]:
    """Return a pose in a body's frame as one in its parent's."""
    turned, product = np.zeros(3), np.zeros(4)
    mujoco.mju_rotVecQuat(turned, position, body.quat)
    mujoco.mju_mulQuat(product, body.quat, quaternion)
    return body.pos + turned, product

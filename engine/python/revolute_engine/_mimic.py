"""URDF's mimic: a joint follows another, position = multiplier * leader's position + offset.

MuJoCo's reader makes a joint equality of it where both joints have one coordinate, and drops it otherwise.
Here the other cases are sorted out beforehand: a fixed leader holds its follower at the offset, a fixed
follower cannot follow, anything else is refused.
"""

from __future__ import annotations

import math

import mujoco
import numpy as np

from revolute.contract.errors import ModelError

from ._names import all_joints
from ._xml import Element, name_of

_SCALAR_TYPES = ("revolute", "continuous", "prismatic")


def read_mimics(root: Element, label: str, notes: list[str]) -> dict[str, float]:
    """Take the mimics that MuJoCo would drop out of a URDF document.

    Args:
        root: the document; changed in place.
        label: what messages call the file.
        notes: what was left out is added here.

    Returns:
        Joints that mimic a fixed joint, with the position at which they are held.

    Raises:
        ModelError: there is no such leader, or one of the joints has several coordinates.
    """
    joints = {joint.attributes.get("name", ""): joint for joint in root.children if joint.tag == "joint"}
    held: dict[str, float] = {}
    leaders: dict[str, str] = {}
    for name, joint in joints.items():
        for mimic in [child for child in joint.children if child.tag == "mimic"]:
            element = f"{label}: joint {name_of(joint)}: mimic"
            leader = joints.get(mimic.attributes.get("joint", ""))
            kind = joint.attributes.get("type")
            if leader is None or leader is joint:
                got = mimic.attributes.get("joint", "")
                raise ModelError(f"{element}: expected the name of another joint, got '{got}'; correct it")
            if kind == "fixed":
                notes.append(f"joint {name_of(joint)} is fixed and mimics nothing")
            elif kind not in _SCALAR_TYPES:
                raise ModelError(f"{element} of a {kind} joint is not supported; remove it")
            elif leader.attributes.get("type") == "fixed":
                held[name] = _offset(mimic, element)
            elif leader.attributes.get("type") not in _SCALAR_TYPES:
                raise ModelError(
                    f"{element} of {leader.attributes.get('type')} joint {name_of(leader)} is not supported; "
                    "remove it"
                )
            else:
                leaders[name] = mimic.attributes["joint"]
                continue
            joint.children = [child for child in joint.children if child is not mimic]
    _refuse_circles(leaders, label)
    return held


def _refuse_circles(leaders: dict[str, str], label: str) -> None:
    """Refuse joints that mimic each other, whose positions nothing determines."""
    visited: set[str] = set()
    for name in leaders:
        followed: dict[str, None] = {}
        while name in leaders and name not in visited:
            if name in followed:
                raise ModelError(
                    f"{label}: joint '{name}': mimic: expected a joint that does not follow it, got "
                    f"'{leaders[name]}', which does; let one of them lead"
                )
            followed[name] = None
            name = leaders[name]
        visited.update(followed)


def _offset(mimic: Element, element: str) -> float:
    """Return the offset of a mimic element."""
    text = mimic.attributes.get("offset", "0")
    try:
        value = float(text)
    except ValueError:
        value = math.nan
    if not math.isfinite(value):
        raise ModelError(f"{element}: expected a finite number, got '{text}' in offset")
    return value


def add_held_joints(spec: mujoco.MjSpec, held: dict[str, float]) -> None:
    """Hold joints in place by an equality constraint each."""
    for name, position in held.items():
        equality = spec.add_equality(type=mujoco.mjtEq.mjEQ_JOINT, name1=name)
        equality.data[:5] = [position, 0, 0, 0, 0]


def set_follower_starts(spec: mujoco.MjSpec) -> None:
    """Let every follower start where its leader's start puts it, instead of at 0.

    The follower's frame is moved there and the position becomes its reference (`ref`), so that the positions
    mean what they did.
    """
    joints = {joint.name: joint for joint in all_joints(spec)}
    equalities = {equality.name1: equality for equality in spec.equalities}
    starts: dict[str, float] = {}
    for name in equalities:
        chain = [name]
        while (leader := equalities[chain[-1]].name2) in equalities and leader not in starts:
            chain.append(leader)
        for follower in reversed(chain):
            offset, multiplier = equalities[follower].data[:2]
            starts[follower] = offset + multiplier * starts.get(equalities[follower].name2, 0.0)
    for name, start in starts.items():
        equalities[name].data[0] = 0.0
        _move(joints[name], start)


def _move(joint: mujoco.MjsJoint, position: float) -> None:
    """Make a position of a hinge or slide its reference, with the pose that it has there."""
    body = joint.parent
    rotation, product = np.zeros(4), np.zeros(4)
    if joint.type == mujoco.mjtJoint.mjJNT_HINGE:
        mujoco.mju_axisAngle2Quat(rotation, np.asarray(joint.axis) / np.linalg.norm(joint.axis), position)
        mujoco.mju_mulQuat(product, body.quat, rotation)
        body.quat = product
    else:
        along = np.zeros(3)
        mujoco.mju_rotVecQuat(along, np.asarray(joint.axis) / np.linalg.norm(joint.axis), body.quat)
        body.pos = body.pos + position * along
    joint.ref = position

"""URDF's mimic: a joint follows another, position = multiplier * leader's position + offset.

MuJoCo converts it to a joint equality if both joints have one coordinate, and silently drops it otherwise.
This module handles the other cases first: a fixed leader holds its follower at the offset; the mimic of a
fixed follower is dropped with a note; all others are an error.
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
    """Remove the mimics that MuJoCo would drop from a URDF document.

    Args:
        root: the document; changed in place.
        label: name of the file in messages.
        notes: receives notes on dropped mimics.

    Returns:
        Fixed position of each joint that mimics a fixed joint, by name.

    Raises:
        ModelError: a leader does not exist, or a joint has several coordinates.
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
    """Raise an error for joints that mimic each other in a circle."""
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
    """Add an equality constraint for each joint that is held in place."""
    for name, position in held.items():
        equality = spec.add_equality(type=mujoco.mjtEq.mjEQ_JOINT, name1=name)
        equality.data[:5] = [position, 0, 0, 0, 0]


def set_follower_starts(spec: mujoco.MjSpec) -> None:
    """Start every follower at the position that its leader's start implies, instead of at 0.

    The follower's frame moves to that position, which becomes its reference (`ref`), so positions keep their
    meaning.
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
    """Make a position of a hinge or slide its reference, and move the body to its pose there."""
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

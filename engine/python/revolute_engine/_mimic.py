"""URDF's mimic: a joint follows another, position = multiplier * leader's position + offset.

MuJoCo's reader makes a joint equality of it where both joints have one coordinate, and drops it otherwise.
Here the other cases are sorted out beforehand: a fixed leader holds its follower at the offset, a fixed
follower cannot follow, anything else is refused.
"""

from __future__ import annotations

import math

import mujoco

from revolute.errors import ModelError

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
                continue
            joint.children = [child for child in joint.children if child is not mimic]
    return held


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

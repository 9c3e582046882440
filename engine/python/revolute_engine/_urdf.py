"""Checks parts of a URDF that MuJoCo would silently ignore.

Impossible masses and limits are an error, doubtful ones a warning. Unknown elements are noted; misspelt ones
are a warning.
"""

from __future__ import annotations

import difflib
import math

from revolute.contract.errors import ModelError

from ._xml import Element, name_of

CHILDREN = {
    "robot": ("link", "joint", "mujoco"),
    "link": ("inertial", "collision"),
    "joint": ("origin", "parent", "child", "axis", "limit", "dynamics", "mimic"),
    "inertial": ("origin", "mass", "inertia"),
    "collision": ("origin", "geometry"),
}
"""Known child elements by parent element."""

_VISUAL = ("visual", "material")
_LIKENESS = 0.7
"""Smallest similarity (difflib ratio) of a misspelling: axes for axis, limits for limit."""


def drop_unknown_elements(root: Element, label: str, notes: list[str], warnings: list[str]) -> None:
    """Drop all elements that are not part of URDF's physics.

    Args:
        root: the document; changed in place.
        label: name of the file in messages.
        notes: receives a note on unknown elements.
        warnings: receives warnings on misspelt elements.

    Raises:
        ModelError: the document is xacro.
    """
    unread: dict[str, int] = {}
    links_and_joints = [child for child in root.children if child.tag in ("link", "joint")]
    for part in [root, *links_and_joints]:
        inner = [child for child in part.children if child.tag in ("inertial", "collision")]
        for element in [part, *(inner if part.tag == "link" else ())]:
            known = CHILDREN[element.tag]
            for child in element.children:
                if child.tag in known or child.tag in _VISUAL:
                    continue
                meant = difflib.get_close_matches(child.tag.lower(), known, 1, _LIKENESS)
                if meant and ":" not in child.tag:
                    warnings.append(
                        f"{part.tag} {name_of(part)}: <{child.tag}> at line {child.line} was not read; "
                        f"URDF has <{meant[0]}>"
                    )
                else:
                    unread[child.tag] = unread.get(child.tag, 0) + 1
            element.children = [child for child in element.children if child.tag in known]
    if any(":" in tag for tag in unread):
        raise ModelError(
            f"{label}: expected URDF, got xacro; expand it first: xacro robot.xacro > robot.urdf"
        )
    if unread:
        listed = ", ".join(f"<{tag}> ({count})" for tag, count in unread.items())
        notes.append(f"elements that are not URDF's were not read: {listed}")


def check_masses(root: Element, label: str) -> None:
    """Raise an error for negative masses, which MuJoCo treats as missing.

    Raises:
        ModelError: a link has a negative mass.
    """
    for link in [child for child in root.children if child.tag == "link"]:
        for mass in link.find("mass"):
            text = mass.attributes.get("value", "")
            if _number(text) < 0:
                raise ModelError(
                    f"{label}: link {name_of(link)}: expected a mass >= 0, got {text.strip()}; "
                    "give the link's mass in kg"
                )


def check_limits(root: Element, label: str, notes: list[str], warnings: list[str]) -> None:
    """Check joint limits; MuJoCo silently drops wrong ones.

    Args:
        root: the document; missing ends of limits are added in place.
        label: name of the file in messages.
        notes: receives a note that velocity limits are not enforced.
        warnings: receives warnings on missing limits, limits without a range, and negative efforts.

    Raises:
        ModelError: a lower limit exceeds the upper one, or a velocity is not a number.
    """
    has_velocity = False
    for joint in [child for child in root.children if child.tag == "joint"]:
        kind = joint.attributes.get("type")
        limits = [child for child in joint.children if child.tag == "limit"]
        for limit in limits:
            has_velocity |= _has_velocity(limit, label)
            if kind in ("revolute", "prismatic"):
                _check_order(joint, limit, label)
                warnings += _complete(joint, limit)
            if _number(limit.attributes.get("effort", "")) < 0:
                effort = limit.attributes["effort"].strip()
                warnings.append(f"joint {name_of(joint)}: effort {effort} is negative; its size is the limit")
        follows = any(child.tag == "mimic" for child in joint.children)
        if kind in ("revolute", "prismatic") and not limits and not follows:
            warnings.append(f"joint {name_of(joint)}: {kind} without <limit>; it moves without limits")
    if has_velocity:
        notes.append("velocity limits of joints are not enforced")


def _check_order(joint: Element, limit: Element, label: str) -> None:
    """Raise an error if the lower limit exceeds the upper one; a missing one is 0."""
    lower, upper = (limit.attributes.get(side, "0").strip() for side in ("lower", "upper"))
    if _number(lower) > _number(upper):
        raise ModelError(
            f"{label}: joint {name_of(joint)}: expected lower <= upper, got lower {lower} and upper {upper}; "
            "exchange them"
        )


def _complete(joint: Element, limit: Element) -> list[str]:
    """Add the default 0 for a missing end of a limit; return a warning if the limit has no range."""
    ends = [side for side in ("lower", "upper") if side in limit.attributes]
    name = f"joint {name_of(joint)}"
    if not ends:
        return [f"{name}: <limit> gives neither lower nor upper; it moves without limits"]
    for side in ("lower", "upper"):
        limit.attributes.setdefault(side, "0")
    lower, upper = (limit.attributes[side].strip() for side in ("lower", "upper"))
    if _number(lower) != _number(upper):
        return []
    for side in ("lower", "upper"):
        del limit.attributes[side]
    return [f"{name}: lower and upper limit are both {lower}; it moves without limits, type fixed holds it"]


def _has_velocity(limit: Element, label: str) -> bool:
    """Return whether a limit has a velocity. It must be a number, although it is not used."""
    velocity = limit.attributes.get("velocity")
    if velocity is not None and math.isnan(_number(velocity)):
        raise ModelError(
            f"{label}: limit at line {limit.line}: expected a number, got '{velocity}' in velocity"
        )
    return velocity is not None


def _number(text: str) -> float:
    """Parse a number; NaN if the text is not a number."""
    try:
        return math.nan if "_" in text else float(text)
    except ValueError:
        return math.nan

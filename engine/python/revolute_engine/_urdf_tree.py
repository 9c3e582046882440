"""Checks that the links and joints of a URDF form a tree, with clearer errors than MuJoCo's.

Names are unique, every joint connects two links of the file, every link is the child of at most one joint,
and there are no circles. A link without any joint is allowed, but causes a warning.
"""

from __future__ import annotations

from collections.abc import Iterable

from revolute.contract.errors import ModelError

from ._xml import Element, name_of

MAX_CHAIN = 1023
"""Longest chain of bodies, without the world, that MuJoCo's compiler accepts."""

_NAMED = 3  # largest number of links that a message names


def check_tree(root: Element, label: str, warnings: list[str]) -> None:
    """Check that links and joints form a tree.

    Args:
        root: the document.
        label: name of the file in messages.
        warnings: receives a warning on links without a joint.

    Raises:
        ModelError: they do not form a tree; the text names the first wrong link or joint.
    """
    links = _by_name(root, "link", label)
    joints = _by_name(root, "joint", label)
    carriers: dict[str, Element] = {}  # joint that carries each link
    children: dict[str, list[str]] = {}
    for joint in joints.values():
        parent, child = (_end(joint, side, links, label) for side in ("parent", "child"))
        if child in carriers:
            raise ModelError(
                f"{label}: link '{child}': expected one joint to carry it, got {name_of(carriers[child])} "
                f"and {name_of(joint)}; connect the second by another link"
            )
        carriers[child] = joint
        children.setdefault(parent, []).append(child)
    roots = [name for name in links if name not in carriers]
    reached = _reached(roots, children, carriers, label)
    circle = [name for name in links if name not in reached]
    if circle:
        raise ModelError(
            f"{label}: link {_listed(circle)}: expected a tree, got links that carry each other in a circle; "
            "take one of their joints away"
        )
    loose = [name for name in roots if name not in children]
    if loose and len(roots) > 1:
        warnings.append(f"link {_listed(loose)}: no joint connects it; it stays fixed in the world")


def _by_name(root: Element, tag: str, label: str) -> dict[str, Element]:
    """Return the links or joints by name; names must be unique."""
    found: dict[str, Element] = {}
    for element in root.children:
        name = element.attributes.get("name")
        if element.tag != tag or name is None:
            continue
        if name in found:
            raise ModelError(
                f"{label}: {tag} '{name}': expected the name once, got it at lines {found[name].line} and "
                f"{element.line}; rename one"
            )
        found[name] = element
    return found


def _end(joint: Element, side: str, links: Iterable[str], label: str) -> str:
    """Return the link at one end of a joint."""
    given = [child.attributes.get("link", "") for child in joint.children if child.tag == side]
    if not given or given[0] not in links:
        got = f"'{given[0]}'" if given else f"no <{side}>"
        raise ModelError(
            f"{label}: joint {name_of(joint)}: expected the name of a link as {side}, got {got}; correct it"
        )
    return given[0]


def _reached(
    roots: list[str], children: dict[str, list[str]], carriers: dict[str, Element], label: str
) -> set[str]:
    """Return the links that can be reached from a root, and check the length of chains."""
    reached: set[str] = set()
    pending = [(name, 0) for name in roots]
    while pending:
        name, depth = pending.pop()
        reached.add(name)
        if depth > MAX_CHAIN:
            raise too_long(label, "link", name)
        for child in children.get(name, ()):
            moves = carriers[child].attributes.get("type") != "fixed"
            pending.append((child, depth + moves))
    return reached


def too_long(label: str, kind: str, name: str) -> ModelError:
    """Return the error for a chain that is too long for MuJoCo."""
    return ModelError(
        f"{label}: {kind} '{name}': expected chains of at most {MAX_CHAIN} bodies, as MuJoCo's compiler "
        "takes, got a longer one; divide it"
    )


def _listed(names: list[str]) -> str:
    more = f" and {len(names) - _NAMED} more" if len(names) > _NAMED else ""
    return ", ".join(f"'{name}'" for name in names[:_NAMED]) + more

"""Bounds what a short text can make MuJoCo's compiler allocate.

A text of a hundred bytes can ask for a thousand million bodies, textures of any size or user data without
end, and a server compiles texts of strangers. Pictures and user data are reduced to nothing, since the engine
does not read them; what would repeat elements or make shapes is refused beyond bounds that no robot reaches.
"""

from __future__ import annotations

import math

from revolute.contract.errors import ModelError

from ._xml import Element

MAX_ELEMENTS = 100_000
"""Elements after replication."""

MAX_TEXTURE = 4096
"""Width and height of a generated texture in pixels."""

MAX_RESOLUTION = 256
"""Largest parameter of a generated mesh."""


MAX_VERTICES = 1_000_000
"""Largest number of vertices of a generated mesh."""


def bound_document(root: Element, label: str) -> None:
    """Reduce or refuse what could exhaust memory.

    Args:
        root: the document; changed in place.
        label: what messages call the file.

    Raises:
        ModelError: the document generates too fine a mesh.
    """
    for element in root.walk():
        # size holds lengths of buffers, custom holds data for programs of the user
        element.children = [child for child in element.children if child.tag not in ("size", "custom")]
        if element.tag == "texture":
            for side in ("width", "height"):
                if not _number(element.attributes.get(side, "1")) <= MAX_TEXTURE:
                    element.attributes[side] = "1"
        if element.tag == "mesh" and "builtin" in element.attributes:
            params = element.attributes.get("params", "")
            sizes = [max(1.0, abs(_number(word))) for word in params.split()]
            # the first three are counts, of which the vertices are the product
            if not (all(size <= MAX_RESOLUTION for size in sizes) and math.prod(sizes[:3]) <= MAX_VERTICES):
                name = element.attributes.get("name", element.attributes["builtin"])
                raise ModelError(
                    f"{label}: mesh '{name}': expected params up to {MAX_RESOLUTION}, got '{params}'; make "
                    "it coarser"
                )


def bound_elements(root: Element, label: str, attached: float = 0.0) -> float:
    """Return the number of a document's elements after replication and attachment, and refuse too many.

    Args:
        root: the document.
        label: what messages call the file.
        attached: number of elements of the largest model that it may attach.

    Raises:
        ModelError: there are too many.
    """
    count = _count(root, attached)
    if not count <= MAX_ELEMENTS:
        raise ModelError(
            f"{label}: replicate: expected at most {MAX_ELEMENTS} elements, got {count:g}; use smaller counts"
        )
    return count


def _count(element: Element, attached: float) -> float:
    """Return the number of elements at and below one, after replication and attachment."""
    total = 0.0
    stack = [(element, 1.0)]
    while stack:
        inner, times = stack.pop()
        if inner.tag in ("replicate", "composite"):
            for word in inner.attributes.get("count", "1").split():
                times *= max(1.0, _number(word))
        total += times * (attached if inner.tag == "attach" else 1.0)
        stack.extend((child, times) for child in inner.children)
    return total


def _number(text: str) -> float:
    """Return a number, infinity for what is none."""
    try:
        return float(text)
    except ValueError:
        return float("inf")

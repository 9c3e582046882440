"""Limits the memory that MuJoCo's compiler allocates for a short document.

A document of a hundred bytes can request a billion bodies, or textures and user data of any size, and a
server compiles documents from strangers. Textures and user data are shrunk or removed, because the engine
does not read them. Replicated elements and generated meshes beyond the limits below are an error; no robot
reaches them.
"""

from __future__ import annotations

import math

from revolute.contract.errors import ModelError

from ._xml import Element

MAX_ELEMENTS = 100_000
"""Largest number of elements after replication."""

MAX_TEXTURE = 4096
"""Largest width and height of a generated texture in pixels."""

MAX_RESOLUTION = 256
"""Largest parameter of a generated mesh."""


MAX_VERTICES = 1_000_000
"""Largest number of vertices of a generated mesh."""


def bound_document(root: Element, label: str) -> None:
    """Shrink textures, remove buffers and user data, and check generated meshes.

    Args:
        root: the document; changed in place.
        label: name of the file in messages.

    Raises:
        ModelError: a generated mesh is too fine.
    """
    for element in root.walk():
        # <size> sets lengths of buffers, <custom> holds user data
        element.children = [child for child in element.children if child.tag not in ("size", "custom")]
        if element.tag == "texture":
            for side in ("width", "height"):
                if not _number(element.attributes.get(side, "1")) <= MAX_TEXTURE:
                    element.attributes[side] = "1"
        if element.tag == "mesh" and "builtin" in element.attributes:
            params = element.attributes.get("params", "")
            sizes = [max(1.0, abs(_number(word))) for word in params.split()]
            # the product of the first three parameters is the number of vertices
            if not (all(size <= MAX_RESOLUTION for size in sizes) and math.prod(sizes[:3]) <= MAX_VERTICES):
                name = element.attributes.get("name", element.attributes["builtin"])
                raise ModelError(
                    f"{label}: mesh '{name}': expected params up to {MAX_RESOLUTION}, got '{params}'; make "
                    "it coarser"
                )


def bound_elements(root: Element, label: str, attached: float = 0.0) -> float:
    """Count a document's elements after replication and attachment.

    Args:
        root: the document.
        label: name of the file in messages.
        attached: number of elements of the largest model that the document attaches.

    Returns:
        The number of elements, at most MAX_ELEMENTS.

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
    """Count an element and all below it, after replication and attachment."""
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
    """Parse a number; infinity if the text is not a number."""
    try:
        return float(text)
    except ValueError:
        return float("inf")

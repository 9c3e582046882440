"""Limits the memory that MuJoCo's compiler allocates for a short document.

A document of a hundred bytes can request a billion bodies, or textures and user data of any size, and a
server compiles documents from strangers. Textures and user data are shrunk or removed, because the engine
does not read them. Replicated elements, generated meshes and height fields beyond the limits below are an
error; no robot reaches them.
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

MAX_HEIGHTS = 1_000_000
"""Largest number of heights of a model's height fields together."""


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


def heights_in_text(element: Element) -> float:
    """Return how many heights a height field without a file has."""
    rows, columns = (_number(element.attributes.get(side, "0")) for side in ("nrow", "ncol"))
    return rows * columns


def heights_in_file(label: str, reference: str, is_png: bool, data: bytes) -> int:
    """Return how many heights a height field's file has, by its first numbers.

    Args:
        label: name of the model in messages.
        reference: name of the file in the model.
        is_png: whether it is a picture; otherwise it is MuJoCo's own format.
        data: content of the file.

    Raises:
        ModelError: the file does not have that format.
    """
    if is_png:
        header = data[16:24] if data[:8] == b"\x89PNG\r\n\x1a\n" else b""
        rows, columns = int.from_bytes(header[4:8], "big"), int.from_bytes(header[:4], "big")
    else:
        rows, columns = (int.from_bytes(data[at : at + 4], "little", signed=True) for at in (0, 4))
        if len(data) != 8 + 4 * rows * columns:
            rows = columns = 0
    if rows < 1 or columns < 1:
        what = "a PNG file" if is_png else "two int32, rows and columns, and that many float32"
        raise ModelError(
            f"{label}: hfield '{reference}': expected {what}, got something else; save it as PNG"
        )
    return rows * columns


def bound_heights(label: str, name: str, heights: float) -> None:
    """Raise an error when a model's height fields, up to one of this name, have too many heights."""
    if not heights <= MAX_HEIGHTS:
        raise ModelError(
            f"{label}: hfield '{name}': expected at most {MAX_HEIGHTS} heights in all, got {heights:g}; "
            "make it coarser"
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

"""Replaces the include elements of an MJCF document by the content of the included files."""

from __future__ import annotations

import posixpath
from typing import NamedTuple

from revolute.contract.errors import ModelError

from ._files import FileFinder
from ._xml import MAX_DEPTH, Element, parse, too_deep


class _Place(NamedTuple):
    """An element and its origin.

    Attributes:
        element: the element.
        files: chain of including files, relative to the model; the last one contains the element.
        depth: nesting depth of the element.
    """

    element: Element
    files: tuple[str, ...]
    depth: int


class Includer:
    """Expands the includes of one document.

    Attributes:
        has_includes: whether the document has includes.
    """

    def __init__(self, label: str, finder: FileFinder) -> None:
        self.has_includes = False
        self._label = label
        self._finder = finder
        self._seen: set[str] = set()

    def expand(self, root: Element, file: str) -> None:
        """Expand all includes of a document, in place.

        Args:
            root: the document.
            file: the document's own file, relative to the model.

        Raises:
            ModelError: a file is missing, is not MJCF, is included twice, or includes itself.
        """
        stack = [_Place(root, (file,), 0)]
        while stack:
            place = stack.pop()
            below = self._expanded(place)
            place.element.children = [each.element for each in below]
            stack.extend(reversed(below))

    def _expanded(self, place: _Place) -> list[_Place]:
        """Return the children of an element with all includes expanded."""
        expanded: list[_Place] = []
        pending = _children(place.element, place.files, place.depth)
        while pending:
            child = pending.pop()
            if child.depth > MAX_DEPTH:
                raise too_deep(self._label, child.element.line)
            if child.element.tag == "include":
                root, file = self._included(child)
                pending += _children(root, (*child.files, file), child.depth)
            else:
                expanded.append(child)
        return expanded

    def _included(self, include: _Place) -> tuple[Element, str]:
        """Return the root element and the name of an included file."""
        reference = include.element.attributes.get("file", "")
        element = f"{self._label}: include '{reference}'"
        nested = posixpath.normpath(posixpath.join(posixpath.dirname(include.files[-1]), reference))
        names = nested, posixpath.normpath(reference)
        file, data = self._finder.first_of(names, self._label, "include", reference)
        if file in include.files:
            circle = " -> ".join((*include.files[include.files.index(file) :], file))
            raise ModelError(f"{element}: expected files that do not include themselves, got {circle}")
        if file in self._seen:
            raise ModelError(f"{element}: expected a file once, got it twice")
        self._seen.add(file)
        self.has_includes = True
        root = parse(element, data)
        if root.tag not in ("mujoco", "mujocoinclude"):
            raise ModelError(
                f"{element}: expected <mujoco> or <mujocoinclude> as first element, got <{root.tag}>"
            )
        return root, file


def _children(element: Element, files: tuple[str, ...], depth: int) -> list[_Place]:
    """Return the children of an element in reverse order."""
    return [_Place(child, files, depth + 1) for child in reversed(element.children)]

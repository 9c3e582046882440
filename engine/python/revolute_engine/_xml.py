"""A minimal XML tree, in which the loader checks a model before MuJoCo reads it.

`parse` reads elements and attributes; robot formats do not use text nodes. Document types are an error, so no
entity can expand or refer to a file. `write` converts the tree back to text, with every element on its
original line, so line numbers in MuJoCo's messages are correct. MuJoCo reads only the written text, so it
cannot interpret a file differently from this module.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from xml.parsers import expat
from xml.sax.saxutils import quoteattr

from revolute.contract.errors import ModelError

MAX_DEPTH = 499
"""Largest nesting depth of elements, equal to that of MuJoCo's reader: chains of 496 bodies in MJCF."""


MAX_ATTRIBUTES = 256
"""Largest number of attributes of an element. MJCF needs at most 60, and MuJoCo's reader takes quadratic
time."""


@dataclass
class Element:
    """One XML element.

    Attributes:
        tag: element name.
        attributes: attribute values by name, in file order.
        line: line on which the element starts, counted from 1.
        children: child elements in file order.
    """

    tag: str
    attributes: dict[str, str]
    line: int
    children: list[Element] = field(default_factory=list)

    def walk(self) -> Iterator[Element]:
        """Yield this element and all below it in document order."""
        stack = [self]
        while stack:
            element = stack.pop()
            yield element
            stack.extend(reversed(element.children))

    def find(self, *tags: str) -> list[Element]:
        """Return all elements at or below this one with one of the given tags, in document order."""
        return [element for element in self.walk() if element.tag in tags]


_COMMENT = re.compile(rb"<!--.*?-->", re.DOTALL)


def _blank(comment: re.Match[bytes]) -> bytes:
    """Remove the text of a comment, which need not be well-formed, but keep its line breaks."""
    return b"\n" * comment.group().count(b"\n")


def name_of(element: Element) -> str:
    """Return an element's name for messages: its name, else its file or link, else its line."""
    for attribute in ("name", "file", "filename", "plugin", "prefix", "link"):
        if attribute in element.attributes:
            return f"'{element.attributes[attribute]}'"
    return f"at line {element.line}"


def too_deep(label: str, line: int) -> ModelError:
    """Return the error for elements that are nested too deeply for MuJoCo."""
    return ModelError(
        f"{label}: expected at most {MAX_DEPTH} nested elements, as MuJoCo's reader takes, "
        f"got more at line {line}; "
        "give a longer chain as URDF, whose links are not nested"
    )


def parse(label: str, data: str | bytes) -> Element:
    """Read XML into a tree.

    Args:
        label: name of the document in messages.
        data: the document.

    Returns:
        Its root element.

    Raises:
        ModelError: the document is not well-formed XML, declares a document type or nests too deeply.
    """
    return _TreeBuilder(label, data).read()


class _TreeBuilder:
    """Collects expat's events into Elements."""

    def __init__(self, label: str, data: str | bytes) -> None:
        self._label = label
        self._root: Element | None = None
        self._open: list[Element] = []
        # a str is read as UTF-8, whatever encoding it declares; bytes are read in the declared encoding
        given = data.encode("utf-8", "replace") if isinstance(data, str) else data
        given = _COMMENT.sub(_blank, given)
        self._data = given.lstrip()
        self._skipped_lines = given[: len(given) - len(self._data)].count(b"\n")
        self._parser = expat.ParserCreate("utf-8" if isinstance(data, str) else None)
        self._parser.StartElementHandler = self._start
        self._parser.EndElementHandler = self._end
        self._parser.StartDoctypeDeclHandler = self._doctype

    def read(self) -> Element:
        """Parse the document and return its root."""
        try:
            self._parser.Parse(self._data, True)
        except expat.ExpatError as error:
            rest = self._data[self._parser.ErrorByteIndex :]
            if self._root is not None and not self._open and b"<" not in rest:
                return self._root  # ignore stray bytes after the document
            raise ModelError(
                f"{self._label}: expected XML, got {expat.ErrorString(error.code)} at line "
                f"{error.lineno + self._skipped_lines}, column {error.offset + 1}; give an MJCF or URDF file"
            ) from None
        except ModelError:
            raise
        except (LookupError, ValueError) as error:
            raise ModelError(f"{self._label}: expected XML, got {error}; save the file as UTF-8") from None
        assert self._root is not None
        return self._root

    def _start(self, tag: str, attributes: dict[str, str]) -> None:
        element = Element(tag, attributes, self._parser.CurrentLineNumber + self._skipped_lines)
        if len(self._open) >= MAX_DEPTH:
            raise too_deep(self._label, element.line)
        if len(attributes) > MAX_ATTRIBUTES:
            raise ModelError(
                f"{self._label}: {tag} {name_of(element)}: expected at most {MAX_ATTRIBUTES} attributes, "
                f"got {len(attributes)}; remove those that MJCF and URDF do not define"
            )
        if self._open:
            self._open[-1].children.append(element)
        else:
            self._root = element
        self._open.append(element)

    def _end(self, tag: str) -> None:
        self._open.pop()

    def _doctype(self, name: str, *_: object) -> None:
        raise ModelError(
            f"{self._label}: document type '{name}' is not supported; remove the <!DOCTYPE> declaration"
        )


def write(root: Element) -> str:
    """Convert the tree to XML text, with each element on its original line if possible."""
    pieces: list[str] = []
    line = 1
    stack: list[Element | str] = [root]  # elements to write, and end tags
    while stack:
        element = stack.pop()
        if isinstance(element, str):
            pieces.append(element)
            continue
        if element.line > line:
            pieces.append("\n" * (element.line - line))
            line = element.line
        attributes = "".join(f" {name}={quoteattr(value)}" for name, value in element.attributes.items())
        if not element.children:
            pieces.append(f"<{element.tag}{attributes}/>")
            continue
        pieces.append(f"<{element.tag}{attributes}>")
        stack.append(f"</{element.tag}>")
        stack.extend(reversed(element.children))
    return "".join(pieces)

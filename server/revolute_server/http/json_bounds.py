"""Measures the depth of a JSON text and the number of its keys and values, before it is parsed.

A few megabytes of brackets or keys become hundreds of megabytes of Python objects, and the parser blocks all
other threads meanwhile. The measurement looks only at bytes, block by block, and lets other threads run.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from revolute.contract.errors import LimitError

from ..settings import Settings

_BLOCK = 256 * 1024

_CONTAINER_BYTES, _KEY_BYTES, _TEXT_BYTES, _NUMBER_BYTES = 120, 250, 80, 48
"""Upper bounds on the memory in bytes that the parser needs for one of each, besides the text."""

_QUOTE, _BACKSLASH, _COLON, _COMMA = b'"\\:,'
_OPEN, _CLOSE, _LOWER = ord("{"), ord("}"), 0x20  # setting this bit turns a bracket into a brace
_WORD_LETTERS = b"tfnN"  # each of true, false, null and NaN has one of them


@dataclass
class Measure:
    """Counts of a JSON text; characters inside of strings are not counted.

    Attributes:
        size: bytes of the text.
        is_ascii: whether each character takes one byte.
        depth: nesting depth of objects and arrays.
        containers: number of objects and arrays.
        keys: number of keys of objects.
        words: number of strings, including keys, and of true, false and null.
        elements: upper bound on the number of values of any kind.
    """

    size: int
    is_ascii: bool
    depth: int = 0
    containers: int = 0
    keys: int = 0
    words: int = 0
    elements: int = 1

    def parsed_bytes(self) -> int:
        """Return an upper bound on the memory in bytes that parsing the text takes."""
        text = self.size * (2 if self.is_ascii else 8) + _BLOCK
        objects = self.containers * _CONTAINER_BYTES + self.keys * _KEY_BYTES + self.words * _TEXT_BYTES
        return text + objects + self.elements * _NUMBER_BYTES

    def kept_bytes(self) -> int:
        """Return an upper bound on the memory in bytes of the document, with its numbers in arrays."""
        return self.size + self.keys * _KEY_BYTES + self.words * _TEXT_BYTES + 8 * self.elements


def is_flat(text: bytes, settings: Settings) -> bool:
    """Tell whether a short text is certainly within the limits, without measuring it."""
    brackets = text.count(b"[") + text.count(b"{")
    most = min(settings.max_json_keys, settings.max_json_values)
    return brackets <= settings.max_json_depth and len(text) <= most


def measure(text: bytes) -> Measure:
    """Measure a text, which need not be JSON."""
    found = Measure(len(text), text.isascii())
    state = _State()
    content = np.frombuffer(text, np.uint8)
    for place in range(0, len(content), _BLOCK):
        _add(found, content[place : place + _BLOCK], state)
    return found


def check(found: Measure, settings: Settings) -> None:
    """Refuse a text that exceeds a limit.

    Raises:
        LimitError: it exceeds one.
    """
    values = found.containers + found.words - found.keys
    for name, what, value in (
        ("max_json_depth", "objects and arrays within each other", found.depth),
        ("max_json_keys", "keys", found.keys),
        ("max_json_values", "objects, arrays and words", values),
    ):
        limit = getattr(settings, name)
        if value > limit:
            raise LimitError.expected(
                "body",
                f"JSON with at most {limit} {what}",
                value,
                advice="send application/x-npz, or start the server with more than " + settings.flag(name),
            )


@dataclass
class _State:
    """State of the measurement between two blocks."""

    in_string: bool = False
    backslashes: int = 0
    depth: int = 0


def _add(found: Measure, block: np.ndarray, state: _State) -> None:
    """Add the counts of a block."""
    quotes = block == _QUOTE
    backslashes = block == _BACKSLASH
    if state.backslashes or backslashes.any():
        quotes &= ~_escaped(backslashes, state)
    # odd from the opening quote of a string up to, not including, its closing quote
    inside = np.cumsum(quotes, dtype=np.int32) + state.in_string
    outside = (inside & 1) == 0
    state.in_string = not outside[-1]
    folded = block | _LOWER
    opens = outside & (folded == _OPEN)
    depth = np.cumsum(opens.astype(np.int32) - (outside & (folded == _CLOSE)), dtype=np.int32)
    found.depth = max(found.depth, state.depth + int(depth.max()))
    state.depth += int(depth[-1])
    containers = int(np.count_nonzero(opens))
    found.containers += containers
    found.keys += int(np.count_nonzero(outside & (block == _COLON)))
    found.elements += containers + int(np.count_nonzero(outside & (block == _COMMA)))
    words = sum(int(np.count_nonzero(outside & (block == letter))) for letter in _WORD_LETTERS)
    found.words += words + int(np.count_nonzero(quotes & ~outside))


def _escaped(backslashes: np.ndarray, state: _State) -> np.ndarray:
    """Return a mask of the bytes that follow an odd number of backslashes."""
    places = np.arange(len(backslashes), dtype=np.int32)
    last_other = np.maximum.accumulate(np.where(backslashes, -1 - state.backslashes, places))
    before = np.empty_like(places)
    before[0] = state.backslashes
    before[1:] = places[:-1] - last_other[:-1]
    state.backslashes = int(places[-1] - last_other[-1]) % 2
    return (before & 1) == 1

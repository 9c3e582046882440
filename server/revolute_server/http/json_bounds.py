"""Measures JSON before it is parsed: how deep it is, and how many keys and values it has.

A few megabytes of brackets or keys become hundreds of megabytes of Python objects, made in one go while
nothing else runs. The measure looks at bytes alone, block by block, and leaves other threads their turn.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from revolute.contract.errors import LimitError

from ..settings import Settings

_BLOCK = 256 * 1024

_CONTAINER_BYTES, _KEY_BYTES, _TEXT_BYTES, _NUMBER_BYTES = 120, 250, 80, 48
"""Of memory that the parser needs, at most, for one of each, besides the text itself."""

_QUOTE, _BACKSLASH, _COLON, _COMMA = b'"\\:,'
_OPEN, _CLOSE, _LOWER = ord("{"), ord("}"), 0x20  # with this bit set, a bracket is the brace of its kind
_WORD_LETTERS = b"tfnN"  # each of true, false, null and NaN has one of them


@dataclass
class Measure:
    """What a JSON text has, strings aside.

    Attributes:
        size: bytes.
        is_ascii: whether each character is one byte.
        depth: objects and arrays within each other.
        containers: objects and arrays.
        keys: keys of objects.
        words: strings, keys among them, and true, false, null.
        elements: values of any kind, at most.
    """

    size: int
    is_ascii: bool
    depth: int = 0
    containers: int = 0
    keys: int = 0
    words: int = 0
    elements: int = 1

    def parsed_bytes(self) -> int:
        """Return how many bytes of memory it takes to parse the text, at most."""
        text = self.size * (2 if self.is_ascii else 8) + _BLOCK
        objects = self.containers * _CONTAINER_BYTES + self.keys * _KEY_BYTES + self.words * _TEXT_BYTES
        return text + objects + self.elements * _NUMBER_BYTES

    def kept_bytes(self) -> int:
        """Return how many of them are still needed when the numbers are in arrays."""
        return self.size + self.keys * _KEY_BYTES + self.words * _TEXT_BYTES + 8 * self.elements


def is_flat(text: bytes, settings: Settings) -> bool:
    """Tell whether a short text is within the limits for certain, without measuring it."""
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
    """Refuse a text that is beyond the limits.

    Raises:
        LimitError: it is.
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
    """What one block leaves to the next."""

    in_string: bool = False
    backslashes: int = 0
    depth: int = 0


def _add(found: Measure, block: np.ndarray, state: _State) -> None:
    """Add what a block has to the measure."""
    quotes = block == _QUOTE
    backslashes = block == _BACKSLASH
    if state.backslashes or backslashes.any():
        quotes &= ~_escaped(backslashes, state)
    # odd from a string's first quote to before its last
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
    """Return which bytes have an odd number of backslashes in front of them."""
    places = np.arange(len(backslashes), dtype=np.int32)
    last_other = np.maximum.accumulate(np.where(backslashes, -1 - state.backslashes, places))
    before = np.empty_like(places)
    before[0] = state.backslashes
    before[1:] = places[:-1] - last_other[:-1]
    state.backslashes = int(places[-1] - last_other[-1]) % 2
    return (before & 1) == 1

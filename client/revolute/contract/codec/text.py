"""Checks that the words of a message are text that every transport can carry.

Python's strings may hold halves of surrogate pairs, which UTF-8 has no bytes for, and names may hold zeros,
which an archive cuts them at. In process either would do; there it is refused as well, so that a call means
the same everywhere.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from ..errors import ArgumentError, NotFoundError, shortened

_LONGEST_NAME = 1024
"""Bytes of a name under which arrays and files are sent."""


def check_text(document: Mapping[str, Any]) -> None:
    """Refuse words in a message that are no Unicode text, and names that no archive can hold.

    Args:
        document: the message.

    Raises:
        NotFoundError: the word is an id.
        ArgumentError: it is another one.
    """
    for name, value in document.items():
        if isinstance(value, np.ndarray) or not value:
            continue
        if isinstance(value, str):
            _check_word(name, value)
        elif isinstance(value, Mapping):
            for key in value:
                _check_name(name, key)
            check_text(value)
        elif isinstance(value, (list, tuple)):
            _check_entries(name, value)


def _check_entries(name: str, values: list[Any] | tuple[Any, ...]) -> None:
    for value in values:
        if isinstance(value, str):
            _check_word(name, value)
        elif isinstance(value, Mapping):
            check_text(value)


def _check_word(name: str, word: str) -> None:
    place = _half_pair(word)
    if place is None:
        return
    if name.endswith("_id") and name != "request_id":
        raise NotFoundError.missing(name.removesuffix("_id"), word)
    raise ArgumentError.expected(name, "Unicode text", f"half a surrogate pair at character {place}")


def _check_name(name: str, key: str) -> None:
    if _half_pair(key) is not None or "\0" in key or len(key.encode()) > _LONGEST_NAME:
        what = f"names of at most {_LONGEST_NAME} bytes of Unicode text without zeros"
        raise ArgumentError.expected(name, what, repr(shortened(key, 80)))


def _half_pair(word: str) -> int | None:
    """Return the place of the first half of a surrogate pair; None without any."""
    if word.isascii():
        return None
    try:
        word.encode()
    except UnicodeEncodeError as error:
        return error.start
    return None

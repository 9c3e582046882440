"""Checks that every transport can carry the strings of a message.

A Python string may contain lone surrogates, which UTF-8 cannot encode, and a name may contain null
characters, where an archive truncates it. Both would work in process, but are an error there too, so that all
transports behave the same.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from ..errors import ArgumentError, NotFoundError, shortened

_LONGEST_NAME = 1024
"""Largest size in bytes of the name of an array or file."""


def check_text(document: Mapping[str, Any]) -> None:
    """Raise an error for strings that are not valid Unicode, and for names that no archive can hold.

    Args:
        document: the message.

    Raises:
        NotFoundError: the bad string is an id.
        ArgumentError: any other string or name is bad.
    """
    for name, value in document.items():
        if isinstance(value, np.ndarray) or not value:
            continue
        if isinstance(value, str):
            _check_word(name, value)
        elif isinstance(value, (list, tuple)):
            _check_entries(name, value)
        elif isinstance(value, Mapping):
            for key in value:
                _check_name(name, key)
            check_text(value)


def _check_entries(name: str, values: list[Any] | tuple[Any, ...]) -> None:
    for value in values:
        if isinstance(value, str):
            _check_word(name, value)
        elif isinstance(value, Mapping):
            check_text(value)


def _check_word(name: str, word: str) -> None:
    place = _surrogate_position(word)
    if place is None:
        return
    if name.endswith("_id") and name != "request_id":
        raise NotFoundError.missing(name.removesuffix("_id"), word)
    raise ArgumentError.expected(name, "Unicode text", f"half a surrogate pair at character {place}")


def _check_name(name: str, key: str) -> None:
    if _surrogate_position(key) is not None or "\0" in key or len(key.encode()) > _LONGEST_NAME:
        what = f"names of at most {_LONGEST_NAME} bytes of Unicode text without zeros"
        raise ArgumentError.expected(name, what, repr(shortened(key, 80)))


def _surrogate_position(word: str) -> int | None:
    """Return the index of the first lone surrogate, or None."""
    if word.isascii():
        return None
    try:
        word.encode()
    except UnicodeEncodeError as error:
        return error.start
    return None

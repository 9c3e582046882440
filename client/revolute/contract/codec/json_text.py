"""Strict JSON with exact numbers (RFC 8259), the readable form of messages over HTTP.

Finite doubles are written with enough digits to restore the same bits. JSON has no other numbers: answers
contain the strings "nan", "inf" and "-inf"; requests with the bare words NaN or Infinity are an error.
"""

from __future__ import annotations

import json
import math
from typing import Any

import numpy as np

from ..errors import ArgumentError

MEDIA_TYPE = "application/json"


def to_json(value: Any) -> str:
    """Return a value as JSON text.

    Args:
        value: None, bools, numbers, strings, arrays, and lists and mappings of these.
    """
    return json.dumps(_plain(value), allow_nan=False, ensure_ascii=False, separators=(",", ":"))


def from_json(text: str | bytes, *, name: str = "body") -> Any:
    """Return the value of JSON text.

    Args:
        text: the text; bytes are UTF-8.
        name: the argument's name, for the error text.

    Raises:
        ArgumentError: the text is not strict JSON.
    """

    def refuse(word: str) -> Any:
        raise ArgumentError.expected(name, "finite JSON numbers", word)

    try:
        return json.loads(text, parse_constant=refuse)
    except (json.JSONDecodeError, UnicodeDecodeError, RecursionError) as error:
        raise ArgumentError.expected(name, "JSON", f"text that is none ({error})") from error


def _plain(value: Any) -> Any:
    """Convert `value` to types that `json` can write; non-finite numbers become strings."""
    if isinstance(value, np.ndarray):
        return (
            value.tolist() if value.dtype.kind != "f" or np.isfinite(value).all() else _plain(value.tolist())
        )
    if isinstance(value, np.generic):
        return _plain(value.item())
    if isinstance(value, float) and not math.isfinite(value):
        return "nan" if math.isnan(value) else ("inf" if value > 0 else "-inf")
    if isinstance(value, dict):
        return {str(key): _plain(entry) for key, entry in value.items()}
    if isinstance(value, (list, tuple)):
        return [_plain(entry) for entry in value]
    return value

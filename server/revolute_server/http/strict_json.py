"""JSON (RFC 8259) with floats that keep their bits.

Reading: `NaN`, `Infinity` and numbers beyond the range of float64 become non-finite floats, so that the check
of their field refuses them with its name. Integers that fit into 64 bits become ints; larger ones and `-0`
become floats. Writing: floats are written by `repr`, the shortest text that reads back to the same bits;
non-finite floats are written as the strings "nan", "inf" and "-inf", and bytes (uint8 arrays) as base64.
"""

from __future__ import annotations

import base64
import json
import math
import re
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np

from revolute.contract.codec.text import check_text
from revolute.contract.errors import ArgumentError

_LONGEST_INT64 = 20  # characters, with a sign
_SURROGATE = re.compile(rb"\\u[dD][89a-fA-F]")
_BLOCK = 4096  # numbers that are encoded at once; the event loop can run between blocks


def loads(body: bytes) -> dict[str, Any]:
    """Parse a request body, which must be one JSON object.

    Raises:
        ArgumentError: the body is not JSON, has a field twice, or is not an object.
    """
    return _loads(body, None)


def _loads(body: bytes, parse_float: Callable[[str], float] | None) -> dict[str, Any]:
    try:
        document = json.loads(
            body.decode("utf-8"),
            parse_int=_whole_number,
            parse_float=parse_float,
            object_pairs_hook=_object,
        )
    except UnicodeDecodeError as error:
        raise ArgumentError.expected(
            "body", "JSON in UTF-8", f"byte {body[error.start]:#04x}", at=str(error.start)
        ) from None
    except json.JSONDecodeError as error:
        where = f"line {error.lineno}, column {error.colno}"
        raise ArgumentError.expected("body", "a JSON object", f"{error.msg.lower()!r}", at=where) from None
    except RecursionError:
        raise ArgumentError.expected("body", "a JSON object", "brackets nested too deep") from None
    if not isinstance(document, dict):
        raise ArgumentError.expected("body", "a JSON object", _kind(document))
    if _SURROGATE.search(body):
        check_text(document)
    return document


def loads_large(body: bytes) -> dict[str, Any]:
    """Parse a large body on a thread, while the event loop runs.

    Unlike `loads`, it parses floats with a Python function, because the interpreter can switch threads only
    between calls of Python functions, and it converts long lists of numbers to arrays, block by block.
    """
    return {name: _as_array(value) for name, value in _loads(body, _float).items()}


def _float(text: str) -> float:
    return float(text)


def _as_array(value: Any) -> Any:
    """Convert a large nested list of numbers to an array; return other values and ragged lists unchanged."""
    if isinstance(value, dict):
        return {name: _as_array(entry) for name, entry in value.items()}
    if not isinstance(value, list) or _size(value) <= _BLOCK:
        return value
    row = _size(value[0])
    if row > _BLOCK:
        blocks = [_as_array(entry) for entry in value]
        return np.stack(blocks) if _fit(blocks, 0) else value
    rows = max(1, _BLOCK // row)
    blocks = []
    for first in range(0, len(value), rows):
        try:
            block = np.asarray(value[first : first + rows])
        except ValueError:
            return value
        if block.dtype.kind not in "if":
            return value
        blocks.append(block)
    return np.concatenate(blocks).astype(np.float64) if _fit(blocks, 1) else value


def _size(value: Any) -> int:
    """Return the number of numbers in a nested list if all rows are as long as the first."""
    size = 1
    while isinstance(value, list):
        size *= len(value)
        value = value[0] if value else None
    return size


def _fit(blocks: list[Any], axis: int) -> bool:
    """Tell whether all blocks are arrays whose shapes agree from `axis` on."""
    return all(
        isinstance(block, np.ndarray) and block.shape[axis:] == blocks[0].shape[axis:] for block in blocks
    )


def dumps(document: Any) -> bytes:
    """Write a document of dicts, lists, arrays, numbers, strings, booleans and None."""
    return "".join(_encode(document)).encode("utf-8")


def _encode(value: Any) -> Iterator[str]:
    """Yield the text of a value piece by piece."""
    if isinstance(value, dict):
        separator = "{"
        for key, entry in value.items():
            yield f"{separator}{json.dumps(key)}:"
            yield from _encode(entry)
            separator = ","
        yield "}" if value else "{}"
    elif isinstance(value, np.ndarray) and value.dtype == np.uint8:
        yield f'"{base64.b64encode(value.tobytes()).decode()}"'
    elif isinstance(value, np.ndarray):
        yield from _encode_array(value)
    elif isinstance(value, list | tuple):
        separator = "["
        for entry in value:
            yield separator
            yield from _encode(entry)
            separator = ","
        yield "]" if value else "[]"
    elif isinstance(value, np.generic):
        yield from _encode(value.item())
    elif isinstance(value, float) and not math.isfinite(value):
        yield f'"{value}"'
    else:
        yield json.dumps(value, allow_nan=False)


def _encode_array(array: np.ndarray) -> Iterator[str]:
    if array.ndim > 1 and array.size > _BLOCK * len(array):
        # rows longer than a block
        separator = "["
        for row in array:
            yield separator
            yield from _encode_array(row)
            separator = ","
        yield "]"
    elif array.size > _BLOCK:
        rows = _BLOCK * len(array) // array.size
        separator = "["
        for first in range(0, len(array), rows):
            yield separator
            yield _block(array[first : first + rows])[1:-1]
            separator = ","
        yield "]"
    else:
        yield _block(array)


def _block(array: np.ndarray) -> str:
    """Return the text of a small array."""
    values = array.tolist()
    if array.dtype.kind == "f" and not np.isfinite(array).all():
        values = _named(values)
    return json.dumps(values, separators=(",", ":"))


def _named(value: Any) -> Any:
    """Replace non-finite floats by strings."""
    if isinstance(value, list):
        return [_named(entry) for entry in value]
    return value if math.isfinite(value) else str(value)


def _whole_number(text: str) -> int | float:
    if len(text) > _LONGEST_INT64 or text == "-0":
        return float(text)
    number = int(text)
    return number if -(2**63) <= number < 2**63 else float(text)


def _object(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    document: dict[str, Any] = {}
    for key, value in pairs:
        if key in document:
            raise ArgumentError.expected(key[:80], "one value", "two", advice="give each field once")
        document[key] = value
    return document


def _kind(value: Any) -> str:
    return {list: "an array", str: "a string", bool: "a boolean", type(None): "null"}.get(
        type(value), "a number"
    )

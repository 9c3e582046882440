"""JSON as RFC 8259 has it, with doubles that come back bit for bit.

Reading: `NaN`, `Infinity` and numbers beyond float64's range are kept as what they are, so that the check
of the field they stand in can refuse them by name; whole numbers are read as they are where 64 bits hold
them; larger ones and `-0` are read as the double they denote. Writing: numbers are written by `repr`, the
shortest text that reads back to the same bits; what is not finite is written as the strings "nan", "inf",
"-inf".
"""

from __future__ import annotations

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
_BLOCK = 4096  # numbers encoded in one go; the event loop gets the GIL back between blocks


def loads(body: bytes) -> dict[str, Any]:
    """Read a request body, which has to be one JSON object.

    Raises:
        ArgumentError: the body is not JSON, names a field twice, or is no object.
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
    """Read a large body on a thread of its own, and leave the event loop the GIL meanwhile.

    As `loads`, but numbers go through a Python function, at whose calls the interpreter may change threads,
    and long lists of numbers become arrays block by block.
    """
    return {name: _as_array(value) for name, value in _loads(body, _float).items()}


def _float(text: str) -> float:
    return float(text)


def _as_array(value: Any) -> Any:
    """Return a large list of numbers, or of rows of them, as an array; what is none, or ragged, as it is."""
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
    """Return how many numbers a list has if all its rows are as long as the first."""
    size = 1
    while isinstance(value, list):
        size *= len(value)
        value = value[0] if value else None
    return size


def _fit(blocks: list[Any], axis: int) -> bool:
    """Tell whether all are arrays, of one shape from an axis on."""
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
        for place in range(0, len(array), rows):
            yield separator
            yield _block(array[place : place + rows])[1:-1]
            separator = ","
        yield "]"
    else:
        yield _block(array)


def _block(array: np.ndarray) -> str:
    """Return the text of an array that is encoded in one go."""
    values = array.tolist()
    if array.dtype.kind == "f" and not np.isfinite(array).all():
        values = _named(values)
    return json.dumps(values, separators=(",", ":"))


def _named(value: Any) -> Any:
    """Replace what is not finite by its name."""
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

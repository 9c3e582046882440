"""Parts that carry `start` with large arrays in it, written and read with one copy of the arrays.

A protobuf message copies its bytes when they are set, when it is written and when it is read. Here the
message is written without them, and they are put where they belong in its wire format; read, they are cut out
as views before protobuf sees the rest. Lists and whatever is not written in the usual way are left to
protobuf.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from google.protobuf.message import Message

from ..v1 import tensor_pb2
from .varint import read_varint, varint

LARGE = 16 * 1024
"""Bytes of an array from which on this is worth its trouble."""

_CARRIERS = {kind.DESCRIPTOR.full_name for kind in (tensor_pb2.Tensor, tensor_pb2.Blob)}
_BYTES = 2  # wire type of what has a length: tag = number << 3 | wire type
_KEY, _VALUE = b"\x0a", b"\x12"
_FIXED = {1: 8, 5: 4}


class StartPart:
    """A part with a start whose large arrays are apart, read like a message.

    Attributes:
        inline: views of bytes of the part as it arrived, by field path.
    """

    __slots__ = ("_message", "inline")

    def __init__(self, message: Message, inline: Mapping[str, memoryview]) -> None:
        self._message = message
        self.inline = inline

    def __getattr__(self, name: str) -> Any:
        return getattr(self._message, name)


def can_inline(message: Message, path: str) -> bool:
    """Tell whether `write_start` can write the Tensor or Blob at a field path: no list leads to it."""
    descriptor: Any = message.DESCRIPTOR
    while True:
        name, _, rest = path.partition(".")
        field = descriptor.fields_by_name[name]
        if is_map(field):
            return True
        if field.is_repeated:
            return False
        if not rest:
            return True
        descriptor, path = field.message_type, rest


def write_start(number: int, start: Message, inline: Mapping[str, memoryview]) -> bytes:
    """Return a part with a start as bytes.

    Args:
        number: of the part's field for it.
        start: the message; what `inline` names is taken out of it.
        inline: bytes of Tensors and Blobs, at least one each, by field path.
    """
    pieces = _written(start, inline)
    return b"".join((_head(number, pieces), *pieces))


def read_start(content: bytes, part_type: type[Message]) -> StartPart | None:
    """Return a part that `write_start` might have written; None for any other.

    Raises:
        DecodeError: the bytes beside the arrays are no part.
    """
    found: dict[str, memoryview] = {}
    try:
        rest = _cut(memoryview(content), part_type.DESCRIPTOR, "", found, whole=True)
    except _UnusualError:
        return None
    if not found:
        return None
    message = part_type.FromString(b"".join(rest))
    # the path begins with the part's own field, which is no part of the names that others use
    inline = {path.partition(".")[2]: view for path, view in found.items()}
    return StartPart(message, inline)


class _UnusualError(Exception):
    """Bytes that protobuf may understand, or may not."""


def _written(message: Any, inline: Mapping[str, memoryview]) -> list[Any]:
    """Return the wire format of a message with bytes by field path within it."""
    if "" in inline:
        number = message.DESCRIPTOR.fields_by_name["data"].number
        return [message.SerializeToString(), _head(number, [inline[""]]), inline[""]]
    inner: dict[str, dict[str, memoryview]] = {}
    for path, view in inline.items():
        name, _, rest = path.partition(".")
        inner.setdefault(name, {})[rest] = view
    pieces: list[Any] = []
    for name, views in inner.items():
        field, value = message.DESCRIPTOR.fields_by_name[name], getattr(message, name)
        if is_map(field):
            for key, view in views.items():
                entry = _written(value[key], {"": view})
                named = key.encode()
                entry = [_KEY, varint(len(named)), named, _head(2, entry), *entry]
                pieces += [_head(field.number, entry), *entry]
                del value[key]
        else:
            nested = _written(value, views)
            pieces += [_head(field.number, nested), *nested]
            message.ClearField(name)
    return [message.SerializeToString(), *pieces]


def _head(number: int, pieces: list[Any]) -> bytes:
    """Return tag and length of a field with these bytes."""
    return varint(number << 3 | _BYTES) + varint(sum(map(len, pieces)))


def _cut(
    content: memoryview, kind: Any, prefix: str, found: dict[str, memoryview], *, whole: bool = False
) -> list[Any]:
    """Take the large bytes of Tensors and Blobs out of a message.

    Args:
        content: the message.
        kind: its type.
        prefix: its path, with a dot at the end.
        found: takes the bytes by field path.
        whole: whether the message must consist of one field.

    Returns:
        What remains, as pieces.
    """
    rest: list[Any] = []
    seen: set[Any] = set()
    place = 0
    while place < len(content):
        begin = place
        tag, place = _number(content, place)
        if tag & 7 != _BYTES:
            place = _number(content, place)[1] if tag & 7 == 0 else place + _fixed(tag)
            rest.append(content[begin:place])
            continue
        size, place = _number(content, place)
        value = content[place : place + size]
        place += size
        if len(value) != size or (whole and place != len(content)):
            raise _UnusualError
        field = kind.fields_by_number.get(tag >> 3)
        if field is None or (field.message_type is None and field.name != "data"):
            rest.append(content[begin:place])
            continue
        kept, name = _cut_field(value, field, prefix, found)
        if name in seen:
            raise _UnusualError
        seen.add(name)
        rest += [content[begin:place]] if kept is None else [_head(field.number, kept), *kept]
    return rest


def _cut_field(
    value: memoryview, field: Any, prefix: str, found: dict[str, memoryview]
) -> tuple[list[Any] | None, Any]:
    """Take the large bytes out of a field; return what remains of it, None for all, and what names it."""
    path = f"{prefix}{field.name}"
    if field.message_type is None:
        if field.containing_type.full_name not in _CARRIERS or len(value) < LARGE:
            return None, field.number
        found[prefix[:-1]] = value
        return [], field.number
    if is_map(field):
        return _cut_entry(value, field, path, found)
    if field.is_repeated:
        # any number of them may come
        return None, object()
    if len(value) < LARGE:
        return None, field.number
    return _cut(value, field.message_type, f"{path}.", found), field.number


def _cut_entry(
    value: memoryview, field: Any, path: str, found: dict[str, memoryview]
) -> tuple[list[Any] | None, Any]:
    """Take the large bytes out of an entry of a map; it is named by its key."""
    if value[:1] != _KEY:
        raise _UnusualError
    size, place = _number(value, 1)
    key, head = bytes(value[place : place + size]), value[: place + size]
    place += size
    if value[place : place + 1] != _VALUE:
        raise _UnusualError
    size, place = _number(value, place + 1)
    inner = field.message_type.fields_by_name["value"].message_type
    if place + size != len(value) or inner is None:
        raise _UnusualError
    if size < LARGE:
        return None, (field.number, key)
    try:
        kept = _cut(value[place:], inner, f"{path}.{key.decode()}.", found)
    except UnicodeDecodeError:
        raise _UnusualError from None
    return [head, _head(2, kept), *kept], (field.number, key)


def _number(content: memoryview, place: int) -> tuple[int, int]:
    number, place = read_varint(content, place)
    if number is None:
        raise _UnusualError
    return number, place


def _fixed(tag: int) -> int:
    """Return the length of a field without one of its own."""
    if tag & 7 not in _FIXED:
        raise _UnusualError
    return _FIXED[tag & 7]


def is_map(field: Any) -> bool:
    """Tell whether a field is a map of messages or values."""
    return field.message_type is not None and field.message_type.GetOptions().map_entry

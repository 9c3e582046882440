"""Parts that carry a chunk, written and read without the copies that a protobuf message makes of its bytes.

Every part type of the protocol has `Chunk chunk = 2`, a Chunk has `field = 1`, `offset = 2`, `data = 3`. Such
a part is written as its wire format directly; read it is a view of the bytes that arrived. Anything that
is not exactly of that form is left to protobuf.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

_CHUNK, _FIELD, _OFFSET, _DATA = b"\x12", b"\x0a", b"\x10", b"\x1a"
"""Tags: number << 3 | wire type."""


class ChunkPart:
    """A part with a chunk, read like a message.

    Attributes:
        field: path of the array or file.
        offset: position of the first byte.
        data: the bytes, a view of those that arrived.
    """

    __slots__ = ("data", "field", "offset")

    def __init__(self, field: str, offset: int, data: memoryview) -> None:
        self.field = field
        self.offset = offset
        self.data = data

    @property
    def chunk(self) -> ChunkPart:
        return self

    def WhichOneof(self, name: str) -> str:  # noqa: N802, the name that messages have
        return "chunk"


def write_chunk(field: str, offset: int, data: memoryview) -> bytes:
    """Return a part with a chunk as bytes.

    Args:
        field: path of the array or file.
        offset: position of the first byte; 0 is left out, as protobuf does.
        data: the bytes, at least one.
    """
    name = field.encode()
    place = _OFFSET + _varint(offset) if offset else b""
    head = b"".join((_FIELD, _varint(len(name)), name, place, _DATA, _varint(len(data))))
    return b"".join((_CHUNK, _varint(len(head) + len(data)), head, data))


def read_part(content: bytes, decode: Callable[[bytes], Any]) -> Any:
    """Return a part of a stream, a ChunkPart where it carries a chunk.

    Args:
        content: the part as it arrived.
        decode: makes a message of what is no plain chunk.

    Raises:
        DecodeError: the bytes are no part.
    """
    found = _read_chunk(content) if content[:1] == _CHUNK else None
    return decode(content) if found is None else found


def _read_chunk(content: bytes) -> ChunkPart | None:
    """Return a part that `write_chunk` might have written; None for any other."""
    size, place = _read_varint(content, 1)
    if size is None or place + size != len(content) or content[place : place + 1] != _FIELD:
        return None
    size, place = _read_varint(content, place + 1)
    if size is None or place + size > len(content):
        return None
    try:
        field = content[place : place + size].decode()
    except UnicodeDecodeError:
        return None
    place += size
    offset: int | None = 0
    if content[place : place + 1] == _OFFSET:
        offset, place = _read_varint(content, place + 1)
    if offset is None or offset >= 2**63 or content[place : place + 1] != _DATA:
        return None
    size, place = _read_varint(content, place + 1)
    if size is None or place + size != len(content):
        return None
    return ChunkPart(field, offset, memoryview(content)[place:])


def _varint(number: int) -> bytes:
    """Write a whole number, seven bits per byte, the lowest first."""
    out = bytearray()
    while number >= 0x80:
        out.append(number & 0x7F | 0x80)
        number >>= 7
    out.append(number)
    return bytes(out)


def _read_varint(content: bytes, place: int) -> tuple[int | None, int]:
    """Return a whole number and the place after it; None if there is none."""
    number = 0
    for position in range(10):
        if place + position >= len(content):
            break
        byte = content[place + position]
        number |= (byte & 0x7F) << 7 * position
        if byte < 0x80:
            return number, place + position + 1
    return None, place

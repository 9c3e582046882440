"""Parts that carry a chunk, written and read without the copies that a protobuf message makes of its bytes.

Every part type of the protocol has `Chunk chunk = 2`, a Chunk has `field = 1`, `offset = 2`, `data = 3`. Such
a part is written as its wire format directly; read it is a view of the bytes that arrived. Anything that
is not exactly of that form is left to protobuf.
"""

from __future__ import annotations

from typing import Any

from google.protobuf.message import Message

from .starts import LARGE, read_start
from .varint import read_varint, varint

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
    place = _OFFSET + varint(offset) if offset else b""
    head = b"".join((_FIELD, varint(len(name)), name, place, _DATA, varint(len(data))))
    return b"".join((_CHUNK, varint(len(head) + len(data)), head, data))


def read_part(content: bytes, part_type: type[Message]) -> Any:
    """Return a part of a stream, a ChunkPart where it carries a chunk, a StartPart where a start has large
    arrays.

    Args:
        content: the part as it arrived.
        part_type: message of the parts, for what is neither.

    Raises:
        DecodeError: the bytes are no part.
    """
    found: Any = _read_chunk(content) if content[:1] == _CHUNK else None
    if found is None and len(content) >= LARGE:
        found = read_start(content, part_type)
    return part_type.FromString(content) if found is None else found


def _read_chunk(content: bytes) -> ChunkPart | None:
    """Return a part that `write_chunk` might have written; None for any other."""
    size, place = read_varint(content, 1)
    if size is None or place + size != len(content) or content[place : place + 1] != _FIELD:
        return None
    size, place = read_varint(content, place + 1)
    if size is None or place + size > len(content):
        return None
    try:
        field = content[place : place + size].decode()
    except UnicodeDecodeError:
        return None
    place += size
    offset: int | None = 0
    if content[place : place + 1] == _OFFSET:
        offset, place = read_varint(content, place + 1)
    if offset is None or offset >= 2**63 or content[place : place + 1] != _DATA:
        return None
    size, place = read_varint(content, place + 1)
    if size is None or place + size != len(content):
        return None
    return ChunkPart(field, offset, memoryview(content)[place:])

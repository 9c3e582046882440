"""Encodes documents of plain values, arrays and bytes as payloads (lists of buffers), without copies.

    magic "RVL1" | length of the header, uint32 | header, JSON | padding | array | padding | array | ...

In the header an array is {"$array": [dtype, shape, offset]} and bytes are {"$bytes": [count, offset]}.
Offsets count from the end of the header's padding and are multiples of 16. The checksum of a payload includes
kind and key, so that it also detects a payload that was stored under another record's key.
"""

from __future__ import annotations

import json
import struct
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import xxhash

_MAGIC = b"RVL1"
_ALIGN = 16

_SMALL = 4096
"""Arrays up to this size in bytes are copied, which takes less time than a view of their bytes."""

_ARRAYS = (np.ndarray, np.generic)
_PADDING = tuple(bytes(count) for count in range(_ALIGN))


def encode(document: Mapping[str, Any]) -> tuple[Any, ...]:
    """Return the buffers of a document; its large arrays are not copied."""
    body = _Body()
    header = json.dumps(body.pack(document)).encode()
    start = _MAGIC + struct.pack("<I", len(header)) + header
    return (start + bytes(-len(start) % _ALIGN), *body.buffers)


def decode(payload: Sequence[Any]) -> dict[str, Any]:
    """Return the document of a payload whose checksum was verified; its arrays are read-only views."""
    content = memoryview(payload[0] if len(payload) == 1 else b"".join(payload)).toreadonly()
    (length,) = struct.unpack_from("<I", content, len(_MAGIC))
    start = len(_MAGIC) + 4 + length
    header = json.loads(bytes(content[len(_MAGIC) + 4 : start]))
    return _unpack(header, content[start + -start % _ALIGN :])


def checksum(kind: str, key: str, payload: Sequence[Any]) -> bytes:
    """Return the checksum (XXH3, 128 bits) of a record."""
    digest = xxhash.xxh3_128(f"{kind}/{key}/".encode())
    for part in payload:
        digest.update(part)
    return digest.digest()


def fingerprint(verb: str, arguments: Mapping[str, Any]) -> str:
    """Return a hash of a request; it is equal for equal values on all transports."""
    digest = xxhash.xxh3_128(verb.encode())
    for part in encode(arguments):
        digest.update(part)
    return digest.hexdigest()


class _Body:
    """The buffers of arrays and bytes behind the header."""

    def __init__(self) -> None:
        self.buffers: list[Any] = []
        self._size = 0

    def pack(self, value: Any) -> Any:
        """Return a value as it stands in the header; append the content of arrays and bytes."""
        if isinstance(value, _ARRAYS):
            return {
                "$array": [value.dtype.str, list(value.shape), self._append(_content(value), value.nbytes)]
            }
        if isinstance(value, (str, int, float)) or value is None:
            return value
        if isinstance(value, bytes):
            return {"$bytes": [len(value), self._append(value, len(value))]}
        # most mappings are dicts, and the test for others takes long
        if isinstance(value, dict) or isinstance(value, Mapping):  # noqa: SIM101
            return {str(key): self.pack(value[key]) for key in sorted(value)}
        if isinstance(value, (list, tuple)):
            return [self.pack(entry) for entry in value]
        return value

    def _append(self, data: Any, size: int) -> int:
        offset = self._size
        self.buffers.append(data)
        if padding := -size % _ALIGN:
            self.buffers.append(_PADDING[padding])
        self._size += size + padding
        return offset


def _content(array: Any) -> Any:
    """Return the bytes of an array in C order."""
    if array.nbytes <= _SMALL:
        return array.tobytes()
    return np.require(array, requirements="C").reshape(-1).view(np.uint8).data


def _unpack(value: Any, content: memoryview) -> Any:
    if isinstance(value, dict):
        if "$array" in value:
            dtype, shape, offset = value["$array"]
            count = int(np.prod(shape, dtype=np.int64))
            return np.frombuffer(content, np.dtype(dtype), count, offset).reshape(shape)
        if "$bytes" in value:
            count, offset = value["$bytes"]
            return bytes(content[offset : offset + count])
        return {key: _unpack(entry, content) for key, entry in value.items()}
    if isinstance(value, list):
        return [_unpack(entry, content) for entry in value]
    return value

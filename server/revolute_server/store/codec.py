"""Payloads: a document of plain values, arrays and bytes as a few buffers, and back, without copies.

    magic "RVL1" | length of the header, uint32 | header, JSON | padding | array | padding | array | ...

In the header an array is {"$array": [dtype, shape, offset]} and bytes are {"$bytes": [count, offset]};
offsets count from the end of the header's padding, and each is a multiple of 16. The checksum of a payload
goes over kind and key as well, so that bytes which turn up in another record's place are found out.
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


def encode(document: Mapping[str, Any]) -> tuple[Any, ...]:
    """Return the buffers of a document; those of its arrays are the arrays' own memory."""
    blobs: list[Any] = []
    place = [0]
    header = json.dumps(_pack(document, blobs, place)).encode()
    start = _MAGIC + struct.pack("<I", len(header)) + header
    return (start + bytes(-len(start) % _ALIGN), *blobs)


def decode(payload: Sequence[Any]) -> dict[str, Any]:
    """Return the document of a payload whose checksum is right; its arrays are read-only views of it."""
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
    """Return a hash of a request: equal for equal values, whatever way they came."""
    digest = xxhash.xxh3_128(verb.encode())
    for part in encode(arguments):
        digest.update(part)
    return digest.hexdigest()


def _pack(value: Any, blobs: list[Any], place: list[int]) -> Any:
    if isinstance(value, np.ndarray | np.generic):
        array = np.require(value, requirements="C")
        place_of = _append(array.reshape(-1).view(np.uint8).data, blobs, place)
        return {"$array": [array.dtype.str, list(array.shape), place_of]}
    if isinstance(value, bytes):
        return {"$bytes": [len(value), _append(value, blobs, place)]}
    if isinstance(value, Mapping):
        return {str(key): _pack(value[key], blobs, place) for key in sorted(value)}
    if isinstance(value, list | tuple):
        return [_pack(entry, blobs, place) for entry in value]
    return value


def _append(data: Any, blobs: list[Any], place: list[int]) -> int:
    offset, size = place[0], memoryview(data).nbytes
    blobs.append(data)
    if padding := -size % _ALIGN:
        blobs.append(bytes(padding))
    place[0] += size + padding
    return offset


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

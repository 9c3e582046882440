"""A message as one NPZ file, the binary form of messages over HTTP (`application/x-npz`).

A message is a document: nested dicts and lists of arrays, numbers and strings, as in JSON. In an NPZ file,
each array is a member named by its path ("ctrl", "params.body_mass"). The rest of the document, including
arrays inside lists, is a JSON object; its UTF-8 bytes are the uint8 member "header". Pickles are never
written or read.
"""

from __future__ import annotations

import io
import struct
import zipfile
import zlib
from collections.abc import Iterator, Mapping, Sequence
from typing import IO, Any

import numpy as np

from ..errors import ArgumentError
from . import json_text
from .npy import read_array

MEDIA_TYPE = "application/x-npz"
HEADER = "header"

DAMAGED: tuple[type[Exception], ...] = (
    zipfile.BadZipFile,
    zlib.error,
    # zipfile raises these for encryption, unknown methods and versions, and inconsistent fields
    *(RuntimeError, NotImplementedError, EOFError, OSError, ValueError, OverflowError, struct.error),
)
"""What `zipfile` raises where the bytes of an archive are damaged."""

_REFUSED: tuple[type[Exception], ...] = (*DAMAGED, TypeError, KeyError)

_MAPS = ("params", "params_tan", "control_tan", "arrays", "assets", "measured", "cotangents", "jacobians")
"""Map fields, whose keys may contain dots."""

BLOCK_BYTES = 512 * 1024
"""Size in bytes of the blocks in which a body is sent."""

_HEAD = struct.Struct("<4s22xHH")
"""Local header of a member: magic number, length of the name, length of the extra field; both follow it."""

_UTF8_NAME = 0x800

_ALIGN = 64
_PADDING = struct.Struct("<HH")
_PADDING_ID = 0xD935
"""Id of an extra field that only pads, as in Android's archives."""

_ZIP64_SIZE = 20
"""Size in bytes of the extra field that holds the lengths of a large member."""


def pack_npz(document: Mapping[str, Any]) -> bytes:
    """Return a document as the bytes of an NPZ file."""
    return b"".join(npz_pieces(document))


def npz_pieces(document: Mapping[str, Any]) -> list[bytes | memoryview]:
    """Return the bytes of a document's NPZ file in pieces. Arrays are not copied: their pieces are views."""
    members: dict[str, np.ndarray] = {}
    header = _take_arrays(document, "", members)
    members[HEADER] = np.frombuffer(json_text.to_json(header).encode(), dtype=np.uint8)
    pieces = _Pieces()
    with zipfile.ZipFile(pieces, "w", zipfile.ZIP_STORED) as archive:  # type: ignore[call-overload]
        for name, array in members.items():
            with archive.open(_aligned(f"{name}.npy", pieces.tell()), "w", force_zip64=True) as member:
                _write_array(member, array)
    return pieces.content()


def _aligned(name: str, place: int) -> zipfile.ZipInfo:
    """Return a padded member whose content, if the member starts at `place`, begins at a multiple of _ALIGN.

    NumPy pads the .npy header to a multiple too, so a reader can use the arrays in the archive without
    copies.
    """
    member = zipfile.ZipInfo(name)
    start = place + _HEAD.size + len(name.encode()) + _PADDING.size + _ZIP64_SIZE
    padding = -start % _ALIGN
    member.extra = _PADDING.pack(_PADDING_ID, padding) + bytes(padding)
    return member


def blocks(pieces: Sequence[bytes | memoryview]) -> Iterator[bytes]:
    """Yield the bytes of pieces in blocks of BLOCK_BYTES; the last may be shorter."""
    block: list[bytes | memoryview] = []
    room = BLOCK_BYTES
    for piece in pieces:
        place = 0
        while place < len(piece):
            part = piece[place : place + room]
            block.append(part)
            place, room = place + len(part), room - len(part)
            if not room:
                yield b"".join(block)
                block, room = [], BLOCK_BYTES
    if block:
        yield b"".join(block)


class BytesReader(io.RawIOBase):
    """A read-only file over bytes in memory, without a copy."""

    def __init__(self, data: bytes | memoryview) -> None:
        self._data = memoryview(data)
        self._place = 0

    @classmethod
    def open(cls, data: bytes | memoryview) -> IO[bytes]:
        """Return a buffered file over bytes, for `zipfile`."""
        return io.BufferedReader(cls(data))

    def readable(self) -> bool:
        return True

    def seekable(self) -> bool:
        return True

    def seek(self, offset: int, whence: int = io.SEEK_SET) -> int:
        start = {io.SEEK_SET: 0, io.SEEK_CUR: self._place, io.SEEK_END: len(self._data)}[whence]
        if start + offset < 0:
            raise ValueError(f"negative seek value {start + offset}")
        self._place = start + offset
        return self._place

    def readinto(self, buffer: Any) -> int:
        found = self._data[self._place : self._place + len(buffer)]
        buffer[: len(found)] = found
        self._place += len(found)
        return len(found)


class _Pieces:
    """A write-only file that keeps the written pieces without copies.

    `zipfile` writes from start to end, except that it rewrites a member's header, with the same length, once
    the checksum is known.
    """

    def __init__(self) -> None:
        self._pieces: dict[int, bytes | memoryview] = {}
        self._place = 0

    def write(self, data: bytes | memoryview) -> int:
        """Write a piece at the current position, replacing the piece that starts there."""
        size = len(data)
        if size:
            self._pieces[self._place] = data
        self._place += size
        return size

    def tell(self) -> int:
        """Return the current position."""
        return self._place

    def seek(self, place: int) -> int:
        """Move to the start of a piece, or to the end."""
        self._place = place
        return place

    def flush(self) -> None:
        """Do nothing: writes are not buffered."""

    def content(self) -> list[bytes | memoryview]:
        """Return the pieces in order."""
        return list(self._pieces.values())


def unpack_npz(data: bytes | memoryview) -> dict[str, Any]:
    """Return the document of an NPZ file.

    If `data` is writable, large arrays are views of it; all other arrays are copies.

    Raises:
        ArgumentError: the bytes are not an NPZ file, hold pickled objects, or the header does not fit the
            members.
    """
    try:
        with zipfile.ZipFile(BytesReader.open(data)) as archive:
            members = {
                member.filename.removesuffix(".npy"): read_array(member_content(archive, member, data))
                for member in archive.infolist()
            }
    except _REFUSED as error:
        cause = str(error).splitlines()[0] if str(error) else type(error).__name__
        raise ArgumentError.expected("body", "an NPZ file without pickled objects", cause) from error
    document = _header(members.pop(HEADER, None))
    for path, array in members.items():
        _put(document, path, array)
    return document


def keys_of(path: str) -> list[str]:
    """Split the path of a member at its dots; the rest after a map field is one key."""
    keys = path.split(".")
    for position, key in enumerate(keys[:-1]):
        if key in _MAPS:
            return [*keys[: position + 1], ".".join(keys[position + 1 :])]
    return keys


def member_content(
    archive: zipfile.ZipFile, member: zipfile.ZipInfo, data: bytes | memoryview
) -> bytes | memoryview:
    """Return the content of a member; for an uncompressed member, a view of the archive.

    Args:
        archive: the archive.
        member: the member.
        data: all bytes of the archive.

    Raises:
        zipfile.BadZipFile: the member is damaged. `zipfile` may raise other exceptions.
    """
    view = _stored(member, data)
    if view is None:
        with archive.open(member) as stream:
            return stream.read(member.file_size + 1)
    if zlib.crc32(view) != member.CRC:
        raise zipfile.BadZipFile(f"Bad CRC-32 for file {member.filename!r}")
    return view


def _stored(member: zipfile.ZipInfo, data: bytes | memoryview) -> memoryview | None:
    """Return a view of an uncompressed member, or None."""
    plain = member.compress_type == zipfile.ZIP_STORED and member.compress_size == member.file_size
    head = data[member.header_offset : member.header_offset + _HEAD.size]
    if not plain or member.flag_bits & ~_UTF8_NAME or len(head) < _HEAD.size:
        return None
    magic, name_size, extra_size = _HEAD.unpack(head)
    start = member.header_offset + _HEAD.size + name_size + extra_size
    if magic != b"PK\x03\x04" or start + member.file_size > len(data):
        return None
    name = data[member.header_offset + _HEAD.size : start - extra_size]
    if name != member.orig_filename.encode("utf-8" if member.flag_bits else "cp437", "replace"):
        return None
    return memoryview(data)[start : start + member.file_size]


def _write_array(member: IO[bytes], array: np.ndarray) -> None:
    """Write an array in .npy format; the numbers of a contiguous array as one piece, without a copy."""
    if not (array.flags.c_contiguous and array.size and array.dtype.kind in "biuf"):
        np.lib.format.write_array(member, array, allow_pickle=False)
        return
    header = np.lib.format.header_data_from_array_1_0(array)
    np.lib.format.write_array_header_1_0(member, header)
    member.write(array.reshape(-1).view(np.uint8).data)


def _take_arrays(document: Mapping[str, Any], prefix: str, members: dict[str, np.ndarray]) -> dict[str, Any]:
    """Return `document` without its arrays, and add the arrays to `members` by path."""
    rest: dict[str, Any] = {}
    for key, value in document.items():
        if isinstance(value, np.ndarray):
            members[f"{prefix}{key}"] = value
        elif isinstance(value, Mapping):
            rest[key] = _take_arrays(value, f"{prefix}{key}.", members)
        elif value is not None:
            rest[key] = value
    return rest


def _put(document: dict[str, Any], path: str, array: np.ndarray) -> None:
    """Set the entry of a document at a path, and create missing parents."""
    *parents, name = keys_of(path)
    place: Any = document
    for parent in parents:
        place = place.setdefault(parent, {}) if isinstance(place, dict) else None
    if not isinstance(place, dict) or name in place:
        raise ArgumentError.expected(path, "a member whose path fits the header", "one that does not")
    place[name] = array


def _header(member: np.ndarray | None) -> dict[str, Any]:
    if member is None:
        return {}
    if member.dtype != np.uint8 or member.ndim != 1:
        raise ArgumentError.expected(HEADER, "a uint8 array of UTF-8 JSON", f"dtype {member.dtype}")
    header = json_text.from_json(member.tobytes(), name=HEADER)
    if not isinstance(header, dict):
        raise ArgumentError.expected(HEADER, "a JSON object", type(header).__name__)
    return header

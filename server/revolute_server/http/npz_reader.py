"""Reads NPZ archives (NumPy arrays in a zip file) of untrusted clients.

It checks the directory and the header of each array first. It refuses pickles, arrays whose header does not
fit the size of their member, and archives that unpack to more than the limit: a few kilobytes of zip can
claim terabytes.
"""

from __future__ import annotations

import dataclasses
import math
import zipfile
from collections.abc import Mapping
from typing import Any

import numpy as np

from revolute.contract.codec.npy import head_of, read_header
from revolute.contract.codec.npz import DAMAGED, HEADER, BytesReader, keys_of, member_content
from revolute.contract.codec.tensor import check_axes
from revolute.contract.errors import ArgumentError, LimitError

from ..settings import Settings, format_bytes

_TAIL = 66 * 1024
"""Largest number of bytes after the directory, including a comment."""

_LONGEST_ENTRY = 1024
"""Largest average number of bytes per member in the directory."""

_ENTRY = b"PK\1\2"
"""First bytes of an entry of the directory."""

_MEMBER_BYTES, _LEVEL_BYTES = 1024, 240
"""Memory in bytes for a member besides its content, and for each level of its path."""

_METHODS = (zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED)  # the methods that NumPy writes
_PLAIN_KINDS = "biufcSUMm"  # one value per element; the verbs check which kinds a field takes


@dataclasses.dataclass(frozen=True)
class Bounds:
    """Limits on an archive.

    Attributes:
        size: largest number of unpacked bytes.
        size_flag: setting of that limit, for the message.
        members: largest number of arrays.
        members_flag: setting of that limit, for the message.
        depth: largest number of names in a path.
    """

    size: int
    size_flag: str
    members: int = 4096
    members_flag: str = "--max-npz-arrays 4096"
    depth: int = 32

    @classmethod
    def of(cls, settings: Settings) -> Bounds:
        """Return the limits in the settings of a server."""
        return cls(
            settings.max_request,
            settings.flag("max_request"),
            settings.max_npz_arrays,
            settings.flag("max_npz_arrays"),
            settings.max_json_depth,
        )


class Archive:
    """An archive whose directory is within the limits; its arrays are not unpacked yet."""

    def __init__(self, body: bytes | memoryview, bounds: Bounds) -> None:
        """Read the directory.

        Args:
            body: the archive.
            bounds: its limits.

        Raises:
            ArgumentError: the body is not a zip archive of arrays.
            LimitError: it has too many members or unpacks to too many bytes.
        """
        try:
            self._body = body
            reader = _DirectoryReader(body, bounds)
            self._zip = zipfile.ZipFile(reader)
            reader.opened = True
        except LimitError:
            raise
        except DAMAGED as error:
            raise ArgumentError.expected("body", "a NumPy .npz archive", str(error).lower()[:120]) from None
        members = self._zip.infolist()
        if len(members) > bounds.members:
            raise _too_many(bounds, str(len(members)))
        unpacked = sum(member.file_size for member in members)
        if unpacked > bounds.size:
            raise LimitError.expected(
                "body",
                f"an archive that unpacks to at most {format_bytes(bounds.size)}",
                format_bytes(unpacked),
                advice=f"send less at once, or start the server with more than {bounds.size_flag}",
            )
        levels = sum(min(member.filename.count("."), bounds.depth) for member in members)
        self.size = unpacked + _MEMBER_BYTES * len(members) + _LEVEL_BYTES * levels

    def read(self) -> dict[str, np.ndarray]:
        """Unpack every array.

        Raises:
            ArgumentError: a member is not an array, holds Python objects, or is damaged.
        """
        arrays: dict[str, np.ndarray] = {}
        for member in self._zip.infolist():
            name = member.filename.removesuffix(".npy")
            if name == member.filename or name in arrays or member.compress_type not in _METHODS:
                raise ArgumentError.expected(
                    "body",
                    "arrays (NAME.npy) with names of their own, stored or deflated",
                    repr(member.filename[:80]),
                )
            try:
                content = member_content(self._zip, member, self._body)
            except DAMAGED as error:
                raise ArgumentError.expected(
                    name[:80], "an undamaged array", str(error).lower()[:120]
                ) from None
            arrays[name] = _parse_array(name[:80], content)
        return arrays


class _DirectoryReader(BytesReader):
    """Lets zipfile read the directory only if it is not too long and has not too many entries.

    zipfile makes objects of all entries, even of millions, before they can be counted.
    """

    def __init__(self, body: bytes | memoryview, bounds: Bounds) -> None:
        super().__init__(body)
        self._bounds = bounds
        self.opened = False

    def read(self, size: int = -1) -> bytes:
        if not self.opened and size > _LONGEST_ENTRY * self._bounds.members + 2 * _TAIL:
            raise _too_many(self._bounds, "a directory for more")
        content = super().read(size) or b""
        if not self.opened and content.count(_ENTRY) > self._bounds.members:
            raise _too_many(self._bounds, "more")
        return content


def take_header(arrays: dict[str, np.ndarray]) -> bytes:
    """Remove the header from an archive's arrays and return it; an empty JSON object if there is none.

    Raises:
        ArgumentError: the header is not text.
    """
    member = arrays.pop(HEADER, None)
    if member is None:
        return b"{}"
    if member.dtype == np.uint8 and member.ndim == 1:
        return member.tobytes()
    raise ArgumentError.expected(HEADER, "JSON in UTF-8 as uint8", f"{member.dtype} {list(member.shape)}")


def join(document: dict[str, Any], arrays: Mapping[str, np.ndarray], bounds: Bounds) -> dict[str, Any]:
    """Insert an archive's arrays into the document of its header, at their paths.

    Raises:
        ArgumentError: a path does not fit the document.
    """
    for path, value in arrays.items():
        *parents, name = keys_of(path)
        if len(parents) >= bounds.depth:
            raise ArgumentError.expected(
                path[:80], f"a path of at most {bounds.depth} names", len(parents) + 1
            )
        parent: Any = document
        for key in parents:
            parent = parent.setdefault(key, {}) if isinstance(parent, dict) else None
        if not isinstance(parent, dict) or name in parent:
            raise ArgumentError.expected(path[:80], "a path that fits the header", "one that does not")
        parent[name] = value
    return document


def _too_many(bounds: Bounds, got: str) -> LimitError:
    return LimitError.expected(
        "body",
        f"at most {bounds.members} arrays in an archive",
        got,
        advice=f"send fewer, or start the server with more than {bounds.members_flag}",
    )


def _parse_array(name: str, content: bytes | memoryview) -> np.ndarray:
    """Parse the bytes of a .npy file; the result is a read-only view of them."""
    stream = head_of(content)
    try:
        shape, fortran_order, dtype = read_header(stream)
    except Exception as error:
        # NumPy parses the header as Python source, and raises many kinds of errors for malformed text
        found = f"{type(error).__name__}: {error}".splitlines()[0][:120]
        raise ArgumentError.expected(name, "an array in .npy format", found) from None
    if dtype.hasobject:
        raise ArgumentError.expected(
            name, "an array of numbers", "Python objects (a pickle)", advice="pickles are never opened"
        )
    if dtype.kind not in _PLAIN_KINDS:
        raise ArgumentError.expected(name, "an array of numbers", f"records ({dtype})"[:120])
    count = math.prod(shape)
    start = stream.tell()
    if count * dtype.itemsize != len(content) - start or any(length < 0 for length in shape):
        raise ArgumentError.expected(
            name,
            f"{count * dtype.itemsize} bytes for shape {list(shape)} of {dtype}",
            f"{len(content) - start} bytes",
        )
    check_axes(name, shape)
    if dtype.itemsize == 0:
        return np.zeros(shape, dtype)
    flat = np.require(np.frombuffer(content, dtype, count, start), requirements="A")
    return flat.reshape(shape, order="F" if fortran_order else "C")

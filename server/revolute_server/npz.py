"""NumPy archives from clients that are not trusted.

An archive is read only as far as its directory and each array's header allow: no pickles, no array whose
header claims more bytes than its member has, no archive that unpacks to more than the limit (a few
kilobytes of zip can claim terabytes).
"""

from __future__ import annotations

import math
import struct
import zipfile
import zlib
from collections.abc import Mapping
from typing import Any

import numpy as np

from revolute.codec.npy import head_of, read_header
from revolute.codec.npz import HEADER, BytesReader, member_content
from revolute.codec.tensor import check_axes
from revolute.errors import ArgumentError, LimitError

from . import strict_json
from .settings import format_bytes

_MAX_MEMBERS = 4096
_DAMAGED = (
    zipfile.BadZipFile,
    zlib.error,
    # what zipfile raises for encryption, unknown methods and versions, and fields that make no sense
    *(RuntimeError, NotImplementedError, EOFError, OSError, ValueError, OverflowError, struct.error),
)
_METHODS = (zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED)  # those that NumPy writes
_PLAIN_KINDS = "biufcSUMm"  # one value per element; which of them a field takes is checked where it is used
_MAPS = ("params", "params_tan", "assets")  # fields whose keys are names of their own, which may hold dots


class Archive:
    """An archive whose directory was found to fit the limit; its arrays are not yet unpacked."""

    def __init__(self, body: bytes | memoryview, limit: int, flag: str) -> None:
        """Read the directory.

        Args:
            body: the archive.
            limit: bytes that it may unpack to.
            flag: the setting that holds the limit, for the message.

        Raises:
            ArgumentError: the body is no zip archive of arrays.
            LimitError: it has too many members or unpacks to too many bytes.
        """
        try:
            self._body = body
            self._zip = zipfile.ZipFile(BytesReader.open(body))
        except _DAMAGED as error:
            raise ArgumentError.expected("body", "a NumPy .npz archive", str(error).lower()[:120]) from None
        members = self._zip.infolist()
        if len(members) > _MAX_MEMBERS:
            raise LimitError.expected("body", f"at most {_MAX_MEMBERS} arrays in an archive", len(members))
        self.size = sum(member.file_size for member in members)
        if self.size > limit:
            raise LimitError.expected(
                "body",
                f"an archive that unpacks to at most {format_bytes(limit)}",
                format_bytes(self.size),
                advice=f"send less at once, or start the server with more than {flag}",
            )

    def read(self) -> dict[str, np.ndarray]:
        """Unpack every array.

        Raises:
            ArgumentError: a member is no array, holds Python objects, or is damaged.
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
            except _DAMAGED as error:
                raise ArgumentError.expected(
                    name[:80], "an undamaged array", str(error).lower()[:120]
                ) from None
            arrays[name] = _parse_array(name[:80], content)
        return arrays


def join(arrays: Mapping[str, np.ndarray]) -> dict[str, Any]:
    """Put an archive's arrays into the document of its header, at their paths.

    Raises:
        ArgumentError: the header is no JSON object, or a path does not fit it.
    """
    document = _header(arrays.get(HEADER))
    for path, value in arrays.items():
        if path == HEADER:
            continue
        *parents, name = _keys(path)
        place: Any = document
        for key in parents:
            place = place.setdefault(key, {}) if isinstance(place, dict) else None
        if not isinstance(place, dict) or name in place:
            raise ArgumentError.expected(path[:80], "a path that fits the header", "one that does not")
        place[name] = value
    return document


def _keys(path: str) -> list[str]:
    """Split a path; what follows a map is one key, dots and all."""
    keys = path.split(".")
    for position, key in enumerate(keys[:-1]):
        if key in _MAPS:
            return [*keys[: position + 1], ".".join(keys[position + 1 :])]
    return keys


def _header(member: np.ndarray | None) -> dict[str, Any]:
    if member is None:
        return {}
    if member.dtype == np.uint8 and member.ndim == 1:
        return strict_json.loads(member.tobytes())
    raise ArgumentError.expected(HEADER, "JSON in UTF-8 as uint8", f"{member.dtype} {list(member.shape)}")


def _parse_array(name: str, content: bytes | memoryview) -> np.ndarray:
    """Read one .npy file whose bytes are at hand; the result is a read-only view of them."""
    stream = head_of(content)
    try:
        shape, fortran_order, dtype = read_header(stream)
    except Exception as error:
        # NumPy reads the header as Python text, and trips over broken text in many ways
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

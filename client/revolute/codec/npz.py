"""A message as one NPZ file, the form of arrays over HTTP (`application/x-npz`).

A message is a document: dicts and lists with arrays, numbers and words as leaves, the same that JSON carries.
In an NPZ file each array is a member named by its path ("ctrl", "params.body_mass"); what remains, arrays
inside lists among it, is one JSON object, the UTF-8 bytes of the uint8 member "header". Pickles are never
written or read.
"""

from __future__ import annotations

import io
import zipfile
from collections.abc import Mapping
from typing import IO, Any

import numpy as np

from ..errors import ArgumentError
from . import json_text
from .npy import read_array

MEDIA_TYPE = "application/x-npz"
HEADER = "header"


def pack_npz(document: Mapping[str, Any]) -> bytes:
    """Return a document as the bytes of an NPZ file."""
    members: dict[str, np.ndarray] = {}
    header = _take_arrays(document, "", members)
    members[HEADER] = np.frombuffer(json_text.to_json(header).encode(), dtype=np.uint8)
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w", zipfile.ZIP_STORED) as archive:
        for name, array in members.items():
            with archive.open(f"{name}.npy", "w", force_zip64=True) as member:
                _write_array(member, array)
    return buffer.getvalue()


def unpack_npz(data: bytes) -> dict[str, Any]:
    """Return the document of an NPZ file.

    Raises:
        ArgumentError: the bytes are not an NPZ file, hold pickled objects, or the header does not fit the
            members.
    """
    try:
        with zipfile.ZipFile(io.BytesIO(data)) as archive:
            members = {
                name.removesuffix(".npy"): read_array(archive.read(name)) for name in archive.namelist()
            }
    except (zipfile.BadZipFile, ValueError, TypeError, OSError, EOFError, KeyError) as error:
        cause = str(error).splitlines()[0] if str(error) else type(error).__name__
        raise ArgumentError.expected("body", "an NPZ file without pickled objects", cause) from error
    document = _header(members.pop(HEADER, None))
    for path, array in members.items():
        _put(document, path, array)
    return document


def _write_array(member: IO[bytes], array: np.ndarray) -> None:
    """Write an array of numbers in NumPy's format, its bytes in one piece where they lie so."""
    if not (array.flags.c_contiguous and array.size and array.dtype.kind in "biuf"):
        np.lib.format.write_array(member, array, allow_pickle=False)
        return
    header = np.lib.format.header_data_from_array_1_0(array)
    np.lib.format.write_array_header_1_0(member, header)
    member.write(array.reshape(-1).view(np.uint8).data)


def _take_arrays(document: Mapping[str, Any], prefix: str, members: dict[str, np.ndarray]) -> dict[str, Any]:
    """Return `document` without its arrays and add them to `members` by path."""
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
    """Set the entry of a document at a path; missing objects on the way are made."""
    *parents, name = path.split(".")
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

"""Headers of NumPy's .npy format, read without NumPy's own reader where they are the usual ones.

NumPy evaluates a header as Python text. In CPython 3.11 that may fail when several threads do it at once
("AST constructor recursion depth mismatch"), so a header as NumPy writes it for numbers is matched here;
any other goes to NumPy.
"""

from __future__ import annotations

import math
import re
from io import BytesIO
from typing import Any

import numpy as np

_MOST_HEADER = 64 * 1024
"""Bytes of a header; NumPy reads no more than 10,000 of its text."""

_LARGE = 64 * 1024
"""Bytes of an array that may hold on to those of others beside it."""

_MAGIC = b"\x93NUMPY\x01\x00"
_USUAL = re.compile(
    rb"\{'descr': '([<>|][biuf][1248])', 'fortran_order': (True|False), 'shape': \(([0-9, ]*)\), \} *\n"
)


def read_header(stream: BytesIO) -> tuple[tuple[int, ...], bool, np.dtype]:
    """Read the header of a .npy file; the stream is then at its numbers.

    Returns:
        Shape, whether the first axis runs fastest, and the type of the numbers.

    Raises:
        ValueError: it is no .npy file, or of a format other than 1.0 and 2.0.
    """
    start = stream.tell()
    head = stream.read(len(_MAGIC) + 2)
    if head.startswith(_MAGIC) and len(head) == len(_MAGIC) + 2:
        usual = _USUAL.fullmatch(stream.read(int.from_bytes(head[-2:], "little")))
        if usual:
            descr, order, shape = usual.groups()
            axes = tuple(int(length) for length in shape.replace(b" ", b"").split(b",") if length)
            return axes, order == b"True", np.dtype(descr.decode())
    stream.seek(start)
    version = np.lib.format.read_magic(stream)
    if version == (1, 0):
        return np.lib.format.read_array_header_1_0(stream)
    if version == (2, 0):
        return np.lib.format.read_array_header_2_0(stream)
    raise ValueError(f"format {version[0]}.{version[1]} of .npy")


def head_of(content: bytes | memoryview) -> BytesIO:
    """Return the beginning of a .npy file, with all of its header, as a stream."""
    return BytesIO(content[:_MOST_HEADER])


def read_array(content: bytes | memoryview) -> np.ndarray:
    """Return the array of a .npy file, in memory of its own unless it is large and lies in writable memory.

    Raises:
        ValueError: it is no .npy file of numbers or text, or has fewer bytes than its header says.
    """
    stream = head_of(content)
    shape, fortran_order, dtype = read_header(stream)
    if dtype.hasobject:
        raise ValueError("Object arrays cannot be loaded: pickles are never opened")
    count = len(content) - stream.tell()
    if count < math.prod(shape) * dtype.itemsize:
        raise ValueError(f"{count} bytes for shape {list(shape)} of {dtype}")
    numbers: Any = memoryview(content)[stream.tell() :]
    if numbers.readonly or count < _LARGE or np.frombuffer(numbers, np.uint8).ctypes.data % dtype.alignment:
        own = np.empty(count, np.uint8)
        own.data[:] = numbers
        numbers = own
    return np.ndarray(shape, dtype, numbers, order="F" if fortran_order else "C")

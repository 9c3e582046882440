"""Reads NumPy's .npy format. Common headers are parsed without NumPy's reader.

NumPy parses a header as a Python literal. In CPython 3.11 this can fail when several threads do it at once
("AST constructor recursion depth mismatch"). So headers in the form that NumPy writes for numbers are matched
with a regular expression; NumPy reads all others.
"""

from __future__ import annotations

import math
import re
from io import BytesIO
from typing import Any

import numpy as np

_MOST_HEADER = 64 * 1024
"""Largest size of a header in bytes; NumPy reads at most 10,000."""

_LARGE = 64 * 1024
"""Smallest size in bytes of an array that is not copied, and so keeps its whole file in memory."""

_MAGIC = b"\x93NUMPY\x01\x00"
_USUAL = re.compile(
    rb"\{'descr': '([<>|][biuf][1248])', 'fortran_order': (True|False), 'shape': \(([0-9, ]*)\), \} *\n"
)


def read_header(stream: BytesIO) -> tuple[tuple[int, ...], bool, np.dtype]:
    """Read the header of a .npy file; afterwards the stream is at the start of the numbers.

    Returns:
        Shape, whether the array is in Fortran order, and the dtype.

    Raises:
        ValueError: the stream is not a .npy file of format 1.0 or 2.0.
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
    """Return the beginning of a .npy file, including the whole header, as a stream."""
    return BytesIO(content[:_MOST_HEADER])


def read_array(content: bytes | memoryview) -> np.ndarray:
    """Return the array of a .npy file. It is a copy unless it is large and `content` is writable.

    Raises:
        ValueError: `content` is not a .npy file of numbers or text, or is shorter than its header says.
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

"""Converts an array to a Tensor (little-endian, C order, with dtype and shape) and back.

A Tensor must have exactly product(shape) times the element size bytes; otherwise reading raises an error that
names the field. So a truncated or shifted array never becomes numbers.
"""

from __future__ import annotations

from collections.abc import Sequence
from math import prod

import numpy as np

from ..errors import ArgumentError
from ..v1 import tensor_pb2

_ITEM_BYTES = {"<f8": 8, "<f4": 4, "<i4": 4, "<i8": 8}
WIRE_DTYPES = tuple(_ITEM_BYTES)

MOST_AXES = 8
"""Largest number of axes of an array on the wire; the protocol needs four."""


def wire_array(array: np.ndarray) -> np.ndarray:
    """Return `array` as C-contiguous memory of the wire dtype that holds its values exactly.

    Args:
        array: floats of up to 64 bits, bools or integers.

    Returns:
        The array itself if it already has that form, else a copy.

    Raises:
        ArgumentError: no wire dtype holds the values.
    """
    flags, text = array.flags, array.dtype.str
    if text in _ITEM_BYTES and text != "<f4" and flags.c_contiguous and flags.aligned:
        return array
    kind, size = array.dtype.kind, array.dtype.itemsize
    if kind == "f" and size <= 8:
        dtype = "<f8"
    elif kind in "iub" and size <= 8:
        dtype = "<i4" if size < 4 or (kind, size) == ("i", 4) else "<i8"
    else:
        raise ArgumentError.expected("dtype", f"one of {', '.join(WIRE_DTYPES)}", str(array.dtype))
    return np.require(array, dtype=dtype, requirements=["C_CONTIGUOUS", "ALIGNED"])


def encode_tensor(array: np.ndarray) -> tensor_pb2.Tensor:
    """Return `array` as a Tensor that holds all its bytes."""
    array = wire_array(np.asarray(array))
    return tensor_pb2.Tensor(dtype=array.dtype.str, shape=array.shape, data=array.tobytes())


def declared_bytes(name: str, tensor: tensor_pb2.Tensor) -> int:
    """Return the number of bytes that a Tensor's dtype and shape require.

    Args:
        name: the field's name, for the error text.
        tensor: the Tensor; its data is not used.

    Raises:
        ArgumentError: the dtype is not one of WIRE_DTYPES, an axis is negative, or there are too many.
    """
    size, shape = _ITEM_BYTES.get(tensor.dtype), tuple(tensor.shape)
    if size is None:
        raise ArgumentError.expected(f"{name}.dtype", f"one of {', '.join(WIRE_DTYPES)}", repr(tensor.dtype))
    # the usual case, faster than the checks below
    if len(shape) <= MOST_AXES and min(shape, default=1) > 0:
        return prod(shape) * size
    if len(shape) <= MOST_AXES and any(length < 0 for length in shape):
        raise ArgumentError.expected(f"{name}.shape", "lengths of at least 0", list(shape))
    check_axes(f"{name}.shape", shape)
    return prod(shape) * size


def check_axes(name: str, shape: Sequence[int]) -> None:
    """Raise an error for a shape that NumPy does not support.

    Args:
        name: the argument's name, for the error text.
        shape: lengths of at least 0.

    Raises:
        ArgumentError: there are too many axes, or an empty array has axes that are too long.
    """
    if len(shape) > MOST_AXES:
        raise ArgumentError.expected(name, f"at most {MOST_AXES} axes", len(shape))
    # NumPy ignores the empty axes when it checks the size of an empty array
    if 0 in shape and prod(length for length in shape if length) >= 2**56:
        raise ArgumentError.expected(name, "axes shorter than 2^56 in all", list(shape))


def array_from_bytes(tensor: tensor_pb2.Tensor, data: bytearray | np.ndarray) -> np.ndarray:
    """Return `data` as an array with the dtype and shape of `tensor`; float32 is widened to float64."""
    array = np.frombuffer(data, dtype=tensor.dtype).reshape(tuple(tensor.shape))
    if array.dtype.isnative and array.dtype.str != "<f4":
        return array
    native = np.dtype("=f8") if array.dtype.kind == "f" else array.dtype.newbyteorder("=")
    return array.astype(native, copy=False)


def wrong_byte_count(name: str, tensor: tensor_pb2.Tensor, got: int) -> ArgumentError:
    """Return the error for a Tensor whose byte count does not match its shape."""
    expected = declared_bytes(name, tensor)
    return ArgumentError.expected(
        name, f"{expected} bytes for shape {list(tensor.shape)} of {tensor.dtype}", f"{got} bytes"
    )

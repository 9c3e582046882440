"""One array on the wire: exact values, and every disagreement of dtype, shape and bytes refused."""

from __future__ import annotations

import struct

import numpy as np
import pytest

from revolute import ArgumentError
from revolute.contract.codec.parts import read_values
from revolute.contract.codec.tensor import encode_tensor
from revolute.contract.v1.tensor_pb2 import Tensor
from revolute.contract.v1.trajectory_pb2 import RolloutInputs

ARRAYS = {
    "matrix": (np.arange(6.0).reshape(2, 3), "<f8"),
    "fortran": (np.asfortranarray(np.arange(6.0).reshape(2, 3)), "<f8"),
    "big-endian": (np.arange(6.0).astype(">f8"), "<f8"),
    "float32": (np.array([0.1], dtype=np.float32), "<f8"),
    "scalar": (np.array(1.5), "<f8"),
    "empty": (np.zeros((0, 3)), "<f8"),
    "special": (np.array([np.nan, np.inf, -np.inf, -0.0, 5e-324]), "<f8"),
    "int32": (np.array([-1, 2], dtype=np.int32), "<i4"),
    "int64": (np.array([-1, 2**62]), "<i8"),
    "bool": (np.array([True, False]), "<i4"),
}


def decoded_from(tensor: Tensor) -> np.ndarray:
    """Return the array of a Tensor in a message."""
    return read_values(RolloutInputs(qpos=tensor))["qpos"]


@pytest.mark.parametrize("name", ARRAYS)
def test_round_trip(name: str) -> None:
    array, dtype = ARRAYS[name]
    tensor = Tensor.FromString(encode_tensor(array).SerializeToString())
    assert tensor.dtype == dtype
    decoded = decoded_from(tensor)
    assert decoded.shape == array.shape and decoded.flags.writeable
    assert decoded.tobytes() == array.astype(dtype).tobytes()


def test_bytes_are_little_endian_in_c_order() -> None:
    tensor = encode_tensor(np.array([[1.0, 2.0], [3.0, 4.0]], order="F"))
    assert tensor.data == struct.pack("<4d", 1.0, 2.0, 3.0, 4.0)


def test_float32_is_widened() -> None:
    decoded = decoded_from(Tensor(dtype="<f4", shape=[1], data=np.float32(0.1).tobytes()))
    assert decoded.dtype == np.float64 and decoded[0] == np.float64(np.float32(0.1))


MISTAKES = {
    "short": (
        Tensor(dtype="<f8", shape=[2], data=b"\0" * 15),
        "qpos: expected 16 bytes for shape [2] of <f8, got 15",
    ),
    "long": (
        Tensor(dtype="<f8", shape=[], data=b"\0" * 16),
        "qpos: expected 8 bytes for shape [] of <f8, got 16",
    ),
    "big-endian": (
        Tensor(dtype=">f8", shape=[1], data=b"\0" * 8),
        "qpos.dtype: expected one of <f8, <f4, <i4, <i8",
    ),
    "object": (
        Tensor(dtype="O", shape=[1], data=b"\0" * 8),
        "qpos.dtype: expected one of <f8, <f4, <i4, <i8",
    ),
    "no dtype": (Tensor(shape=[1], data=b"\0" * 8), "qpos.dtype: expected one of <f8, <f4, <i4, <i8, got ''"),
    "negative": (
        Tensor(dtype="<f8", shape=[-1, -1]),
        "qpos.shape: expected lengths of at least 0, got [-1, -1]",
    ),
    "nine axes": (
        Tensor(dtype="<f8", shape=[1] * 9, data=b"\0" * 8),
        "qpos.shape: expected at most 8 axes, got 9",
    ),
    "empty along axes that cannot be counted": (
        Tensor(dtype="<f8", shape=[0, 2**31, 2**31]),
        "qpos.shape: expected axes shorter than 2^56 in all",
    ),
    "huge": (Tensor(dtype="<f8", shape=[2**62, 8]), f"qpos: expected {2**68} bytes"),
}


@pytest.mark.parametrize("mistake", MISTAKES)
def test_mistakes_are_refused(mistake: str) -> None:
    tensor, text = MISTAKES[mistake]
    with pytest.raises(ArgumentError) as caught:
        decoded_from(tensor)
    assert str(caught.value).startswith(text)


def test_complex_has_no_form() -> None:
    with pytest.raises(ArgumentError, match="complex128"):
        encode_tensor(np.zeros(1, dtype=complex))

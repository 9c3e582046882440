"""Conversion of dm_env_rpc tensors, whose declared size is checked before memory is allocated."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from dm_env_rpc.v1 import dm_env_rpc_pb2 as pb
from dm_env_rpc.v1 import tensor_utils

from revolute.contract.arrays import Float64Array
from revolute.contract.errors import ArgumentError

MOST_ELEMENTS = 2**20
"""Largest number of elements of a setting. A tensor may declare many more than it contains, because a single
element is repeated."""


def read(name: str, tensor: pb.Tensor) -> Any:
    """Return a tensor as a NumPy array, or as a scalar if it has no shape.

    Raises:
        ArgumentError: the payload is missing, does not fit the shape, or consists of messages.
    """
    kind = tensor.WhichOneof("payload")
    if kind is None or kind == "protos":
        raise ArgumentError.expected(name, "numbers, truth values or text", kind or "nothing")
    shape = list(tensor.shape)
    if sum(size < 0 for size in shape) > 1:
        raise ArgumentError.expected(name, "at most one axis of unknown length", shape)
    declared = math.prod(abs(size) for size in shape)
    if declared > MOST_ELEMENTS:
        raise ArgumentError.expected(name, f"at most {MOST_ELEMENTS} elements", declared)
    sent = len(getattr(tensor, kind).array)
    try:
        return tensor_utils.unpack_tensor(tensor)
    except (ValueError, IndexError):
        raise ArgumentError.expected(name, f"{declared} elements of shape {shape}", sent) from None


def read_action(name: str, tensor: pb.Tensor, spec: pb.TensorSpec) -> Float64Array:
    """Return an action [n] as float64.

    Args:
        name: name of the action.
        tensor: the tensor; a single element is repeated, and an axis of length -1 takes the length that fits.
        spec: specification of the action.

    Raises:
        ArgumentError: type or shape differ from the specification, or a value is out of range.
    """
    if tensor.WhichOneof("payload") != "doubles":
        raise ArgumentError.expected(name, "doubles", tensor.WhichOneof("payload") or "nothing")
    (length,) = spec.shape
    if list(tensor.shape) not in ([length], [-1]):
        raise ArgumentError.expected(name, f"shape [{length}]", list(tensor.shape))
    values = np.array(tensor.doubles.array, np.float64)
    if values.size not in (1, length):
        raise ArgumentError.expected(name, f"{length} numbers, or one for all", values.size)
    action = np.array(np.broadcast_to(values, (length,)))
    low, high = np.array(spec.min.doubles.array), np.array(spec.max.doubles.array)
    bad = np.flatnonzero(~((low <= action) & (action <= high)))
    if bad.size:
        first = bad[0]
        what = f"a number from {low[first]:g} to {high[first]:g}"
        raise ArgumentError.expected(name, what, f"{action[first]:g}", at=f"[{first}]")
    return action


def write(value: Any) -> pb.Tensor:
    """Return an array or a number as a tensor of doubles."""
    return tensor_utils.pack_tensor(np.asarray(value, np.float64))

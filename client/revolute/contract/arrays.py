"""Converts users' numbers into plain float64 arrays.

Equal values give equal arrays, whatever their layout, byte order, width or library: lists, NumPy arrays
(Fortran order, strided, reversed, broadcast, big-endian, read-only, memory-mapped), torch tensors (also on a
device or with `requires_grad`) and jax arrays. Values that are not real numbers (complex, object, text,
dates) raise an error that names the argument. The caller's memory is never written.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
import numpy.typing as npt

from .errors import ArgumentError

Float64Array = npt.NDArray[np.float64]

_FLOAT64 = np.dtype(np.float64)
_NUMBER_KINDS = "fiub"
_EXTENSION_FLOATS = ("bfloat16", "float8", "float6", "float4")


def as_float64(name: str, value: Any) -> Float64Array:
    """Return `value` as a C-contiguous, aligned, native-endian float64 array.

    Args:
        name: the argument's name, for the error text.
        value: numbers in any array type or nested sequence.

    Returns:
        The array itself if it already has that form, else a copy. Treat it as read-only, and copy it before
        returning it to a user.

    Raises:
        ArgumentError: the value is not an array of real numbers.
    """
    if type(value) is np.ndarray and value.dtype is _FLOAT64:
        flags = value.flags
        if flags.c_contiguous and flags.aligned:
            return value
    array = _as_ndarray(name, value)
    _check_real(name, array)
    return np.require(array, dtype=np.dtype("=f8"), requirements=["C_CONTIGUOUS", "ALIGNED"])


def given_float64(values: Mapping[str, Any]) -> dict[str, Float64Array]:
    """Return the values that are not None as float64 arrays, by name."""
    return {name: as_float64(name, value) for name, value in values.items() if value is not None}


def owned_float64(name: str, value: Any) -> Float64Array:
    """Return `value` as `as_float64` does, but always as a copy.

    Args:
        name: the argument's name, for the error text.
        value: numbers in any array type or nested sequence.

    Returns:
        A new C-contiguous float64 array.
    """
    return np.array(as_float64(name, value), dtype=np.float64, order="C", copy=True)


def finite_float64(name: str, value: Any) -> Float64Array:
    """Return a copy as `owned_float64` does.

    Raises:
        ArgumentError: the value is not an array of finite real numbers.
    """
    array = owned_float64(name, value)
    if not np.isfinite(array).all():
        where = np.argwhere(~np.isfinite(array))[0]
        raise ArgumentError.expected(
            name, "finite values", array[tuple(where)], at=str(where.tolist()) if array.ndim else None
        )
    return array


def named_float64(name: str, values: Any) -> dict[str, Float64Array]:
    """Convert each array of a mapping with `as_float64`.

    Args:
        name: the argument's name, for the error text.
        values: mapping from names to numbers; None is an empty mapping.

    Raises:
        ArgumentError: `values` is not a mapping, or a value is not an array of real numbers.
    """
    if values is None:
        return {}
    if not isinstance(values, Mapping):
        raise ArgumentError.expected(name, "a mapping from names to arrays", type(values).__name__)
    return {str(key): as_float64(f"{name}.{key}", value) for key, value in values.items()}


def repeated_controls(ctrl: np.ndarray, qpos: Any, qvel: Any, *, axes: int) -> np.ndarray:
    """Return controls whose batch axis of length 1 is repeated for each start state.

    Args:
        ctrl: controls, with or without a batch axis.
        qpos: start positions [batch, nq] or [nq].
        qvel: start velocities [batch, nv] or [nv].
        axes: number of axes of controls without a batch axis.
    """
    if ctrl.ndim != axes + 1 or len(ctrl) != 1:
        return ctrl
    batch = max((len(state) for state in (qpos, qvel) if np.ndim(state) == 2), default=1)
    return np.broadcast_to(ctrl, (batch, *ctrl.shape[1:])) if batch > 1 else ctrl


def _as_ndarray(name: str, value: Any) -> np.ndarray:
    """Return the value as an ndarray of any dtype."""
    if isinstance(value, np.ma.MaskedArray) and np.ma.is_masked(value):
        raise ArgumentError.expected(
            name, "an array of real numbers", "a masked array with masked entries", advice="fill them first"
        )
    if _is_jax_tracer(value):
        raise ArgumentError.expected(
            name,
            "an array of real numbers",
            "a tracer of jax.jit, jax.grad or jax.vmap, which has no numbers",
            advice="inside of transformed functions use revolute.jax: rollout, Policy",
        )
    try:
        return np.asarray(_from_torch(name, value) if _is_torch_tensor(value) else value)
    except ArgumentError:
        raise
    except ValueError as error:
        got = "nested sequences of unequal length" if "inhomogeneous" in str(error) else _type_name(value)
        raise ArgumentError.expected(name, "a rectangular array of real numbers", got) from error
    except Exception as error:
        cause = f"{_type_name(value)} ({str(error).splitlines()[0] if str(error) else type(error).__name__})"
        raise ArgumentError.expected(name, "an array of real numbers", cause) from error


def _is_torch_tensor(value: Any) -> bool:
    return any(cls.__module__ == "torch" and cls.__name__ == "Tensor" for cls in type(value).__mro__)


def _is_jax_tracer(value: Any) -> bool:
    return any(cls.__name__ == "Tracer" and cls.__module__.startswith("jax") for cls in type(value).__mro__)


def _from_torch(name: str, tensor: Any) -> np.ndarray:
    """Detach a torch tensor and copy it to host memory. Raises for complex, quantized and meta tensors."""
    if tensor.is_complex():
        raise _not_real(name, str(tensor.dtype))
    if tensor.is_meta:
        raise ArgumentError.expected(
            name,
            "an array of real numbers",
            "a torch tensor without values (device meta)",
            advice="make it on a device that holds values",
        )
    return tensor.detach().double().cpu().resolve_neg().numpy()


def _check_real(name: str, array: np.ndarray) -> None:
    """Raise an error if the dtype is not a real number type."""
    dtype = array.dtype
    if dtype.kind in _NUMBER_KINDS or dtype.name.startswith(_EXTENSION_FLOATS):
        return
    raise _not_real(name, _dtype_words(array), convertible=array.ndim > 0)


def _not_real(name: str, got: str, *, convertible: bool = True) -> ArgumentError:
    # no advice for None or text: converting those gives NaN or fails
    advice = "convert it to float64 (numpy.asarray(x, dtype=float)) first" if convertible else None
    return ArgumentError.expected(name, "an array of real numbers", got, advice=advice)


def _dtype_words(array: np.ndarray) -> str:
    """Describe a dtype in words; for an object array, with the type of its first entry."""
    if array.dtype.kind == "O":
        first = array.flat[0] if array.size else None
        return (
            "None"
            if array.ndim == 0 and first is None
            else f"dtype object (first entry: {_type_name(first)})"
        )
    if array.dtype.kind in "US":
        return f"text (dtype {array.dtype})"
    return f"dtype {array.dtype}"


def _type_name(value: Any) -> str:
    cls = type(value)
    return cls.__name__ if cls.__module__ == "builtins" else f"{cls.__module__}.{cls.__name__}"

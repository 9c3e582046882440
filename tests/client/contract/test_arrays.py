"""Conversion to float64: any layout with equal values gives equal bits; what is not real numbers is refused
by name."""

from __future__ import annotations

from datetime import datetime
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from revolute import ArgumentError
from revolute.contract.arrays import as_float64, owned_float64

VALUES = np.arange(12.0).reshape(3, 4)


def _unaligned(values: np.ndarray) -> np.ndarray:
    shifted = np.zeros(values.nbytes + 1, dtype=np.uint8)
    view = shifted[1:].view(values.dtype).reshape(values.shape)
    view[...] = values
    return view


LAYOUTS = {
    "plain": lambda: VALUES,
    "fortran": lambda: np.asfortranarray(VALUES),
    "every second row": lambda: np.repeat(VALUES, 2, axis=0)[::2],
    "reversed": lambda: VALUES[::-1].copy()[::-1],
    "transposed": lambda: VALUES.T.copy().T,
    "big-endian": lambda: VALUES.astype(">f8"),
    "float32": lambda: VALUES.astype(np.float32),
    "float16": lambda: VALUES.astype(np.float16),
    "integers": lambda: VALUES.astype(">i2"),
    "unaligned": lambda: _unaligned(VALUES),
    "lists": lambda: VALUES.tolist(),
    "tuples of arrays": lambda: tuple(VALUES),
}


@pytest.mark.parametrize("layout", LAYOUTS)
def test_layout_does_not_matter(layout: str) -> None:
    array = as_float64("ctrl", LAYOUTS[layout]())
    assert array.dtype == np.float64 and array.dtype.isnative
    assert array.flags.c_contiguous and array.flags.aligned
    assert array.tobytes() == VALUES.tobytes()


def test_broadcast_view_is_spread() -> None:
    array = as_float64("ctrl", np.broadcast_to(2.0, (3, 4)))
    assert array.flags.c_contiguous
    assert (array == 2.0).all()


def test_memory_map_and_read_only(tmp_path: Path) -> None:
    np.save(tmp_path / "a.npy", VALUES)
    mapped = np.load(tmp_path / "a.npy", mmap_mode="r")
    assert type(as_float64("ctrl", mapped)) is np.ndarray
    assert as_float64("ctrl", mapped).tobytes() == VALUES.tobytes()


def test_plain_array_is_not_copied_and_owned_is() -> None:
    assert as_float64("ctrl", VALUES) is VALUES
    assert not np.shares_memory(owned_float64("ctrl", VALUES), VALUES)


def test_torch_tensors() -> None:
    torch = pytest.importorskip("torch")
    wide = torch.arange(24.0, dtype=torch.float32).reshape(3, 8)
    tensor = (wide[:, ::2] / 2).requires_grad_()
    assert as_float64("ctrl", tensor).tobytes() == VALUES.tobytes()
    assert as_float64("ctrl", torch.ones(2, dtype=torch.bfloat16)).tolist() == [1.0, 1.0]
    with pytest.raises(ArgumentError, match=r"^ctrl: expected an array of real numbers, got torch.complex64"):
        as_float64("ctrl", torch.ones(2, dtype=torch.complex64))


def test_jax_arrays() -> None:
    jax = pytest.importorskip("jax")
    assert as_float64("ctrl", jax.numpy.asarray(VALUES)).tobytes() == VALUES.tobytes()
    assert as_float64("ctrl", jax.numpy.ones(2, dtype=jax.numpy.bfloat16)).tolist() == [1.0, 1.0]


REFUSED: dict[str, tuple[Any, str]] = {
    "complex": (VALUES + 0j, "got dtype complex128"),
    "object": (np.array([1.0, None]), "got dtype object (first entry: float)"),
    "text": ("1.0", "got text (dtype <U3)"),
    "bytes": (b"12345678", "got text"),
    "list of text": (["1", "2"], "got text"),
    "none": (None, "got None"),
    "dates": (np.array(datetime(2020, 1, 1), dtype="M8[s]"), "got dtype datetime64"),
    "ragged": ([[1.0], [1.0, 2.0]], "got nested sequences of unequal length"),
    "mapping": ({"a": 1.0}, "got dtype object (first entry: dict)"),
    "records": (np.zeros(2, dtype=[("a", "f8")]), "got dtype [('a', '<f8')]"),
    "masked": (np.ma.masked_greater(VALUES, 5.0), "got a masked array"),
}


@pytest.mark.parametrize("case", REFUSED)
def test_refused_by_name(case: str) -> None:
    value, got = REFUSED[case]
    with pytest.raises(ArgumentError) as caught:
        as_float64("ctrl", value)
    assert str(caught.value).startswith("ctrl: expected a")
    assert got in str(caught.value)
    assert caught.value.argument == "ctrl"


def test_torch_tensor_without_values_is_refused() -> None:
    torch = pytest.importorskip("torch")
    with pytest.raises(ArgumentError, match=r"^ctrl: expected an array of real numbers, got a torch tensor"):
        as_float64("ctrl", torch.zeros(3, device="meta"))
    with pytest.raises(ArgumentError, match=r"^ctrl: expected an array of real numbers, got torch.Tensor \("):
        as_float64("ctrl", torch.eye(3).to_sparse())

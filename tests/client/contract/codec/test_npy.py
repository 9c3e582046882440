"""The .npy format is NumPy's, whichever way its header is read."""

from __future__ import annotations

import io
import threading

import numpy as np
import pytest

from revolute.contract.codec.npy import read_array, read_header


def _bytes(array: np.ndarray) -> bytes:
    stream = io.BytesIO()
    np.save(stream, array)
    return stream.getvalue()


@pytest.mark.parametrize("dtype", ["<f8", ">f8", "<f4", "|u1", "<i4", "<i8", "|b1", "<c16", "<U3", "<f2"])
@pytest.mark.parametrize("shape", [(), (0,), (3,), (2, 3), (2, 0, 4)])
@pytest.mark.parametrize("order", ["C", "F"])
def test_what_numpy_saves_is_read(dtype: str, shape: tuple[int, ...], order: str) -> None:
    array = np.arange(np.prod(shape)).reshape(shape).astype(dtype).copy(order=order)  # type: ignore[arg-type]
    found = read_array(_bytes(array))
    assert (found.dtype, found.shape) == (array.dtype, array.shape)
    assert np.array_equal(found, array) and found.flags.writeable


def test_usual_headers_are_read_without_evaluating_them(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(np.lib.format, "read_array_header_1_0", None)
    content = _bytes(np.ones((2, 5)))
    stream = io.BytesIO(content)
    assert read_header(stream) == ((2, 5), False, np.dtype("f8"))
    assert stream.tell() == len(content) - 80


def test_headers_of_another_layout_are_read() -> None:
    content = _bytes(np.ones(4)).replace(b"{'descr': '<f8', ", b'{"descr":  "<f8",')
    assert read_array(content).tolist() == [1.0] * 4


@pytest.mark.parametrize("damage", [lambda c: c[:-1], lambda c: c[1:], lambda c: b"", lambda c: c[:20]])
def test_what_is_cut_off_is_refused(damage) -> None:
    with pytest.raises(ValueError):
        read_array(damage(_bytes(np.ones(4))))


def test_pickles_are_refused() -> None:
    stream = io.BytesIO()
    np.save(stream, np.array([object()]), allow_pickle=True)
    with pytest.raises(ValueError, match="pickles"):
        read_array(stream.getvalue())


def test_threads_read_at_once() -> None:
    content, found = _bytes(np.ones(7)), []
    threads = [
        threading.Thread(target=lambda: found.extend(read_array(content).sum() for _ in range(300)))
        for _ in range(8)
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert found == [7.0] * 2400

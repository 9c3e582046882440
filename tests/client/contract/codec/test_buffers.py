"""Memory of large arrays is used again, and never while anybody can see it."""

from __future__ import annotations

import gc
import threading
from collections.abc import Iterator

import numpy as np
import pytest

from revolute.contract.codec import buffers
from revolute.contract.codec.buffers import LARGE, Buffers


def _place(array: np.ndarray) -> int:
    return array.__array_interface__["data"][0]


def test_memory_is_used_again_when_nobody_sees_it() -> None:
    pool = Buffers()
    first = pool.empty(LARGE)
    place = _place(first)
    view = first.view(np.float64).reshape(2, -1)[1]
    view[:] = 1.0
    del first
    second = pool.empty(LARGE)
    assert _place(second) != place
    second[:] = 0
    assert (view == 1.0).all()
    del view
    third = pool.empty(LARGE)
    assert _place(third) == place and len(third) == LARGE and third.flags.writeable


def test_a_buffer_is_not_much_larger_than_its_content() -> None:
    pool = Buffers()
    place = _place(pool.empty(3 * LARGE))
    small, half = pool.empty(LARGE), pool.empty(2 * LARGE)
    assert _place(small) != place and _place(half) == place and len(half) == 2 * LARGE


def test_small_arrays_are_left_to_the_system() -> None:
    pool = Buffers()
    pool.empty(LARGE - 1)
    assert pool.kept == 0


def test_what_waits_is_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(buffers, "KEPT", 3 * LARGE)
    pool = Buffers()
    arrays = [pool.empty(LARGE) for _ in range(5)]
    arrays.clear()
    assert pool.kept == 3 * LARGE
    pool.empty(2 * LARGE)
    assert pool.kept <= 3 * LARGE


@pytest.fixture
def few_objects() -> Iterator[None]:
    """Make collections quick: they leave out what the modules and the other tests have made."""
    gc.freeze()
    yield
    gc.unfreeze()


@pytest.mark.usefixtures("few_objects")
def test_arrays_in_cycles_and_threads_come_back(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(buffers, "LARGE", 1000)
    monkeypatch.setattr(buffers, "KEPT", 100_000)
    pool = Buffers()
    wrong: list[int] = []

    def work(seed: int) -> None:
        for turn in range(40):
            array = pool.empty(1000 + 10 * (turn % 7))
            array[:] = seed
            cycle = [array]
            cycle.append(cycle)  # type: ignore[arg-type]
            if turn % 3 == 0:
                # the others' buffers come back in the middle of this
                gc.collect()
            if (array != seed).any():
                wrong.append(seed)

    threads = [threading.Thread(target=work, args=(seed,)) for seed in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    gc.collect()
    assert not wrong and 0 < pool.kept <= 100_000

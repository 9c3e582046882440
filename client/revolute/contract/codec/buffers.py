"""Reuses the memory of large received arrays.

The C library returns freed blocks above 32 MiB to the system at once. Allocating them again makes the system
clear every page: 80 MB take 15 to 170 ms, longest on virtual machines.
"""

from __future__ import annotations

import threading
import weakref
from collections import deque

import numpy as np

LARGE = 32 * 1024**2
"""Smallest size in bytes that is reused here; the C library reuses smaller blocks itself."""

KEPT = 128 * 1024**2
"""Largest total size of idle buffers in bytes."""

_SLACK = 2
"""Largest ratio of a buffer's size to the requested size."""


class Buffers:
    """A pool of idle buffers; the last returned is used first. Safe to use from several threads."""

    def __init__(self) -> None:
        self._idle: list[np.ndarray] = []
        self._returned: deque[np.ndarray] = deque()
        self._lock = threading.Lock()

    def empty(self, size: int) -> np.ndarray:
        """Return an uninitialised array of `size` bytes. Its memory returns to the pool when the array and
        all its views are gone."""
        if size < LARGE:
            return np.empty(size, np.uint8)
        buffer = self._take(size)
        # frombuffer: NumPy does not see the buffer's array, so views of views keep `lent` alive, not `buffer`
        lent = np.frombuffer(buffer.data, np.uint8, size)
        weakref.finalize(lent, self._give_back, buffer).atexit = False
        return lent

    def clear(self) -> None:
        """Free all idle buffers."""
        with self._lock:
            self._collect_returned()
            self._idle.clear()

    @property
    def kept(self) -> int:
        """Total size of idle buffers in bytes."""
        return sum(len(buffer) for buffer in (*self._idle, *self._returned))

    def _take(self, size: int) -> np.ndarray:
        with self._lock:
            self._collect_returned()
            for place in reversed(range(len(self._idle))):
                if size <= len(self._idle[place]) <= _SLACK * size:
                    return self._idle.pop(place)
        return np.empty(size, np.uint8)

    def _give_back(self, buffer: np.ndarray) -> None:
        """Return a buffer to the pool. A finalizer calls this at any time, even while the lock is held."""
        self._returned.append(buffer)
        if self._lock.acquire(blocking=False):
            try:
                self._collect_returned()
            finally:
                self._lock.release()

    def _collect_returned(self) -> None:
        """Move returned buffers to the idle ones, and free the oldest. The caller holds the lock."""
        while self._returned:
            self._idle.append(self._returned.popleft())
        while sum(map(len, self._idle)) > KEPT:
            del self._idle[0]


BUFFERS = Buffers()
"""The pool of this process."""

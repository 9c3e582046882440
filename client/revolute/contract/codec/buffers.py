"""Memory for large arrays that arrive, used again when the last of them is gone.

The C library gives blocks above 32 MiB back to the system at once, which clears and counts every page when it
hands them out again, and on a virtual machine may have to ask for them once more itself: 80 MB then take
15 to 170 ms before the first byte is in them.
"""

from __future__ import annotations

import threading
import weakref
from collections import deque

import numpy as np

LARGE = 32 * 1024**2
"""Bytes from which on the C library does not keep memory itself."""

KEPT = 128 * 1024**2
"""Bytes of all memory that waits to be used again."""

_SLACK = 2
"""A buffer may be so many times as large as what is put in it."""


class Buffers:
    """Buffers that wait for their next use, the latest first. Threads may share it."""

    def __init__(self) -> None:
        self._idle: list[np.ndarray] = []
        self._returned: deque[np.ndarray] = deque()
        self._lock = threading.Lock()

    def empty(self, size: int) -> np.ndarray:
        """Return an array of so many bytes with any content; its memory comes back when it and its views are
        gone."""
        if size < LARGE:
            return np.empty(size, np.uint8)
        buffer = self._take(size)
        # views of views refer to this array, whose memory is no array's for NumPy
        lent = np.frombuffer(buffer.data, np.uint8, size)
        weakref.finalize(lent, self._give_back, buffer).atexit = False
        return lent

    def clear(self) -> None:
        """Give the memory that waits back to the system."""
        with self._lock:
            self._sort_in()
            self._idle.clear()

    @property
    def kept(self) -> int:
        """Bytes that wait to be used again."""
        return sum(len(buffer) for buffer in (*self._idle, *self._returned))

    def _take(self, size: int) -> np.ndarray:
        with self._lock:
            self._sort_in()
            for place in reversed(range(len(self._idle))):
                if size <= len(self._idle[place]) <= _SLACK * size:
                    return self._idle.pop(place)
        return np.empty(size, np.uint8)

    def _give_back(self, buffer: np.ndarray) -> None:
        """Take a buffer back; called when an array is collected: at any moment, also under the lock."""
        self._returned.append(buffer)
        if self._lock.acquire(blocking=False):
            try:
                self._sort_in()
            finally:
                self._lock.release()

    def _sort_in(self) -> None:
        """Put what came back to the others, and let the oldest go; the lock is held."""
        while self._returned:
            self._idle.append(self._returned.popleft())
        while sum(map(len, self._idle)) > KEPT:
            del self._idle[0]


BUFFERS = Buffers()
"""Those of this process."""

"""The memory that the system has given this process, and how freed memory goes back to it.

Freed memory stays with the process for the next call, which is faster by far than to ask for it again. When
it stands in the way of a bound on the process's memory, it goes back.
"""

from __future__ import annotations

import contextlib
import ctypes
import os
import time

from revolute.contract.codec.buffers import BUFFERS

_SLACK = 32 * 1024**2
"""Bytes that freed memory may take beyond the bound."""

_PAUSE = 0.1
"""Seconds between two attempts; one takes milliseconds, in which nothing else is answered."""


def resident_bytes() -> int | None:
    """Return the bytes of this process that are in memory; None where the system does not say."""
    try:
        with open("/proc/self/statm", "rb") as file:
            return int(file.read().split()[1]) * os.sysconf("SC_PAGE_SIZE")
    except OSError:
        return None


class FreedMemory:
    """Gives freed memory back when the process would become larger than a bound.

    Args:
        limit: bytes of memory that the process may use besides what it has now.
    """

    def __init__(self, limit: int) -> None:
        self._most = (resident_bytes() or 0) + limit + _SLACK
        self._next = 0.0

    def make_room(self, count: int) -> None:
        """Give freed memory back if `count` bytes more would pass the bound."""
        now = time.monotonic()
        if now < self._next or (resident := resident_bytes()) is None or resident + count <= self._most:
            return
        self._next = now + _PAUSE
        BUFFERS.clear()
        # of the GNU C library alone
        with contextlib.suppress(AttributeError, OSError, TypeError):
            ctypes.CDLL(None).malloc_trim(0)

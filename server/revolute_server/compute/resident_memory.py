"""Resident memory of this process, and the return of freed memory to the system.

Freed memory stays with the process, because reusing it is much faster than allocating it again. It is
returned to the system when the process would otherwise exceed its memory limit.
"""

from __future__ import annotations

import contextlib
import ctypes
import os
import time

from revolute.contract.codec.buffers import BUFFERS

_SLACK = 32 * 1024**2
"""Bytes by which the process may exceed the limit with freed memory."""

_PAUSE = 0.1
"""Shortest time in s between two attempts; each blocks the event loop for milliseconds."""


def resident_bytes() -> int | None:
    """Return the resident bytes of this process; None where the system does not tell."""
    try:
        with open("/proc/self/statm", "rb") as file:
            return int(file.read().split()[1]) * os.sysconf("SC_PAGE_SIZE")
    except OSError:
        return None


class FreedMemory:
    """Returns freed memory to the system when the process would exceed a limit.

    Args:
        limit: bytes that the process may use in addition to those in use now.
    """

    def __init__(self, limit: int) -> None:
        self._most = (resident_bytes() or 0) + limit + _SLACK
        self._next = 0.0

    def make_room(self, count: int) -> None:
        """Return freed memory if `count` more bytes would exceed the limit."""
        now = time.monotonic()
        if now < self._next or (resident := resident_bytes()) is None or resident + count <= self._most:
            return
        self._next = now + _PAUSE
        BUFFERS.clear()
        # only the GNU C library has this function
        with contextlib.suppress(AttributeError, OSError, TypeError):
            ctypes.CDLL(None).malloc_trim(0)

"""The memory that a client offers to a server on its own machine, one block for each call under way."""

from __future__ import annotations

import os
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from ..codec.shared_memory import AVAILABLE, SharedMemory

_KEPT_BYTES = 128 * 1024**2
"""Size of a block that waits for the next call; larger ones are given back to the system."""


class OfferedMemory:
    """Blocks for the calls of one connection.

    A block is used by one call at a time. After a call that failed it is let go of: the server may still be
    writing there. Whether the server can open blocks at all is asked once, before the first is used.

    Args:
        reaches: asks the server whether it can open what is offered; None while it cannot be asked.
        possible: whether the server may be on this machine.
    """

    def __init__(self, reaches: Callable[[str], bool | None], possible: bool) -> None:
        self._reaches = reaches
        self._usable: bool | None = None if possible and AVAILABLE else False
        self._idle: list[SharedMemory] = []
        self._process = os.getpid()
        self._lock = threading.Lock()

    @contextmanager
    def lent(self, wanted: bool) -> Iterator[SharedMemory | None]:
        """Yield a block for one call, or None where there is none to be had, or none is wanted."""
        memory = self._take() if wanted and self._usable is not False else None
        if memory is None:
            yield None
            return
        try:
            yield memory
        except BaseException:
            memory.close()
            raise
        self._give_back(memory)

    def give_up(self) -> None:
        """Offer no more memory."""
        self._usable = False
        with self._lock:
            idle, self._idle = self._idle, []
        for memory in idle:
            memory.close()

    def _take(self) -> SharedMemory | None:
        with self._lock:
            if self._process != os.getpid():
                # a forked child shares its parent's blocks with it
                self._process = os.getpid()
                for memory in self._idle:
                    memory.close()
                self._idle = []
            if self._idle:
                memory = self._idle.pop()
                memory.was_read = False
                return memory
        try:
            memory = SharedMemory.create()
        except OSError:
            return None
        if self._usable is None:
            self._usable = self._reaches(memory.offer)
        if self._usable:
            return memory
        memory.close()
        return None

    def _give_back(self, memory: SharedMemory) -> None:
        if self._usable and memory.size() <= _KEPT_BYTES:
            with self._lock:
                self._idle.append(memory)
        else:
            memory.close()

"""The memory that a client offers to a server on its own machine, one block for each call under way."""

from __future__ import annotations

import os
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from ..contract.codec.shared_memory import AVAILABLE, SharedMemory, most_blocks
from .deadline import Deadline

_KEPT_BYTES = 128 * 1024**2
"""Bytes of all blocks that wait for the next call; what is more is given back to the system."""

_MOST_BLOCKS = 64
"""At a time: each takes a descriptor here and one of the server's. Calls beyond send their arrays."""

_PROBE_SECONDS = 10.0

_NO_DEADLINE = Deadline(None)


class OfferedMemory:
    """Blocks for the calls of one connection.

    A block is used by one call at a time. After a call that failed it is let go of: the server may still be
    writing there. Whether the server can open blocks at all is asked once, before the first is used.

    Args:
        reaches: asks the server whether it can open what is offered, in so many seconds; None while it cannot
            be asked.
        possible: whether the server may be on this machine.
    """

    def __init__(self, reaches: Callable[[str, float], bool | None], possible: bool) -> None:
        self._reaches = reaches
        self._usable: bool | None = None if possible and AVAILABLE else False
        self._idle: list[tuple[SharedMemory, int]] = []
        self._idle_bytes = 0
        self._blocks = 0
        self._process = os.getpid()
        self._lock = threading.Lock()

    @contextmanager
    def lent(self, wanted: bool, deadline: Deadline = _NO_DEADLINE) -> Iterator[SharedMemory | None]:
        """Yield a block for one call, or None where there is none to be had, or none is wanted."""
        memory = self._take(deadline) if wanted and self._usable is not False else None
        if memory is None:
            yield None
            return
        try:
            yield memory
        except BaseException:
            self._let_go(memory)
            raise
        self._give_back(memory)

    def give_up(self) -> None:
        """Offer no more memory."""
        self._usable = False
        with self._lock:
            idle = self._taken_from_idle()
        for memory in idle:
            self._let_go(memory)

    def _take(self, deadline: Deadline) -> SharedMemory | None:
        with self._lock:
            if self._process != os.getpid():
                # a forked child shares its parent's blocks with it
                self._process = os.getpid()
                self._blocks = 0
                for memory in self._taken_from_idle():
                    memory.close()
            if self._idle:
                memory, size = self._idle.pop()
                self._idle_bytes -= size
                memory.was_read = False
                return memory
            if self._blocks >= min(_MOST_BLOCKS, most_blocks()):
                return None
            self._blocks += 1
        try:
            memory = SharedMemory.create()
        except OSError:
            self._count_one_less()
            return None
        if self._usable is None:
            self._ask(memory, deadline)
        if self._usable:
            return memory
        self._let_go(memory)
        return None

    def _ask(self, memory: SharedMemory, deadline: Deadline) -> None:
        """Ask the server whether it can open a block."""
        seconds = deadline.rest(_PROBE_SECONDS)
        answer = self._reaches(memory.offer, _PROBE_SECONDS if seconds is None else seconds)
        with self._lock:
            # another thread may have given up meanwhile
            if self._usable is None:
                self._usable = answer

    def _give_back(self, memory: SharedMemory) -> None:
        size = memory.size()
        with self._lock:
            if self._usable and self._idle_bytes + size <= _KEPT_BYTES:
                self._idle.append((memory, size))
                self._idle_bytes += size
                return
        self._let_go(memory)

    def _let_go(self, memory: SharedMemory) -> None:
        memory.close()
        self._count_one_less()

    def _count_one_less(self) -> None:
        with self._lock:
            self._blocks -= 1

    def _taken_from_idle(self) -> list[SharedMemory]:
        """Take all blocks that wait; the lock is held."""
        idle, self._idle, self._idle_bytes = self._idle, [], 0
        return [memory for memory, _ in idle]

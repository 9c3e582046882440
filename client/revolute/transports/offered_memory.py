"""Blocks of shared memory that a client offers to a server on the same machine, one block per running
call."""

from __future__ import annotations

import os
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from ..contract.codec.shared_memory import AVAILABLE, SharedMemory, most_blocks
from .deadline import Deadline

_KEPT_BYTES = 128 * 1024**2
"""Largest total size of idle blocks in bytes; blocks beyond it are closed."""

_MOST_BLOCKS = 64
"""Largest number of blocks. Each uses a file descriptor in client and server. Further calls send their
arrays."""

_PROBE_SECONDS = 10.0

_NO_DEADLINE = Deadline(None)


class OfferedMemory:
    """Pool of shared memory blocks for the calls of one connection.

    One call at a time uses a block. A block is discarded after a failed call, because the server may still be
    writing to it. Before the first use, the client asks the server once whether it can open a block.

    Args:
        probe: asks the server whether it can open an offer, with a time limit in s; returns None if the
            server does not answer.
        possible: whether the server may be on this machine.
    """

    def __init__(self, probe: Callable[[str, float], bool | None], possible: bool) -> None:
        self._probe_server = probe
        self._usable: bool | None = None if possible and AVAILABLE else False
        self._idle: list[tuple[SharedMemory, int]] = []
        self._idle_bytes = 0
        self._blocks = 0
        self._process = os.getpid()
        self._lock = threading.Lock()

    @contextmanager
    def lent(self, wanted: bool, deadline: Deadline = _NO_DEADLINE) -> Iterator[SharedMemory | None]:
        """Yield a block for one call, or None if none is wanted or available."""
        memory = self._acquire(deadline) if wanted and self._usable is not False else None
        if memory is None:
            yield None
            return
        try:
            yield memory
        except BaseException:
            self._discard(memory)
            raise
        self._release(memory)

    def give_up(self) -> None:
        """Stop offering memory, and discard the idle blocks."""
        self._usable = False
        with self._lock:
            idle = self._take_idle()
        for memory in idle:
            self._discard(memory)

    def _acquire(self, deadline: Deadline) -> SharedMemory | None:
        with self._lock:
            if self._process != os.getpid():
                # a forked child must not use its parent's blocks
                self._process = os.getpid()
                self._blocks = 0
                for memory in self._take_idle():
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
            self._count_discarded()
            return None
        if self._usable is None:
            self._probe(memory, deadline)
        if self._usable:
            return memory
        self._discard(memory)
        return None

    def _probe(self, memory: SharedMemory, deadline: Deadline) -> None:
        """Ask the server whether it can open a block."""
        seconds = deadline.remaining(_PROBE_SECONDS)
        answer = self._probe_server(memory.offer, _PROBE_SECONDS if seconds is None else seconds)
        with self._lock:
            # another thread may have called give_up in the meantime
            if self._usable is None:
                self._usable = answer

    def _release(self, memory: SharedMemory) -> None:
        size = memory.size()
        with self._lock:
            if self._usable and self._idle_bytes + size <= _KEPT_BYTES:
                self._idle.append((memory, size))
                self._idle_bytes += size
                return
        self._discard(memory)

    def _discard(self, memory: SharedMemory) -> None:
        memory.close()
        self._count_discarded()

    def _count_discarded(self) -> None:
        with self._lock:
            self._blocks -= 1

    def _take_idle(self) -> list[SharedMemory]:
        """Remove and return all idle blocks. The caller holds the lock."""
        idle, self._idle, self._idle_bytes = self._idle, [], 0
        return [memory for memory, _ in idle]

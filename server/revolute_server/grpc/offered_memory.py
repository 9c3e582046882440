"""Memory that clients on this machine share with us for the arrays of their calls.

A client offers the same block call after call, so a small one that was opened stays open for a while: to find
a block in /proc and to check it takes longer than to copy a small array. A large one does not: its client may
be gone, and the system cannot have its memory back as long as we hold it.
"""

from __future__ import annotations

import asyncio
import time
from collections import OrderedDict
from collections.abc import Callable
from contextvars import ContextVar
from typing import Any

from google.protobuf.message import Message

from revolute.contract.codec.parts import Assembler, Value
from revolute.contract.codec.shared_memory import (
    SHARED_FROM,
    SharedMemory,
    array_bytes,
    most_blocks,
    refused,
)
from revolute.contract.errors import ArgumentError

from ..domain.shielded import shielded

_QUICK = 1024**2
"""Bytes that are copied at once; more would keep other calls waiting."""

_IDLE_SECONDS = 20.0
"""After which an unused block is let go of: its client may be gone, and its memory would not be."""

_MOST_IDLE = 256
"""Blocks that are kept open unused."""


class OpenBlocks:
    """The blocks that are open. Everything here runs on the event loop.

    Args:
        most: how many there may be at a time; None for as many as leave descriptors to connections
            and the store.
    """

    def __init__(self, most: int | None = None) -> None:
        self._most = most
        self._used = 0
        self._idle: OrderedDict[str, tuple[SharedMemory, float]] = OrderedDict()
        self._timer: asyncio.TimerHandle | None = None

    def take(self, offer: str) -> SharedMemory:
        """Return the block that is offered, for one call.

        Raises:
            ArgumentError: we cannot reach it, or as many are in use as there may be.
        """
        found = self._idle.pop(offer, None)
        if found is None:
            self._make_room()
        memory = found[0] if found is not None else SharedMemory.open(offer)
        self._used += 1
        return memory

    def give_back(self, memory: SharedMemory) -> None:
        """Keep a block for the client's next call."""
        self._used -= 1
        # a client may offer one block with two calls at a time
        if memory.offer in self._idle or memory.size() > _QUICK:
            memory.close()
            return
        self._idle[memory.offer] = memory, time.monotonic() + _IDLE_SECONDS
        if len(self._idle) > _MOST_IDLE:
            self._close_oldest()
        if self._timer is None:
            self._timer = asyncio.get_running_loop().call_later(_IDLE_SECONDS, self._let_go)

    def __len__(self) -> int:
        return len(self._idle)

    def close(self) -> None:
        """Let go of all blocks."""
        if self._timer is not None:
            self._timer.cancel()
        for memory, _ in self._idle.values():
            memory.close()
        self._idle.clear()

    def _make_room(self) -> None:
        if self._most is None:
            self._most = most_blocks()
        if self._used + len(self._idle) < self._most:
            return
        if not self._idle:
            raise refused(f"less than {self._most} blocks of memory in use at a time", "one more")
        self._close_oldest()

    def _close_oldest(self) -> None:
        self._idle.popitem(last=False)[1][0].close()

    def _let_go(self) -> None:
        self._timer = None
        now = time.monotonic()
        while self._idle:
            memory, until = next(iter(self._idle.values()))
            if until > now:
                self._timer = asyncio.get_running_loop().call_later(until - now, self._let_go)
                return
            self._idle.popitem(last=False)
            memory.close()


class Offer:
    """What the client of one call offers; it is opened when it is first used.

    Args:
        words: the client's.
        memory: the blocks that are open; None where this call may have none.
    """

    def __init__(self, words: str, memory: OpenBlocks | None) -> None:
        self._words = words
        self._memory = memory
        self._block: SharedMemory | None = None

    def open(self) -> SharedMemory:
        """Return the block.

        Raises:
            ArgumentError: we cannot reach it.
        """
        if self._memory is None:
            raise refused("nothing from this client, or for this call", "an offer")
        if self._block is None:
            self._block = self._memory.take(self._words)
        return self._block

    def is_open(self) -> bool:
        """Tell whether we can reach it."""
        try:
            self.open()
        except ArgumentError:
            return False
        return True

    def close(self) -> None:
        """End the use of the block by this call."""
        if self._block is not None and self._memory is not None:
            self._memory.give_back(self._block)
            self._block = None


_current: ContextVar[Offer | None] = ContextVar("offer", default=None)


def current_offer() -> Offer | None:
    """Return the memory that the client of the call that runs now shares with us; None for none."""
    return _current.get()


def set_offer(offer: Offer) -> None:
    """Say what the client of the call that runs now shares with us."""
    _current.set(offer)


async def load(assembler: Assembler, offer: Offer | None) -> None:
    """Copy what a request has in shared memory.

    Raises:
        ArgumentError: there is none, we cannot reach it, or it is not what the request says.
    """
    block = offer.open() if offer is not None else None
    await _copied(assembler.shared_bytes, lambda: assembler.load(block))


async def put(start: Message, values: dict[str, Value], offer: Offer | None) -> dict[str, Value]:
    """Put the arrays of an answer into shared memory if there is some, and if it is worth it.

    Returns:
        Those that are to be sent.
    """
    size = array_bytes(values)
    if offer is None or size < SHARED_FROM or not offer.is_open():
        return values
    block = offer.open()
    return await _copied(size, lambda: block.put(start, values))


async def _copied(size: int, copy: Callable[[], Any]) -> Any:
    """Copy so many bytes; a call that is cancelled meanwhile ends when that is done."""
    return copy() if size <= _QUICK else await shielded(asyncio.to_thread(copy))

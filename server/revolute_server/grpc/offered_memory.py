"""Shared memory that clients on this machine offer for the arrays of their calls.

A client offers the same block with every call. A small block stays open between calls, because opening and
checking it takes longer than copying a small array. A large block is closed after each call: its client may
have ended, and the system cannot free the memory while the server holds it.
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
"""Up to this many bytes are copied on the event loop, and blocks up to this size stay open."""

_IDLE_SECONDS = 20.0
"""Time after which an unused block is closed, because its client may have ended."""

_MOST_IDLE = 256
"""Largest number of unused blocks that stay open."""


class OpenBlocks:
    """The open blocks of all clients. Everything here runs on the event loop.

    Args:
        most: largest number of open blocks; None for one that leaves enough descriptors for connections and
            the store.
    """

    def __init__(self, most: int | None = None) -> None:
        self._most = most
        self._used = 0
        self._idle: OrderedDict[str, tuple[SharedMemory, float]] = OrderedDict()
        self._timer: asyncio.TimerHandle | None = None

    def take(self, offer: str) -> SharedMemory:
        """Return the offered block for the use of one call; open it if needed.

        Raises:
            ArgumentError: the block cannot be opened, or too many are in use.
        """
        found = self._idle.pop(offer, None)
        if found is None:
            self._make_room()
        memory = found[0] if found is not None else SharedMemory.open(offer)
        self._used += 1
        return memory

    def give_back(self, memory: SharedMemory) -> None:
        """End the use of a block by a call; a small block stays open for the next call."""
        self._used -= 1
        # a client may offer the same block with two concurrent calls
        if memory.offer in self._idle or memory.size() > _QUICK:
            memory.close()
            return
        self._idle[memory.offer] = memory, time.monotonic() + _IDLE_SECONDS
        if len(self._idle) > _MOST_IDLE:
            self._close_oldest()
        if self._timer is None:
            self._timer = asyncio.get_running_loop().call_later(_IDLE_SECONDS, self._close_idle)

    def __len__(self) -> int:
        return len(self._idle)

    def close(self) -> None:
        """Close all unused blocks."""
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

    def _close_idle(self) -> None:
        """Close the blocks that were unused for too long."""
        self._timer = None
        now = time.monotonic()
        while self._idle:
            memory, until = next(iter(self._idle.values()))
            if until > now:
                self._timer = asyncio.get_running_loop().call_later(until - now, self._close_idle)
                return
            self._idle.popitem(last=False)
            memory.close()


class Offer:
    """The shared memory offered with one call; opened at its first use.

    Args:
        header: value of the metadata `x-shared-memory`.
        blocks: the open blocks; None if this call may not share memory.
    """

    def __init__(self, header: str, blocks: OpenBlocks | None) -> None:
        self._header = header
        self._blocks = blocks
        self._block: SharedMemory | None = None

    def open(self) -> SharedMemory:
        """Return the block.

        Raises:
            ArgumentError: the block cannot be opened.
        """
        if self._blocks is None:
            raise refused("nothing from this client, or for this call", "an offer")
        if self._block is None:
            self._block = self._blocks.take(self._header)
        return self._block

    def is_open(self) -> bool:
        """Open the block if needed, and tell whether that worked."""
        try:
            self.open()
        except ArgumentError:
            return False
        return True

    def close(self) -> None:
        """End the use of the block by this call."""
        if self._block is not None and self._blocks is not None:
            self._blocks.give_back(self._block)
            self._block = None


_current: ContextVar[Offer | None] = ContextVar("offer", default=None)


def current_offer() -> Offer | None:
    """Return the shared memory offered with the current call; None if there is none."""
    return _current.get()


def set_offer(offer: Offer) -> None:
    """Set the shared memory offered with the current call."""
    _current.set(offer)


async def load(assembler: Assembler, offer: Offer | None) -> None:
    """Copy the arrays of a request from shared memory.

    Raises:
        ArgumentError: no memory was offered, it cannot be opened, or it does not fit the request.
    """
    block = offer.open() if offer is not None else None
    await _copied(assembler.shared_bytes, lambda: assembler.load(block))


async def put(start: Message, values: dict[str, Value], offer: Offer | None) -> dict[str, Value]:
    """Write the arrays of an answer into shared memory if it was offered and they are large.

    Returns:
        The arrays that must be sent over the connection.
    """
    size = array_bytes(values)
    if offer is None or size < SHARED_FROM or not offer.is_open():
        return values
    block = offer.open()
    return await _copied(size, lambda: block.put(start, values))


async def _copied(size: int, copy: Callable[[], Any]) -> Any:
    """Run a copy of `size` bytes, a large one on a thread; it finishes even if the call is cancelled."""
    return copy() if size <= _QUICK else await shielded(asyncio.to_thread(copy))

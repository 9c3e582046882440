"""Waits for a client: for the next part of its request, or until it has taken a part of an answer.

gRPC keeps what has arrived of an unfinished message, and what a client has not taken yet. A wait of more than
a moment counts these bytes as memory in use, has a time limit, and lets the connection be closed for others
(`Peers`).
"""

from __future__ import annotations

import asyncio
import contextlib
import time
from collections import Counter, OrderedDict
from collections.abc import Awaitable, Callable, Iterator
from typing import TypeVar

from revolute.contract.errors import DeadlineError, RevoluteError

from ..compute.memory_budget import MemoryBudget

Result = TypeVar("Result")

_MOMENT = 0.05
"""Seconds after which a wait counts. Most are shorter, because the request has arrived."""

_MOST_PEERS = 16 * 1024
"""Number of connections whose last call is remembered."""


class Peers:
    """The calls of each connection, by gRPC's name of its peer.

    Attributes:
        unread: connections to close, because their clients do not read an answer.
    """

    def __init__(self) -> None:
        self.unread: set[str] = set()
        self._working: Counter[str] = Counter()
        self._last: OrderedDict[str, float] = OrderedDict()

    def is_busy(self, peer: str) -> bool:
        """Tell whether the server works for a call of this connection, and does not wait for the client."""
        return peer in self._working

    def last_call(self, peer: str) -> float:
        """Return when the server last worked for the connection, in s of the monotonic clock; 0 for never."""
        return self._last.get(peer, 0.0)

    @contextlib.contextmanager
    def working(self, peer: str) -> Iterator[None]:
        """Record a call of a connection for the length of the block."""
        self.resume(peer)
        try:
            yield
        finally:
            self.pause(peer)

    def resume(self, peer: str) -> None:
        """Record that the server works for a call."""
        self._working[peer] += 1

    def pause(self, peer: str) -> None:
        """Record that it does not."""
        self._working[peer] -= 1
        if self._working[peer] <= 0:
            del self._working[peer]
        self._last[peer] = time.monotonic()
        self._last.move_to_end(peer)
        if len(self._last) > _MOST_PEERS:
            self._last.popitem(last=False)


class Wait:
    """The waits of one call for its client.

    Args:
        budget: counts the bytes.
        peers: the calls of each connection.
        peer: the connection.
    """

    def __init__(self, budget: MemoryBudget, peers: Peers, peer: str) -> None:
        self._budget = budget
        self._peers = peers
        self._peer = peer
        self._error: RevoluteError | None = None

    async def for_client(
        self,
        begin: Callable[[], Awaitable[Result]],
        size: int,
        seconds: float,
        late: DeadlineError,
        what: str,
        *,
        at_once: bool = False,
    ) -> Result:
        """Await what the client does next.

        Args:
            begin: returns what ends when the client has done it.
            size: bytes that gRPC may hold meanwhile.
            seconds: time limit.
            late: the error when the time is over.
            what: name of these bytes in errors.
            at_once: whether the bytes are there now and are counted from the start.

        Raises:
            DeadlineError: the time is over.
            LimitError: the bytes do not fit into memory.
        """
        loop, task = asyncio.get_running_loop(), asyncio.current_task()
        assert task is not None
        held, is_paused = self._budget.reserve(what, size if at_once else 0), False
        timer: asyncio.TimerHandle

        def stop(error: RevoluteError) -> None:
            self._error = error
            task.cancel()

        def pause() -> None:
            nonlocal timer, is_paused
            is_paused = True
            self._peers.pause(self._peer)
            try:
                held.grow(size - held.count)
            except RevoluteError as error:
                stop(error)
                return
            timer = loop.call_later(max(0.0, seconds - _MOMENT), stop, late)

        timer = loop.call_later(_MOMENT, pause)
        try:
            return await begin()
        except asyncio.CancelledError:
            if self._error is None:
                raise
            if hasattr(task, "uncancel"):  # since Python 3.11
                task.uncancel()
            raise self._error from None
        finally:
            timer.cancel()
            held.release()
            if is_paused:
                self._peers.resume(self._peer)

"""Waits for a client: for the next part of its request, or until it has taken a part of an answer.

gRPC keeps what has arrived of an unfinished message, and what a client has not taken yet. A wait of more than
a moment counts these bytes as memory in use, has a time limit, and lets the connection be closed for others
(`Peers`). If the memory is full, the wait ends at once, except the only such wait of a connection: a call
that the machine delays, such as one for health, must not be taken for a client that stops half-way.
"""

from __future__ import annotations

import asyncio
import contextlib
import dataclasses
import functools
import time
from collections import OrderedDict
from collections.abc import Awaitable, Callable, Iterator
from typing import TypeVar

from revolute.contract.errors import (
    DeadlineError,
    LimitError,
    PermissionDeniedError,
    RevoluteError,
    UnauthenticatedError,
)

from ..compute.memory_budget import MemoryBudget
from ..settings import format_bytes

Result = TypeVar("Result")

_MOMENT, _HURRY, _FEW = 0.05, 0.01, 16
"""Seconds after which a wait counts; the same if more than a few others do not count yet; and how many are a
few. Most waits are shorter, because the request has arrived. In 0.05 s, clients on this machine could send
100 MB that nobody counts."""

_SHARE = 2
"""Waits for clients may hold one part in this many of `--memory`. gRPC keeps more for them than we count."""

_PATIENCE, _MOST_PATIENT = 0.5, 4
"""Seconds for which a wait goes on when its bytes do not fit into memory, and the number of such waits."""

_MOST_PEERS = 16 * 1024
"""Number of connections whose last call is remembered."""

_CALL_BYTES, _MESSAGE_BYTES = 16 * 1024, 256
"""Bytes that a client may send for a call and for a message besides its content: headers and frames."""

_AHEAD, _MOST_AHEAD = 2 * 1024**2, 64
"""Bytes of a call that may have arrived and are not read yet, and the most calls for which they count."""


@dataclasses.dataclass
class _Peer:
    """The calls of a connection.

    Attributes:
        calls: number of calls.
        working: number of those for which the server works, and does not wait for the client.
        last: when it last worked, in s of the monotonic clock.
        explained: bytes that the connection has sent for its calls.
    """

    calls: int = 0
    working: int = 0
    last: float = 0.0
    explained: int = 0


class Peers:
    """The calls of each connection, by gRPC's name of its peer.

    Attributes:
        unread: connections to close, because their clients do not read an answer.
    """

    def __init__(self) -> None:
        self.unread: set[str] = set()
        self._peers: OrderedDict[str, _Peer] = OrderedDict()
        self._patient: OrderedDict[str, Callable[[], None]] = OrderedDict()
        self._uncounted: set[object] = set()
        self._held = 0

    def take_unread(self) -> set[str]:
        """Return the connections to close, and forget them; safe on another thread."""
        found: set[str] = set()
        with contextlib.suppress(KeyError):
            while True:
                found.add(self.unread.pop())
        return found

    def is_busy(self, peer: str) -> bool:
        """Tell whether the server works for a call of this connection, and does not wait for the client."""
        return self._find(peer).working > 0

    def last_call(self, peer: str) -> float:
        """Return when the server last worked for the connection, in s of the monotonic clock; 0 for never."""
        return self._find(peer).last

    def explained(self, peer: str) -> int:
        """Return the bytes that the connection may have sent for its calls, with those that wait in gRPC."""
        found = self._find(peer)
        return found.explained + min(found.calls, _MOST_AHEAD) * _AHEAD

    @contextlib.contextmanager
    def working(self, peer: str) -> Iterator[None]:
        """Record a call of a connection for the length of the block."""
        found = self._peers.setdefault(peer, _Peer())
        found.calls += 1
        self.received(peer, _CALL_BYTES)
        self.resume(peer)
        try:
            yield
        except (UnauthenticatedError, PermissionDeniedError):
            raise
        except RevoluteError:
            # it may have sent more than was read
            found.explained += _AHEAD
            raise
        except BaseException:
            # the client cancelled it: its header is not the price of a call
            found.explained -= _CALL_BYTES
            raise
        finally:
            found.calls -= 1
            self.pause(peer)

    def received(self, peer: str, size: int) -> None:
        """Record a message of a call."""
        self._peers.setdefault(peer, _Peer()).explained += size + _MESSAGE_BYTES

    def resume(self, peer: str) -> None:
        """Record that the server works for a call."""
        self._peers.setdefault(peer, _Peer()).working += 1

    def pause(self, peer: str) -> None:
        """Record that it does not."""
        found = self._peers.setdefault(peer, _Peer())
        found.working -= 1
        found.last = time.monotonic()
        self._peers.move_to_end(peer)
        if len(self._peers) > _MOST_PEERS:
            self.forget(next(iter(self._peers)))

    def forget(self, peer: str) -> None:
        """Forget a connection that has ended."""
        if not self._find(peer).calls:
            self._peers.pop(peer, None)

    def _find(self, peer: str) -> _Peer:
        return self._peers.get(peer) or _Peer()

    @property
    def in_hurry(self) -> bool:
        """Whether many waits do not count yet."""
        return len(self._uncounted) > _FEW

    def begin_wait(self, wait: object) -> None:
        """Record a wait that does not count yet."""
        self._uncounted.add(wait)

    def end_wait(self, wait: object) -> None:
        """Record that a wait counts or has ended."""
        self._uncounted.discard(wait)

    def hold(self, size: int, most: int) -> None:
        """Count the bytes of a wait, until `let_go`.

        Raises:
            LimitError: all waits together would hold more than `most` bytes.
        """
        if self._held + size > most:
            raise LimitError(
                f"memory: expected at most {format_bytes(most)} in unfinished messages and unread answers, "
                f"got {format_bytes(self._held)} and {format_bytes(size)} more; "
                "send and read without pauses, or start the server with a larger --memory",
                argument="memory",
            )
        self._held += size

    def let_go(self, size: int) -> None:
        """Stop counting bytes of `hold`."""
        self._held -= size

    def be_patient(self, peer: str, stop: Callable[[], None]) -> bool:
        """Let a wait go on for which there is no memory, if it is the only such wait of its connection.

        The longest of these waits makes room for a new one.

        Args:
            peer: the connection.
            stop: ends the wait.

        Returns:
            Whether the wait may go on.
        """
        if peer in self._patient:
            return False
        if len(self._patient) >= _MOST_PATIENT:
            _, stop_oldest = self._patient.popitem(last=False)
            stop_oldest()
        self._patient[peer] = stop
        return True

    def end_patience(self, peer: str, stop: Callable[[], None]) -> None:
        """Record the end of a wait for which there was no memory."""
        if self._patient.get(peer) is stop:
            del self._patient[peer]


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
            size: bytes that gRPC may hold until then.
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
        held, is_paused, is_held = self._budget.reserve(what, size if at_once else 0), False, False
        timer: asyncio.TimerHandle
        end: Callable[[], None] | None = None

        def stop(error: RevoluteError) -> None:
            self._error = error
            task.cancel()

        def pause() -> None:
            nonlocal timer, is_paused, is_held, end
            is_paused = True
            self._peers.end_wait(held)
            self._peers.pause(self._peer)
            try:
                self._peers.hold(size, self._budget.limit // _SHARE)
                is_held = True
                held.grow(size - held.count)
                timer = loop.call_later(max(0.0, seconds - _MOMENT), stop, late)
            except RevoluteError as error:
                end = functools.partial(stop, error)
                if self._peers.be_patient(self._peer, end):
                    timer = loop.call_later(min(seconds, _PATIENCE), end)
                else:
                    end()

        def pause_in_hurry() -> None:
            nonlocal timer
            if self._peers.in_hurry:
                pause()
            else:
                timer = loop.call_later(_MOMENT - _HURRY, pause)

        timer = loop.call_later(_HURRY, pause_in_hurry)
        self._peers.begin_wait(held)
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
            self._peers.end_wait(held)
            held.release()
            if is_held:
                self._peers.let_go(size)
            if end is not None:
                self._peers.end_patience(self._peer, end)
            if is_paused:
                self._peers.resume(self._peer)

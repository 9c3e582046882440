"""Accepts a bounded number of connections, and closes silent ones when a new client needs a slot.

When all slots are taken, the connection that has waited longest for its client is closed for a new one: for a
request, for the rest of one, or until an answer is read. So clients that open many sockets and do nothing
cannot lock others out.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
import socket
import ssl
from collections import OrderedDict
from collections.abc import Callable
from typing import Protocol

from ..settings import Settings

_log = logging.getLogger("revolute.server")

_RESERVED = 56
"""File descriptors for everything else: listeners, event loops, the store, open files."""

_FEWEST = 4
"""Smallest number of connections of a transport, however few descriptors there are."""

_PAUSE = 0.05
"""Seconds until the next attempt to accept, after the system had no descriptor left."""

_SILENCE = 2.0
"""Seconds without a byte after which a connection with an unfinished request may be closed for a new one."""


class Peer(Protocol):
    """The server's end of a connection."""

    @property
    def silence(self) -> float:
        """Seconds since the last byte of an unfinished request or answer; 0 if there is none."""

    def abort(self) -> None:
        """Close the connection at once."""

    def sweep(self, seconds: float) -> None:
        """Close the connection if its client was silent for too long.

        Args:
            seconds: time since the last call of `sweep`.
        """


def raise_descriptor_limit(wanted: int) -> None:
    """Raise the process's limit of open files to `wanted`, or to the largest that the system allows."""
    try:
        import resource
    except ImportError:  # Windows has no such limit
        return
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    allowed = wanted if hard == resource.RLIM_INFINITY else min(hard, wanted)
    if soft != resource.RLIM_INFINITY and soft < allowed:
        with contextlib.suppress(OSError, ValueError):
            resource.setrlimit(resource.RLIMIT_NOFILE, (allowed, hard))


def descriptors_for(settings: Settings) -> int:
    """Return the number of descriptors that a server with these settings may need."""
    return 4 * settings.max_connections + _RESERVED


def most_connections(settings: Settings) -> int:
    """Return the largest number of connections of one transport: half of the descriptors not reserved."""
    try:
        import resource
    except ImportError:
        return settings.max_connections
    soft, _ = resource.getrlimit(resource.RLIMIT_NOFILE)
    if soft == resource.RLIM_INFINITY:
        return settings.max_connections
    return min(settings.max_connections, max(_FEWEST, (soft - _RESERVED) // 2))


class Slot:
    """One of the bounded number of connections, held from accept to close."""

    def __init__(self, connections: Connections, peer: Peer) -> None:
        self._connections = connections
        self.peer = peer

    def set_waiting(self, waiting: bool) -> None:
        """Tell whether the connection waits for a request; such a connection may be closed for a new one."""
        self._connections.set_waiting(self, waiting)

    def release(self) -> None:
        """Free the slot; a second call does nothing."""
        self._connections.release(self)


class Connections:
    """The connections of one transport. Everything here runs on the event loop.

    Args:
        most: largest number of connections.
    """

    def __init__(self, most: int) -> None:
        self.most = most
        self._slots: set[Slot] = set()
        self._waiting: OrderedDict[Slot, None] = OrderedDict()

    def __len__(self) -> int:
        return len(self._slots)

    def take(self, peer: Peer) -> Slot | None:
        """Return a slot for a new connection; None if all are taken by connections with a request."""
        if len(self._slots) >= self.most and not self.close_oldest():
            return None
        slot = Slot(self, peer)
        self._slots.add(slot)
        self._waiting[slot] = None
        return slot

    def close_oldest(self) -> bool:
        """Close the connection that has waited longest for a request, or for the rest of one.

        Returns:
            Whether a connection was closed.
        """
        if self._waiting:
            slot = next(iter(self._waiting))
        else:
            slot = max(self._slots, key=lambda slot: slot.peer.silence)
            if slot.peer.silence < _SILENCE:
                return False
        self.release(slot)
        slot.peer.abort()
        return True

    def set_waiting(self, slot: Slot, waiting: bool) -> None:
        """Record whether a connection waits for a request."""
        if slot not in self._slots:
            return
        if waiting:
            self._waiting[slot] = None
        else:
            self._waiting.pop(slot, None)

    def release(self, slot: Slot) -> None:
        """Free the slot of a connection that has ended."""
        self._slots.discard(slot)
        self._waiting.pop(slot, None)

    def sweep(self, seconds: float) -> None:
        """Close the connections whose clients were silent for too long; see `Peer.sweep`."""
        for slot in list(self._slots):
            slot.peer.sweep(seconds)


class Acceptor:
    """Accepts the connections of one listening socket; replaces uvicorn's asyncio.Server.

    Args:
        listener: the bound socket.
        context: TLS context; None for no TLS.
        connections: bounds the number of connections.
        protocol: makes the protocol of a connection from its slot.
        refusal: bytes sent to a client that gets no slot, without TLS.
        handshake_seconds: time limit of the TLS handshake in s.
    """

    def __init__(
        self,
        listener: socket.socket,
        context: ssl.SSLContext | None,
        connections: Connections,
        protocol: Callable[[Slot], asyncio.Protocol],
        refusal: bytes,
        handshake_seconds: float,
    ) -> None:
        self._listener = listener
        self._context = context
        self._connections = connections
        self._protocol = protocol
        self._refusal = refusal
        self._handshake_seconds = handshake_seconds
        self._handshakes: set[asyncio.Task[None]] = set()
        self._task: asyncio.Task[None] | None = None

    def start(self, backlog: int) -> None:
        """Listen and accept connections."""
        self._listener.setblocking(False)
        self._listener.listen(backlog)
        self._task = asyncio.get_running_loop().create_task(self._accept(), name="accept")

    def close(self) -> None:
        """Stop accepting connections."""
        if self._task is not None:
            self._task.cancel()
        for task in self._handshakes:
            task.cancel()

    async def wait_closed(self) -> None:
        """Wait until accepting has stopped."""
        tasks = [task for task in (self._task, *self._handshakes) if task is not None]
        await asyncio.gather(*tasks, return_exceptions=True)

    async def _accept(self) -> None:
        loop = asyncio.get_running_loop()
        while True:
            try:
                client, _ = await loop.sock_accept(self._listener)
            except OSError as error:
                # no descriptor or memory is left, or the client has already disconnected
                _log.debug("accept: %s", error)
                self._connections.close_oldest()
                await asyncio.sleep(_PAUSE)
                continue
            self._open(client)
            # let other tasks run, however many connections wait
            await asyncio.sleep(0)

    def _open(self, client: socket.socket) -> None:
        """Start a connection, or refuse it."""
        handshake = _Handshake(client)
        slot = self._connections.take(handshake)
        if slot is None:
            self._refuse(client)
            return
        task = asyncio.get_running_loop().create_task(self._connect(client, slot))
        handshake.task = task
        self._handshakes.add(task)
        task.add_done_callback(self._handshakes.discard)

    async def _connect(self, client: socket.socket, slot: Slot) -> None:
        """Do the handshake; afterwards the protocol holds the slot."""
        handshake = slot.peer
        seconds = self._handshake_seconds if self._context is not None else None
        try:
            await asyncio.get_running_loop().connect_accepted_socket(
                lambda: self._protocol(slot), client, ssl=self._context, ssl_handshake_timeout=seconds
            )
        except (OSError, asyncio.TimeoutError, asyncio.CancelledError) as error:
            _log.debug("handshake: %s", error)
        finally:
            if slot.peer is handshake:
                slot.release()

    def _refuse(self, client: socket.socket) -> None:
        """Send the refusal to a client if possible, and close its connection."""
        with contextlib.suppress(OSError):
            client.setblocking(False)
            if self._context is None:
                client.send(self._refusal)
                client.shutdown(socket.SHUT_WR)
                # unread bytes would make the system reset the connection and drop the answer
                client.recv(64 * 1024)
        client.close()


class _Handshake:
    """A connection in its handshake, before its protocol runs."""

    silence = 0.0

    def __init__(self, client: socket.socket) -> None:
        self._client = client
        self.task: asyncio.Task[None] | None = None

    def abort(self) -> None:
        if self.task is not None:
            self.task.cancel()

    def sweep(self, seconds: float) -> None:
        """Nothing to do: the handshake has its own time limit."""

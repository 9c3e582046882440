"""Accepts connections, no more of them than there are descriptors for, and ends those that keep silent.

When every place is taken, the connection that has waited longest for a request, or for the rest of one, makes
room for a new one. So sockets that send nothing, however many, keep nobody out.
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
"""Descriptors for all but connections: listeners, event loops, the store, files that are read."""

_FEWEST = 4
"""Connections of a transport, however few descriptors there are."""

_PAUSE = 0.05
"""Seconds before the next attempt to accept, when the system has no descriptor left."""


_SILENCE = 2.0
"""Seconds without a byte after which a request that has begun makes room for a new connection."""


class Peer(Protocol):
    """One end of a connection."""

    @property
    def silence(self) -> float:
        """Seconds for which a request that has begun to come has not gone on."""

    def abort(self) -> None:
        """Close it at once."""

    def sweep(self, seconds: float) -> None:
        """Close it if its client was silent for too long; `seconds` have passed since the last call."""


def raise_descriptor_limit(wanted: int) -> None:
    """Let this process have as many descriptors as the system allows it, up to a number."""
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
    """Return the descriptors that a server with these settings may come to need."""
    return 4 * settings.max_connections + _RESERVED


def most_connections(settings: Settings) -> int:
    """Return how many connections one transport may have: half of the descriptors that nothing else needs."""
    try:
        import resource
    except ImportError:
        return settings.max_connections
    soft, _ = resource.getrlimit(resource.RLIMIT_NOFILE)
    if soft == resource.RLIM_INFINITY:
        return settings.max_connections
    return min(settings.max_connections, max(_FEWEST, (soft - _RESERVED) // 2))


class Place:
    """The place that one connection takes, from accept to close."""

    def __init__(self, connections: Connections, peer: Peer) -> None:
        self._connections = connections
        self.peer = peer

    def waits(self, waiting: bool) -> None:
        """Say whether the connection waits for a request, so that it may be closed in favour of another."""
        self._connections.waits(self, waiting)

    def leave(self) -> None:
        """Give the place back; a second call does nothing."""
        self._connections.leave(self)


class Connections:
    """The connections of one transport. Everything here runs on the event loop.

    Args:
        most: how many there may be.
    """

    def __init__(self, most: int) -> None:
        self.most = most
        self._taken: set[Place] = set()
        self._waiting: OrderedDict[Place, None] = OrderedDict()

    def __len__(self) -> int:
        return len(self._taken)

    def take(self, peer: Peer) -> Place | None:
        """Return a place for a new connection; None when all have a request under way."""
        if len(self._taken) >= self.most and not self.close_oldest():
            return None
        place = Place(self, peer)
        self._taken.add(place)
        self._waiting[place] = None
        return place

    def close_oldest(self) -> bool:
        """Close the connection that has waited longest for a request, or for the rest of one.

        Returns:
            Whether there was one.
        """
        if self._waiting:
            place = next(iter(self._waiting))
        else:
            place = max(self._taken, key=lambda place: place.peer.silence)
            if place.peer.silence < _SILENCE:
                return False
        self.leave(place)
        place.peer.abort()
        return True

    def waits(self, place: Place, waiting: bool) -> None:
        """Note whether a connection waits for a request."""
        if place not in self._taken:
            return
        if waiting:
            self._waiting[place] = None
        else:
            self._waiting.pop(place, None)

    def leave(self, place: Place) -> None:
        """Note that a connection has ended."""
        self._taken.discard(place)
        self._waiting.pop(place, None)

    def sweep(self, seconds: float) -> None:
        """Close the connections whose clients were silent for too long."""
        for place in list(self._taken):
            place.peer.sweep(seconds)


class Acceptor:
    """Takes the connections of one listening socket; stands where uvicorn has an asyncio.Server.

    Args:
        listener: the socket, bound.
        context: for TLS; None without.
        connections: bounds their number.
        protocol: makes the protocol of a connection that has the given place.
        refusal: bytes for a client for whom there is no place, on a listener without TLS.
        handshake_seconds: time for the handshake of TLS.
    """

    def __init__(
        self,
        listener: socket.socket,
        context: ssl.SSLContext | None,
        connections: Connections,
        protocol: Callable[[Place], asyncio.Protocol],
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
        """Listen and accept."""
        self._listener.setblocking(False)
        self._listener.listen(backlog)
        self._task = asyncio.get_running_loop().create_task(self._accept(), name="accept")

    def close(self) -> None:
        """Accept no more."""
        if self._task is not None:
            self._task.cancel()
        for task in self._handshakes:
            task.cancel()

    async def wait_closed(self) -> None:
        """Wait until nothing is accepted any more."""
        tasks = [task for task in (self._task, *self._handshakes) if task is not None]
        await asyncio.gather(*tasks, return_exceptions=True)

    async def _accept(self) -> None:
        loop = asyncio.get_running_loop()
        while True:
            try:
                client, _ = await loop.sock_accept(self._listener)
            except OSError as error:
                # no descriptor or no memory is left, or the client has gone already
                _log.debug("accept: %s", error)
                self._connections.close_oldest()
                await asyncio.sleep(_PAUSE)
                continue
            self._open(client)
            # others have their turn, however many connections wait
            await asyncio.sleep(0)

    def _open(self, client: socket.socket) -> None:
        """Begin a connection, or refuse it."""
        handshake = _Handshake(client)
        place = self._connections.take(handshake)
        if place is None:
            self._refuse(client)
            return
        task = asyncio.get_running_loop().create_task(self._connect(client, place))
        handshake.task = task
        self._handshakes.add(task)
        task.add_done_callback(self._handshakes.discard)

    async def _connect(self, client: socket.socket, place: Place) -> None:
        """Make the handshake; the protocol has the place from then on."""
        handshake = place.peer
        seconds = self._handshake_seconds if self._context is not None else None
        try:
            await asyncio.get_running_loop().connect_accepted_socket(
                lambda: self._protocol(place), client, ssl=self._context, ssl_handshake_timeout=seconds
            )
        except (OSError, asyncio.TimeoutError, asyncio.CancelledError) as error:
            _log.debug("handshake: %s", error)
        finally:
            if place.peer is handshake:
                place.leave()

    def _refuse(self, client: socket.socket) -> None:
        """Tell a client that there is no place for it, as far as it listens, and close."""
        with contextlib.suppress(OSError):
            client.setblocking(False)
            if self._context is None:
                client.send(self._refusal)
                client.shutdown(socket.SHUT_WR)
                # bytes that nobody has read would take the answer back
                client.recv(64 * 1024)
        client.close()


class _Handshake:
    """A connection whose protocol does not run yet."""

    silence = 0.0

    def __init__(self, client: socket.socket) -> None:
        self._client = client
        self.task: asyncio.Task[None] | None = None

    def abort(self) -> None:
        if self.task is not None:
            self.task.cancel()

    def sweep(self, seconds: float) -> None:
        """Nothing to do: the handshake has a time limit of its own."""

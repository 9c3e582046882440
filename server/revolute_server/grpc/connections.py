"""Limits on gRPC connections: their number, how long one may be silent, and what it may send besides calls.

gRPC accepts connections itself. Its options limit their number and the time without a handshake or a call; a
connection beyond the limit is closed at once. This module sets those options and adds, on Linux, a watch. It
closes connections that flood (`traffic.py`), and those which have been without a call for longest when most
slots are taken, so that silent clients cannot lock others out.
"""

from __future__ import annotations

import contextlib
import logging
import os
import socket
import stat
import threading
import time
from collections.abc import Iterator, Set

from ..access.connections import most_connections
from ..settings import Settings
from .traffic import Traffic, received_bytes
from .waits import Peers

_log = logging.getLogger("revolute.server")

LARGEST_PART = 2 * 1024**2
"""Most bytes of a message. Parts have at most 1 MiB. Protobuf needs up to 50 ms for 2 MiB, and nothing else
runs meanwhile."""

_KEEPALIVE_MS, _KEEPALIVE_TIMEOUT_MS = 60_000, 20_000

_SHORT, _LONG, _BUSY, _REST = 0.05, 0.25, 0.1, 20
"""Seconds between two checks of the connections; processor time per second from which the short pause is
enough, since a flood may bring 50 MB in it; and how many times as long as a check the pause is at least."""

_IDLE = 0.5
"""Seconds without a call after which a connection may be closed for others."""


def connection_options(settings: Settings) -> tuple[tuple[str, int], ...]:
    """Return gRPC's options for the connections of a server."""
    handshake = int(1000 * settings.header_timeout)
    return (
        ("grpc.max_allowed_incoming_connections", most_connections(settings)),
        ("grpc.max_concurrent_streams", settings.max_streams),
        # time limits of the TLS handshake, and of HTTP/2 until the first settings
        ("grpc.server_handshake_timeout_ms", handshake),
        ("grpc.http2.settings_timeout", handshake),
        ("grpc.max_connection_idle_ms", int(1000 * settings.idle_timeout)),
        # notice dead peers and end their calls
        ("grpc.keepalive_time_ms", _KEEPALIVE_MS),
        ("grpc.keepalive_timeout_ms", _KEEPALIVE_TIMEOUT_MS),
    )


class Sockets:
    """Closes gRPC connections whose clients do not read or flood, and idle ones when most slots are taken.

    Of the idle ones, those that never made a call come first, then those whose last call is longest ago. A
    call whose client keeps the server waiting does not count. gRPC does not expose its sockets, so they are
    searched among this process's descriptors. A socket is shut down through a duplicate descriptor, which
    stays valid if gRPC closes its own.

    Args:
        ports: ports that gRPC listens on.
        most: largest number of connections.
        peers: the calls of each connection.
    """

    def __init__(self, ports: set[int], most: int, peers: Peers) -> None:
        self._ports = ports
        self._tolerated = most - max(1, most // 4)
        self._peers = peers
        self._traffic = Traffic(peers)
        self._seen: dict[str, float] = {}
        self._checked = time.monotonic()
        self._end = threading.Event()
        self._thread: threading.Thread | None = None

    def start(self) -> None:
        """Check the connections regularly until `stop`, on a thread that does not wait for the event loop."""
        if self._ports and os.path.isdir("/proc/self/fd"):
            self._thread = threading.Thread(target=self._watch, name="gRPC connections", daemon=True)
            self._thread.start()

    def stop(self) -> None:
        """Stop checking."""
        self._end.set()
        if self._thread is not None:
            self._thread.join()

    def _watch(self) -> None:
        """Call `close` at regular intervals, more often while the process has much to do."""
        ended, used, taken = time.monotonic(), time.process_time(), 0.0
        while not self._end.wait(_SHORT):
            waited = time.monotonic() - ended
            is_busy = time.process_time() - used > _BUSY * waited
            if waited < max(_SHORT if is_busy else _LONG, _REST * taken):
                continue
            began = time.monotonic()
            try:
                self.close(self._peers.take_unread())
            except Exception:
                _log.exception("the gRPC connections cannot be checked")
            ended, used = time.monotonic(), time.process_time()
            taken = ended - began

    def close(self, unread: Set[str]) -> None:
        """Close connections that do not read answers or flood, and idle ones if most slots are taken.

        Args:
            unread: connections that do not read.
        """
        peers: dict[str, int] = {}
        received: dict[str, int] = {}
        for descriptor in _descriptors():
            with _connection(descriptor, self._ports) as connection:
                if connection is not None:
                    peer = _peer(connection)
                    peers[peer], received[peer] = descriptor, received_bytes(connection)
        now = time.monotonic()
        floods = self._traffic.floods(received, now - self._checked)
        self._checked = now
        for peer in (unread & peers.keys()) | floods:
            self._shut_down(peer, peers[peer])
        self._seen = {peer: self._seen.get(peer, now) for peer in peers}
        for peer in self._idle(now)[: max(0, len(peers) - self._tolerated)]:
            if not self._peers.is_busy(peer):
                self._shut_down(peer, peers[peer])

    def _shut_down(self, peer: str, descriptor: int) -> None:
        # check again: the descriptor may belong to another connection by now
        with _connection(descriptor, self._ports) as connection, contextlib.suppress(OSError):
            if connection is not None and _peer(connection) == peer:
                connection.shutdown(socket.SHUT_RDWR)

    def _idle(self, now: float) -> list[str]:
        """Return the idle connections, those without any call first, then by the time of their last one."""
        found: list[tuple[float, float, str]] = []
        for peer, seen in self._seen.items():
            last = self._peers.last_call(peer)
            if not self._peers.is_busy(peer) and now - max(last, seen) >= _IDLE:
                found.append((last, seen, peer))
        return [peer for _, _, peer in sorted(found)]


def _descriptors() -> list[int]:
    return [int(name) for name in os.listdir("/proc/self/fd")]


@contextlib.contextmanager
def _connection(descriptor: int, ports: set[int]) -> Iterator[socket.socket | None]:
    """Yield a duplicate of a socket if it is a connection to one of the ports, else None."""
    try:
        if not stat.S_ISSOCK(os.fstat(descriptor).st_mode):
            yield None
            return
        own = socket.socket(fileno=os.dup(descriptor))
    except OSError:
        yield None
        return
    with own:
        yield own if _is_connection(own, ports) else None


def _is_connection(found: socket.socket, ports: set[int]) -> bool:
    try:
        is_internet = found.family in (socket.AF_INET, socket.AF_INET6)
        # a listener has no peer
        return is_internet and found.getsockname()[1] in ports and bool(found.getpeername())
    except OSError:
        return False


def _peer(connection: socket.socket) -> str:
    """Return gRPC's name of the other end."""
    try:
        host, port, *_ = connection.getpeername()
    except OSError:
        return ""
    # a client over IPv4 of a listener for both
    host = host.removeprefix("::ffff:")
    return f"ipv6:%5B{host}%5D:{port}" if ":" in host else f"ipv4:{host}:{port}"

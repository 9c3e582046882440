"""Finds gRPC connections that send much which belongs to no call.

Endless headers, streams that are opened and reset at once, pings: gRPC reads all of that by itself, keeps
some of it, and meanwhile other clients wait. The bytes that a connection has received (Linux counts them) are
compared with those of its calls.
"""

from __future__ import annotations

import socket
import struct
from collections.abc import Mapping

from .waits import Peers

_MOST = 32 * 1024**2
"""Bytes beyond those of the calls for which a connection is closed; calls that wait to begin sent some."""

_FORGIVEN = 4 * 1024**2
"""Bytes per second beyond those of the calls that are forgiven."""

_OVERHEAD = 1.1
"""Bytes that TLS and HTTP/2 send for each byte of a message."""

_TCP_INFO, _RECEIVED_AT = 11, 128
"""Linux: the option with the state of a connection, and where in it the number of received bytes is."""


def received_bytes(connection: socket.socket) -> int:
    """Return the bytes that a connection has received; 0 if the system does not count them."""
    try:
        content = connection.getsockopt(socket.IPPROTO_TCP, _TCP_INFO, _RECEIVED_AT + 8)
    except OSError:
        return 0
    if len(content) < _RECEIVED_AT + 8:
        return 0
    (found,) = struct.unpack_from("=Q", content, _RECEIVED_AT)
    return int(found)


class Traffic:
    """Compares the bytes of connections with those of their calls.

    Args:
        peers: the calls of each connection.
    """

    def __init__(self, peers: Peers) -> None:
        self._peers = peers
        self._forgiven: dict[str, int] = {}

    def floods(self, received: Mapping[str, int], seconds: float) -> set[str]:
        """Return the connections to close.

        Args:
            received: bytes that each open connection has received.
            seconds: time since the last call.
        """
        for peer in self._forgiven.keys() - received.keys():
            self._peers.forget(peer)
        found, forgiven = set(), {}
        for peer, count in received.items():
            before = self._forgiven.get(peer, 0)
            excess = count - int(_OVERHEAD * self._peers.explained(peer)) - before
            if excess > _MOST:
                found.add(peer)
            forgiven[peer] = before + min(max(excess, 0), int(_FORGIVEN * seconds))
        self._forgiven = forgiven
        return found

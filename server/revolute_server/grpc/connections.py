"""Limits on gRPC connections: their number, and how long one may be silent.

gRPC accepts connections itself. Its options limit their number and the time without a handshake or a call; a
connection beyond the limit is closed at once. This module sets those options and adds two limits: a time
limit for a request that stops half-way, and on Linux a watch that closes connections without a call when
most slots are taken, so that silent sockets cannot lock clients out.
"""

from __future__ import annotations

import asyncio
import contextlib
import os
import socket
import stat
import struct
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from typing import Any

import grpc

from revolute.contract.errors import DeadlineError

from ..access.connections import most_connections
from ..settings import Settings

_OURS = "/revolute.v1."

_CONVERSATION = f"{_OURS}TrajectoryService/ValueAndGradient"
"""The rpc whose client computes a loss between two parts of its request."""

_KEEPALIVE_MS, _KEEPALIVE_TIMEOUT_MS = 60_000, 20_000

_FIRST_CALL = 160
"""Fewest bytes that a client sends to start a call: preface, settings and a block of headers. Preface,
settings, their acknowledgement and a window update take less than 120 bytes."""

_SILENT_MS = 500
"""Milliseconds without a byte after which a connection without a call may be closed."""

_TCP_INFO_BYTES, _LAST_RECEIVED, _BYTES_RECEIVED = 192, 52, 128
"""Size of the used part of Linux's `struct tcp_info`, and offsets of two of its fields."""


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


class SilenceLimit(grpc.aio.ServerInterceptor):
    """Ends a call if the next part of its streamed request takes too long.

    It must come after the interceptor that turns errors into statuses.

    Args:
        settings: has the time limits.
    """

    def __init__(self, settings: Settings) -> None:
        self._settings = settings

    async def intercept_service(
        self,
        continuation: Callable[[grpc.HandlerCallDetails], Awaitable[Any]],
        handler_call_details: grpc.HandlerCallDetails,
    ) -> Any:
        handler = await continuation(handler_call_details)
        method = handler_call_details.method
        if handler is None or not (handler.request_streaming and method.startswith(_OURS)):
            return handler
        name = "idle_timeout" if method == _CONVERSATION else "body_timeout"
        seconds, flag = getattr(self._settings, name), self._settings.flag(name)
        inner = handler.stream_stream if handler.response_streaming else handler.stream_unary

        def timed(request: AsyncIterator[Any], context: Any) -> Any:
            return inner(_Timed(request, seconds, flag), context)

        build: Any = (
            grpc.stream_stream_rpc_method_handler
            if handler.response_streaming
            else grpc.stream_unary_rpc_method_handler
        )
        return build(timed, handler.request_deserializer, handler.response_serializer)


class _Timed:
    """The parts of a request, with a time limit for each."""

    def __init__(self, parts: AsyncIterator[Any], seconds: float, flag: str) -> None:
        self._parts = parts
        self._seconds = seconds
        self._flag = flag
        self._late = False

    def __aiter__(self) -> _Timed:
        return self

    async def __anext__(self) -> Any:
        task = asyncio.current_task()
        assert task is not None
        timer = asyncio.get_running_loop().call_later(self._seconds, self._stop, task)
        try:
            return await anext(self._parts)
        except asyncio.CancelledError:
            if not self._late:
                raise
            if hasattr(task, "uncancel"):  # since Python 3.11
                task.uncancel()
            raise DeadlineError.expected(
                "request",
                f"another part of it within {self._flag} s",
                "none",
                advice="send the request again without pauses",
            ) from None
        finally:
            timer.cancel()

    def _stop(self, task: asyncio.Task[Any]) -> None:
        self._late = True
        task.cancel()


class SilentSockets:
    """Closes gRPC connections that never started a call, when most slots are taken.

    gRPC does not expose its sockets, so they are searched among this process's descriptors. A socket is
    examined and shut down through a duplicate descriptor, which stays valid if gRPC closes its own.

    Args:
        ports: ports that gRPC listens on.
        most: largest number of connections.
    """

    def __init__(self, ports: set[int], most: int) -> None:
        self._ports = ports
        self._tolerated = most - max(1, most // 4)

    async def watch(self, seconds: float) -> None:
        """Call `close` at an interval of `seconds`, until cancelled."""
        if not hasattr(socket, "TCP_INFO") or not os.path.isdir("/proc/self/fd"):
            return
        while self._ports:
            await asyncio.sleep(seconds)
            await asyncio.to_thread(self.close)

    def close(self) -> int:
        """Close silent connections if fewer than a quarter of the slots are free; return their number."""
        descriptors = _descriptors()
        if len(descriptors) <= self._tolerated:
            return 0
        count, silent = 0, []
        for descriptor in descriptors:
            with _connection(descriptor, self._ports) as connection:
                if connection is not None:
                    count += 1
                    silent.append((_silence(connection), descriptor))
        closed = 0
        for milliseconds, descriptor in sorted(silent, reverse=True)[: max(0, count - self._tolerated)]:
            if milliseconds < _SILENT_MS:
                break
            # check again: the descriptor may belong to another connection by now
            with _connection(descriptor, self._ports) as connection, contextlib.suppress(OSError):
                if connection is not None and _silence(connection) >= _SILENT_MS:
                    connection.shutdown(socket.SHUT_RDWR)
                    closed += 1
        return closed


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


def _silence(connection: socket.socket) -> int:
    """Return the milliseconds since a connection's last byte; 0 if it has started a call."""
    try:
        info = connection.getsockopt(socket.IPPROTO_TCP, socket.TCP_INFO, _TCP_INFO_BYTES)
    except OSError:
        return 0
    if len(info) < _BYTES_RECEIVED + 8:
        return 0
    (received,) = struct.unpack_from("=Q", info, _BYTES_RECEIVED)
    (milliseconds,) = struct.unpack_from("=I", info, _LAST_RECEIVED)
    return milliseconds if received < _FIRST_CALL else 0

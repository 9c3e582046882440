"""HTTP connections with limits on the size and the time of requests.

uvicorn and httptools accept URLs and header fields of any length, and wait for the rest of a request without
a time limit. Here the parser gets the head of a request in counted pieces. A request that is too long or too
slow is answered with a problem document (RFC 9457), and its connection is closed. Pipelined requests are not
read until the previous one is answered.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
import socket
from collections.abc import Iterator
from typing import Any

import httptools
import uvicorn
from fastapi import FastAPI
from uvicorn.protocols.http.flow_control import FlowControl
from uvicorn.protocols.http.httptools_impl import STATUS_LINE, HttpToolsProtocol

from revolute.contract.errors import (
    ArgumentError,
    DeadlineError,
    LimitError,
    RevoluteError,
    UnavailableError,
)

from ..access.connections import Acceptor, Connections, Slot
from ..access.listeners import Tls
from ..compute.memory_budget import MemoryBudget
from ..observe.telemetry import Telemetry
from ..settings import Settings, format_bytes
from .problems import problem
from .proxies import Proxies

_HEAD_PIECE = 8 * 1024
"""Bytes of a head that the parser gets at a time."""

_BODY_PIECE = 64 * 1024
"""Bytes of a body that the parser gets at a time."""

_SPARSE_PIECE = 4 * 1024
"""The same for a body in tiny chunks, whose parsing is slow; other tasks run between two pieces."""

_LINGER_SECONDS = 2.0
"""Time for a refused client to read the answer; what it still sends is dropped."""

_DROP_PAUSE = 0.01
"""Seconds between two reads of bytes to drop. A read may take megabytes, while other clients wait."""

_MOST_DROPPED = 64 * 1024**2
"""Most bytes of a refused request that are read and dropped."""

_SWEEP_SECONDS = 0.5
"""Interval between two checks of the connections."""


class HttpListener(uvicorn.Server):
    """uvicorn on one socket, without its signal handlers; the application handles signals.

    Args:
        app: the application.
        settings: has the limits.
        connections: bounds the connections of all HTTP listeners.
        budget: counts the bytes of requests that are not parsed yet.
        telemetry: counts requests that are refused before they become calls.
        tls: certificates; None for no TLS.
    """

    def __init__(
        self,
        app: FastAPI,
        settings: Settings,
        connections: Connections,
        budget: MemoryBudget,
        telemetry: Telemetry,
        tls: Tls | None,
    ) -> None:
        self._settings = settings
        self._connections = connections
        self._budget = budget
        self._telemetry = telemetry
        self._tls = tls
        super().__init__(
            uvicorn.Config(
                Proxies(app, settings),
                # uvicorn's messages about start and stop repeat ours
                log_level="debug" if settings.log_level == "debug" else "warning",
                log_config=None,
                access_log=False,
                lifespan="off",
                http=HttpConnection,
                ws="none",
                proxy_headers=False,
                **(tls.for_uvicorn() if tls else {}),
            )
        )

    def end(self, seconds: float) -> None:
        """Start to stop; running requests have at most `seconds` left."""
        # uvicorn accepts fractions, although it declares an int
        self.config.timeout_graceful_shutdown = seconds  # type: ignore[assignment]
        self.should_exit = True

    def reload_tls(self) -> None:
        """Load the certificate files again."""
        if self._tls is not None and self.config.ssl is not None:
            self._tls.load_into(self.config.ssl)

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        """Start to accept connections."""
        assert sockets is not None and len(sockets) == 1
        full = UnavailableError(
            f"connections: expected at most {self._connections.most} with a request under way, got one more; "
            "call again later, or start the server with more --max-connections",
            argument="connections",
            retry_after=1.0,
        )
        acceptor = Acceptor(
            sockets[0],
            self.config.ssl,
            self._connections,
            self._connection,
            _problem_bytes(full, None),
            self._settings.header_timeout,
        )
        acceptor.start(self.config.backlog)
        self.servers: list[Any] = [acceptor]
        self.started = True

    @contextlib.contextmanager
    def capture_signals(self) -> Iterator[None]:
        yield

    def _connection(self, slot: Slot) -> HttpConnection:
        limits = self._settings, slot, self._budget, self._telemetry
        return HttpConnection(self.config, self.server_state, self.lifespan.state, limits)


async def sweep(connections: Connections) -> None:
    """Close connections whose clients were silent for too long, until cancelled."""
    loop = asyncio.get_running_loop()
    last = loop.time()
    while True:
        await asyncio.sleep(_SWEEP_SECONDS)
        now = loop.time()
        connections.sweep(now - last)
        last = now


class _Flow(FlowControl):
    """Does not resume reading while bytes that were read wait to be parsed."""

    blocked = False

    def resume_reading(self) -> None:
        if not self.blocked:
            super().resume_reading()


class _RefusedError(Exception):
    """Stops the parser; the connection has the reason."""


class HttpConnection(HttpToolsProtocol):
    """One connection, with limits on the size and the time of its requests.

    Its phase is "new" (no byte received), "head" or "body" (receiving that part of a request), "whole" (the
    request is received and the answer is on its way), "idle" (the last request is answered), or "refused".
    """

    def __init__(
        self,
        config: uvicorn.Config,
        server_state: Any,
        app_state: dict[str, Any],
        limits: tuple[Settings, Slot, MemoryBudget, Telemetry],
    ) -> None:
        super().__init__(config, server_state, app_state)
        self._settings, self._slot, budget, self._telemetry = limits
        self._held = budget.reserve("the head of a request").shared()
        self._phase = "new"
        self._seconds = 0.0  # time in this phase, without the time in which reading was paused
        self._silence = 0.0  # time since the last byte of the body
        self._unsent, self._unread_seconds = (
            0,
            0.0,
        )  # bytes of answers that wait, and since when none was sent
        self._framing = 0  # bytes since the last byte of a body or the end of the last request
        self._body_bytes = 0
        self._fields = 0
        self._unread: list[bytes] = []
        self._piece_body = 0  # bytes of the body in the current piece
        self._dropped = 0  # bytes of this request that came after its refusal
        self._sparse = False
        self._refusal: tuple[RevoluteError, int | None] | None = None
        self._upgraded = False
        self._running: Any = None

    # from the transport

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        super().connection_made(transport)
        self.flow: _Flow = _Flow(transport)
        self._slot.peer = self

    def connection_lost(self, exc: Exception | None) -> None:
        self._slot.release()
        self._unread.clear()
        self._held.release()
        if self._answering():
            # uvicorn informs only the last one of pipelined requests
            self._running.disconnected = True
            self._running.message_event.set()
        super().connection_lost(exc)

    def data_received(self, data: bytes) -> None:
        self._unset_keepalive_if_required()
        if self._phase != "refused" and not self._upgraded:
            if self.pipeline or self._unread:
                self._keep_unread(data)
            else:
                self._feed(data)
        if self._is_dropping():
            self._drop(len(data))

    def _is_dropping(self) -> bool:
        """Tell whether the rest of the request is read for nothing: it was refused or answered already."""
        is_answered = self._phase == "body" and self.cycle.response_complete
        return self._phase == "refused" or self._upgraded or is_answered

    def _drop(self, size: int) -> None:
        """Count dropped bytes, and read on after a pause."""
        self._dropped += size
        if self._dropped > _MOST_DROPPED:
            self.transport.abort()
            return
        self.flow.pause_reading()
        self.flow.blocked = True
        self.loop.call_later(_DROP_PAUSE, self._read_on)

    def _read_on(self) -> None:
        """Read again, unless other bytes wait to be parsed or the connection has ended."""
        if self._unread or self.pipeline or self.transport.is_closing():
            return
        self.flow.blocked = False
        self.flow.resume_reading()

    @property
    def silence(self) -> float:
        """Seconds since the last byte of an unfinished body or of an answer under way; 0 if there is none."""
        return max(self._silence if self._phase == "body" else 0.0, self._unread_seconds)

    def abort(self) -> None:
        """Close the connection at once."""
        self.transport.abort()

    def sweep(self, seconds: float) -> None:
        """Close the connection if its client was silent for too long."""
        settings = self._settings
        unsent = self.transport.get_write_buffer_size()
        self._unread_seconds = self._unread_seconds + seconds if unsent and unsent == self._unsent else 0.0
        self._unsent = unsent
        if self._unread_seconds > settings.answer_timeout:
            self._telemetry.refused("http", DeadlineError.reason, "a client that does not read its answer")
            self.transport.abort()
            return
        if self.flow.read_paused and not self._is_dropping():
            return  # the server is slow, not the client
        self._seconds += seconds
        self._silence += seconds
        if self._phase == "refused":
            if self._seconds > _LINGER_SECONDS:
                self.transport.abort()
        elif self._phase == "new":
            if self._seconds > settings.header_timeout:
                self.transport.abort()
        elif self._phase == "idle":
            if self._seconds > settings.idle_timeout:
                self.transport.close()
        elif self._phase == "head":
            if self._seconds > settings.header_timeout and not self._answering():
                limit = f"{settings.flag('header_timeout')} s"
                self._refuse(_late("headers", f"the whole head of a request within {limit}"), 408)
        elif self._phase == "body":
            self._sweep_body()

    def _sweep_body(self) -> None:
        settings = self._settings
        if self.cycle.response_complete:
            # the request was answered before its body was received
            if self._seconds > settings.header_timeout:
                self.transport.abort()
        elif self._silence > settings.body_timeout:
            self._refuse(_late("body", f"more of it within {settings.flag('body_timeout')} s"), 408)
        elif self._body_bytes < settings.min_body_rate * (self._seconds - settings.body_timeout):
            rate = f"{settings.flag('min_body_rate')} per second"
            self._refuse(_late("body", f"at least {rate}", format_bytes(self._body_bytes)), 408)

    # to the parser

    def _feed(self, data: bytes) -> None:
        """Give bytes to the parser, in counted pieces."""
        fed = 0
        while fed < len(data):
            if self.pipeline:
                self._keep_unread(data[fed:])
                return
            size = self._piece_size()
            piece = data[fed : fed + size] if fed or size < len(data) else data
            fed += len(piece)
            self._framing += len(piece)
            self._piece_body = 0
            try:
                self.parser.feed_data(piece)
            except httptools.HttpParserUpgrade:
                # upgrades are not supported: answer the request and ignore the rest
                self._upgraded = True
                self.cycle.keep_alive = False
                return
            except httptools.HttpParserError:
                error = ArgumentError.expected("request", "HTTP/1.1", "bytes that are none")
                self._refuse(*(self._refusal or (error, None)))
                return
            self._check_framing(len(piece))
            if self._phase == "refused" or self.transport.is_closing():
                return
            self._sparse = self._phase == "body" and 2 * self._piece_body < len(piece)
            if self._sparse and fed < len(data):
                self._keep_unread(data[fed:])
                self.loop.call_soon(self._feed_unread)
                return

    def _piece_size(self) -> int:
        if self._phase != "body":
            return _HEAD_PIECE
        return _SPARSE_PIECE if self._sparse else _BODY_PIECE

    def _check_framing(self, size: int) -> None:
        """Refuse a head or trailers that are too long."""
        if self._framing > self._settings.max_header:
            self._refuse(self._too_large("headers", "max_header"), 431)
        elif self._phase == "head":
            try:
                self._held.grow(size)
            except LimitError as error:
                self._refuse(error, None)

    def _keep_unread(self, data: bytes) -> None:
        """Keep bytes to parse later, and pause reading until then."""
        self.flow.pause_reading()
        self.flow.blocked = True
        try:
            self._held.grow(len(data))
        except LimitError:
            self.transport.abort()
            return
        self._unread.append(data)

    def _too_large(self, argument: str, name: str) -> LimitError:
        limit = getattr(self._settings, name)
        shown = f"{limit} fields" if name == "max_header_fields" else format_bytes(limit)
        return LimitError.expected(
            argument,
            f"at most {shown}",
            "more",
            advice=f"send less, or start the server with more than {self._settings.flag(name)}",
        )

    # from the parser

    def on_message_begin(self) -> None:
        super().on_message_begin()
        self._enter("head")
        self._fields = self._body_bytes = self._dropped = 0

    def on_url(self, url: bytes) -> None:
        super().on_url(url)
        if len(self.url) > self._settings.max_url:
            self._stop(self._too_large("url", "max_url"), 414)

    def on_header(self, name: bytes, value: bytes) -> None:
        self._fields += 1
        if self._fields > self._settings.max_header_fields:
            self._stop(self._too_large("headers", "max_header_fields"), 431)
        if self._phase == "head":  # ignore the trailers of a body
            super().on_header(name, value)

    def on_headers_complete(self) -> None:
        if self.cycle is None or self.cycle.response_complete:
            self._slot.set_waiting(False)
        self._enter("body")
        self._sparse = True  # until the first piece shows otherwise
        super().on_headers_complete()

    def on_body(self, body: bytes) -> None:
        self._silence = 0.0
        self._framing = 0
        self._body_bytes += len(body)
        self._piece_body += len(body)
        super().on_body(body)

    def on_message_complete(self) -> None:
        self._enter("whole")
        self._framing = 0
        super().on_message_complete()
        if self.cycle.response_complete:
            self._wait()

    # around the answer

    def _start_asgi_task(self, cycle: Any, app: Any) -> None:
        self._running = cycle
        super()._start_asgi_task(cycle, app)

    def on_response_complete(self) -> None:
        super().on_response_complete()
        # `sweep` replaces uvicorn's timer, which does not run after a part of a request was received
        self._unset_keepalive_if_required()
        if self.transport.is_closing():
            return
        if self.pipeline:
            self.flow.pause_reading()
            return
        if self._unread:
            self.loop.call_soon(self._feed_unread)
            return
        self._held.release()
        if self._phase == "whole":
            self._wait()
        elif self._phase == "body":
            self._seconds = 0.0
            self._slot.set_waiting(True)

    def _feed_unread(self) -> None:
        """Parse the kept bytes, unless the connection has ended."""
        ended = self.parser is None or self.transport.is_closing() or self._phase == "refused"
        if ended or self.pipeline or not self._unread:
            return
        if self._phase == "whole" and not self._answering():
            self._wait()
        data, self._unread = b"".join(self._unread), []
        self._held.release()
        self.flow.blocked = False
        self.flow.resume_reading()
        self._feed(data)

    def _answering(self) -> bool:
        return self._running is not None and not self._running.response_complete

    def _wait(self) -> None:
        """Wait for the next request."""
        self._enter("idle")
        self._slot.set_waiting(True)

    def _enter(self, phase: str) -> None:
        self._phase = phase
        self._seconds = self._silence = 0.0

    def _stop(self, error: RevoluteError, status: int) -> None:
        """Stop the parser from one of its callbacks, to refuse the request."""
        self._refusal = error, status
        raise _RefusedError

    def _refuse(self, error: RevoluteError, status: int | None) -> None:
        """Refuse a request before its end: send the error and close the connection."""
        if self._phase == "refused" or self.transport.is_closing():
            return
        cycle = self._running
        if self._answering():
            cycle.disconnected = True
            cycle.message_event.set()
            if cycle.response_started or cycle is not self.cycle or self._phase != "body":
                # another answer is being sent; an error in between would corrupt it
                self.transport.close()
                return
        self._enter("refused")
        self._held.release()
        self._telemetry.refused("http", error.reason, error.message)
        logging.getLogger("revolute.access").info("a request over http was refused: %s", error.message)
        self._unread.clear()
        self.flow.blocked = False
        self.flow.resume_reading()
        self.transport.write(_problem_bytes(error, status))
        if self.transport.can_write_eof():
            self.transport.write_eof()


def _late(argument: str, what: str, got: str = "none") -> DeadlineError:
    return DeadlineError.expected(argument, what, got, advice="send the request again without pauses")


def _problem_bytes(error: RevoluteError, status: int | None) -> bytes:
    """Return the bytes of an error answer that does not pass through the application."""
    answer = problem(error, status, {"connection": "close"})
    fields = b"".join(b"%s: %s\r\n" % field for field in answer.raw_headers)
    return STATUS_LINE[answer.status_code] + fields + b"\r\n" + bytes(answer.body)

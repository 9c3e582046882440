"""The interceptor that admits gRPC calls, decodes their requests, and turns errors into statuses.

A status is a code, with google.rpc.Status and ErrorInfo in the trailing metadata.
"""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncGenerator, AsyncIterator, Awaitable, Callable, Iterator, Mapping
from contextlib import contextmanager
from typing import Any
from urllib.parse import unquote

import grpc
from google.protobuf import descriptor_pool, message_factory
from google.protobuf.message import DecodeError, Message

from revolute.contract.codec.shared_memory import AVAILABLE, HEADER, OPENED
from revolute.contract.codec.status import DETAILS_KEY, encode_status
from revolute.contract.errors import ArgumentError, RevoluteError, kind_of

from ..access.admission import CALL_ID_HEADER, Calls
from ..access.call import Call
from ..observe.incidents import public_error, stopping
from ..time_limit import within
from .messages import ReceivedPart
from .offered_memory import Offer, OpenBlocks, current_offer, set_offer

_OURS = "/revolute.v1."

_CONVERSATION = "TrajectoryService.ValueAndGradient"
"""The rpc whose client may wait for an answer before it ends its request."""

_PARTS_HEADER = "x-parts"
"""Metadata with which older clients ask for an answer in one part; when it is refused, they call again
without it."""

_INFO = "ServerService.GetServerInfo"
"""The rpc with which a client asks whether the server can open its shared memory."""

_PAUSE = 0.05
"""Seconds without a part after which a client of `_CONVERSATION` is taken to wait for an answer."""


class CallInterceptor(grpc.aio.ServerInterceptor):
    """Admits each rpc as a call, and turns exceptions of the services into statuses.

    Args:
        calls: admits the calls.
        memory: shared memory of clients on this machine; None to refuse it.
    """

    def __init__(self, calls: Calls, memory: OpenBlocks | None = None) -> None:
        self._calls = calls
        self._memory = memory if AVAILABLE else None
        self._handlers: dict[str, Any] = {}

    async def intercept_service(
        self,
        continuation: Callable[[grpc.HandlerCallDetails], Awaitable[Any]],
        handler_call_details: grpc.HandlerCallDetails,
    ) -> Any:
        method = handler_call_details.method
        if (known := self._handlers.get(method)) is not None:
            return known
        handler = await continuation(handler_call_details)
        if handler is None or not method.startswith(_OURS):
            return handler
        found = self._handlers[method] = self._guarded(method, handler)
        return found

    def _guarded(self, method: str, handler: Any) -> Any:
        """Wrap the handler of a revolute method: admit the call, decode the request, handle errors.

        Args:
            method: path of the method.
            handler: the handler of the service.
        """
        kinds: dict[tuple[bool, bool], tuple[Callable[..., Any], Any]] = {
            (False, False): (grpc.unary_unary_rpc_method_handler, handler.unary_unary),
            (True, False): (grpc.stream_unary_rpc_method_handler, handler.stream_unary),
            (False, True): (grpc.unary_stream_rpc_method_handler, handler.unary_stream),
            (True, True): (grpc.stream_stream_rpc_method_handler, handler.stream_stream),
        }
        build, inner = kinds[handler.request_streaming, handler.response_streaming]
        guard: Callable[..., Any] = _guard_stream if handler.response_streaming else _guard_unary
        name = method.removeprefix("/").replace("/", ".")
        reader = _Reader(name, self._calls, self._memory)
        # decode inside the guard, so that malformed bytes are reported as the client's error
        return build(guard(inner, reader, self._calls), response_serializer=_serialized)


class _Reader:
    """Decodes the requests of one method.

    Args:
        method: full name, e.g. "revolute.v1.TrajectoryService.Rollout".
        calls: checks that a worker will be free.
        memory: shared memory that may hold arrays; None to refuse it.
    """

    def __init__(self, method: str, calls: Calls, memory: OpenBlocks | None) -> None:
        self.verb = f"/{method}".removeprefix(_OURS)
        rpc = descriptor_pool.Default().FindMethodByName(method)
        self._type = message_factory.GetMessageClass(rpc.input_type)
        self._streaming = rpc.client_streaming
        self.streams_both_ways = rpc.client_streaming and rpc.server_streaming
        self._calls = calls
        # the server writes a segment before the client has read the last one, so they cannot share memory
        self.memory = memory if self.verb != "TrajectoryService.StreamRollout" else None

    def read(self, request: Any) -> Any:
        """Return the request, or the stream of its parts.

        Raises:
            ArgumentError: the bytes are not a valid message; for a stream, raised when the part is read.
            LimitError: the queue for workers is full; for a stream, raised when the first part is read.
        """
        return self._parts(request) if self._streaming else self._message(request)

    async def _parts(self, stream: AsyncIterator[bytes]) -> AsyncIterator[ReceivedPart]:
        first = True
        async for content in stream:
            if first:
                first = False
                await self._check_room(stream)
            yield ReceivedPart(self._message(content), len(content))

    async def _check_room(self, stream: AsyncIterator[bytes]) -> None:
        """Refuse a streamed request after its first part if the queue for workers is full.

        The other parts are read and dropped first: some clients, such as grpc.aio, report INTERNAL when the
        answer comes while they still send.
        """
        try:
            self._calls.check_room()
        except RevoluteError:
            pause = _PAUSE if self.verb == _CONVERSATION else None
            with contextlib.suppress(StopAsyncIteration, asyncio.TimeoutError):
                while True:
                    await within(pause, anext(stream))
            raise

    def _message(self, content: bytes) -> Any:
        try:
            return self._type.FromString(content)
        except DecodeError:
            raise ArgumentError.expected(
                "request", f"a message of {self.verb}", f"{len(content)} bytes that are none"
            ) from None


def _serialized(answer: Message) -> bytes:
    return answer.SerializeToString()


def _guard_unary(
    inner: Callable[..., Awaitable[Any]], reader: _Reader, calls: Calls
) -> Callable[..., Awaitable[Any]]:
    async def guarded(request: Any, context: grpc.aio.ServicerContext) -> Any:
        headers = metadata_of(context)
        with _opened(calls, reader.verb, context, headers) as call:
            try:
                _admit(call, calls, reader, headers, context)
                return await inner(reader.read(request), context)
            except (Exception, asyncio.CancelledError) as error:
                return await _abort(context, _reported_error(error, calls), call)

    return guarded


def _guard_stream(
    inner: Callable[..., AsyncGenerator[Any, None]], reader: _Reader, calls: Calls
) -> Callable[..., Awaitable[None]]:
    async def guarded(request: Any, context: grpc.aio.ServicerContext) -> None:
        headers = metadata_of(context)
        with _opened(calls, reader.verb, context, headers) as call:
            try:
                _admit(call, calls, reader, headers, context)
                async with contextlib.aclosing(inner(reader.read(request), context)) as parts:
                    # not `yield`: a call that is cancelled while it sends would skip the handlers below
                    async for part in parts:
                        await context.write(part)
            except (Exception, asyncio.CancelledError) as error:
                await _abort(context, _reported_error(error, calls), call)

    return guarded


@contextmanager
def _opened(
    calls: Calls, verb: str, context: grpc.aio.ServicerContext, headers: Mapping[str, str]
) -> Iterator[Call]:
    host, seconds = host_of(context.peer()), context.time_remaining()
    opened = calls.open("grpc", headers, verb, host=host, seconds=seconds)
    with opened as call, calls.cancelled_at_the_end():
        context.set_trailing_metadata(((CALL_ID_HEADER, call.id),))
        try:
            yield call
        finally:
            if (offer := current_offer()) is not None:
                offer.close()


def _admit(
    call: Call, calls: Calls, reader: _Reader, headers: Mapping[str, str], context: grpc.aio.ServicerContext
) -> None:
    """Admit a call, and record the shared memory that its client offers."""
    calls.admit(call, headers.get("authorization"))
    if reader.streams_both_ways and _PARTS_HEADER in headers:
        raise ArgumentError.expected(
            _PARTS_HEADER, "nothing", repr(headers[_PARTS_HEADER])[:80], advice="call again without it"
        )
    offered = headers.get(HEADER)
    if offered is None:
        return
    offer = Offer(offered, reader.memory if _is_local(context.peer()) else None)
    set_offer(offer)
    if reader.verb == _INFO and offer.is_open():
        context.set_trailing_metadata(((CALL_ID_HEADER, call.id), (HEADER, OPENED)))


def metadata_of(context: grpc.aio.ServicerContext) -> dict[str, str]:
    """Return the text metadata of a call by lower-case name."""
    return {key: value for key, value in context.invocation_metadata() or () if isinstance(value, str)}


def host_of(peer: str) -> str:
    """Return the host in gRPC's name of a peer, e.g. "ipv4:127.0.0.1:40000" or "ipv6:%5B::1%5D:4"."""
    kind, _, address = peer.partition(":")
    return unquote(address.rpartition(":")[0]).strip("[]") if kind in ("ipv4", "ipv6") else kind


def _is_local(peer: str) -> bool:
    """Tell whether a peer is on this machine, by gRPC's name of it."""
    host = host_of(peer)
    return host in ("unix", "::1") or host.startswith("127.")


def _reported_error(error: BaseException, calls: Calls) -> Exception:
    """Return the error to report to the client.

    Raises:
        CancelledError: the client has cancelled the call.
    """
    if isinstance(error, Exception):
        return error
    if not calls.ending:
        raise error
    return stopping()


async def _abort(context: grpc.aio.ServicerContext, error: Exception, call: Call) -> None:
    if isinstance(error, grpc.aio.AbortError):
        raise error
    found = public_error(error, call.verb)
    found.call_id = call.id
    kind = kind_of(found)
    call.reason, call.message = kind.reason, found.message
    trailing = ((CALL_ID_HEADER, call.id), (DETAILS_KEY, encode_status(found)))
    await context.abort(grpc.StatusCode[kind.grpc_code], found.message, trailing)

"""The interceptor that admits gRPC calls, decodes their requests, and turns errors into statuses.

A status is a code, with google.rpc.Status and ErrorInfo in the trailing metadata.
"""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator, Mapping
from contextlib import contextmanager
from typing import Any, TypeVar
from urllib.parse import unquote

import grpc
from google.protobuf import descriptor_pool, message_factory
from google.protobuf.message import DecodeError, Message

from revolute.contract.codec.shared_memory import AVAILABLE, HEADER, OPENED
from revolute.contract.codec.status import DETAILS_KEY, encode_status
from revolute.contract.errors import ArgumentError, LimitError, RevoluteError, kind_of

from ..access.admission import CALL_ID_HEADER, Calls
from ..access.call import Call
from ..compute.memory_budget import MemoryBudget
from ..observe.incidents import public_error, stopping
from ..settings import Settings
from ..time_limit import within
from .client import Client, UnreadError
from .connections import LARGEST_PART
from .messages import ReceivedPart
from .offered_memory import Offer, OpenBlocks, current_offer, set_offer
from .waits import Peers

Result = TypeVar("Result")

_OURS = "/revolute.v1."

_CONVERSATION = "TrajectoryService.ValueAndGradient"
"""The rpc whose client may wait for an answer before it ends its request."""

_PARTS_HEADER = "x-parts"
"""Metadata with which older clients ask for an answer in one part; when it is refused, they call again
without it."""

_CALL_BYTES, _CALLS_SHARE, _FEWEST_CALLS = 32 * 1024, 4, 1024
"""Bytes of memory that a call takes besides its arrays, the part of `--memory` that calls may take so, and
the number of calls that may always be under way."""

_RETRY_SECONDS = 0.5
"""Time after which a call that is one too many may be repeated."""

_MOST_WATCHES = 1024
"""Number of calls of health and reflection with streams of answers."""

_LARGEST_FOREIGN = 16 * 1024
"""Most bytes of a message to health and reflection."""

_INFO = "ServerService.GetServerInfo"
"""The rpc with which a client asks whether the server can open its shared memory."""

_PAUSE = 0.05
"""Seconds without a part after which a client of `_CONVERSATION` is taken to wait for an answer."""


class CallInterceptor(grpc.aio.ServerInterceptor):
    """Runs each rpc of a revolute service as a call, and turns exceptions into statuses.

    gRPC sees every method as one with streams in both directions, which are the same bytes. So a caller is
    admitted before its request is read, and all waits for clients have limits.

    Args:
        calls: admits the calls.
        settings: has the time limits.
        budget: counts the memory of calls and of unfinished messages.
        peers: records the calls of each connection.
        memory: shared memory of clients on this machine; None to refuse it.
    """

    def __init__(
        self,
        calls: Calls,
        settings: Settings,
        budget: MemoryBudget,
        peers: Peers,
        memory: OpenBlocks | None = None,
    ) -> None:
        self._calls = calls
        self._settings = settings
        self._budget = budget
        self._peers = peers
        self._memory = memory if AVAILABLE else None
        self._handlers: dict[str, Any] = {}
        self._watches = 0

    async def intercept_service(
        self,
        continuation: Callable[[grpc.HandlerCallDetails], Awaitable[Any]],
        handler_call_details: grpc.HandlerCallDetails,
    ) -> Any:
        method = handler_call_details.method
        if (known := self._handlers.get(method)) is not None:
            return known
        handler = await continuation(handler_call_details)
        if handler is None:
            return None
        is_ours = method.startswith(_OURS)
        found = self._handlers[method] = grpc.stream_stream_rpc_method_handler(
            self._guarded(method, handler) if is_ours else self._bounded(handler),
            # requests are decoded in the guard, so that malformed bytes are reported as the client's error
            response_serializer=_serialized if is_ours else handler.response_serializer,
        )
        return found

    def _guarded(self, method: str, handler: Any) -> Callable[..., Awaitable[None]]:
        """Return the behaviour of a revolute method: admit the call, decode the request, handle errors.

        Args:
            method: path of the method.
            handler: the handler of the service.
        """
        reader = _Reader(method, self._calls, self._memory)
        inner = _behaviour(handler)

        async def guarded(_stream: object, context: grpc.aio.ServicerContext) -> None:
            headers = metadata_of(context)
            with _opened(self._calls, reader.verb, context, headers) as call:
                try:
                    self._check_number()
                    with self._peers.working(context.peer()):
                        _admit(call, self._calls, reader, headers, context)
                        client = self._client(context, is_conversation=reader.verb == _CONVERSATION)
                        await inner(await reader.read(client), client)
                except UnreadError as error:
                    call.reason, call.message = error.reason, error.message
                    # no status: it would wait behind bytes that the client does not read
                    self._peers.unread.add(context.peer())
                    raise asyncio.CancelledError from None
                except (Exception, asyncio.CancelledError) as error:
                    await _abort(context, _reported_error(error, self._calls), call)

        return guarded

    def _bounded(self, handler: Any) -> Callable[..., Awaitable[None]]:
        """Return the behaviour of a method of health or reflection, which everybody may call."""
        inner = _behaviour(handler)

        async def bounded(_stream: object, context: grpc.aio.ServicerContext) -> None:
            try:
                with self._peers.working(context.peer()), self._watch(handler):
                    client = self._client(context)
                    messages = _decoded(client, handler.request_deserializer)
                    request = messages if handler.request_streaming else await _only(messages)
                    await client.take(inner(request, context), handler.response_streaming)
            except UnreadError:
                self._peers.unread.add(context.peer())
                raise asyncio.CancelledError from None
            except RevoluteError as error:
                await context.abort(grpc.StatusCode[kind_of(error).grpc_code], error.message)

        return bounded

    def _check_number(self) -> None:
        """Refuse a call if those under way take too much memory besides their arrays.

        They do not count in the budget: a call that deletes must be possible when it is full.

        Raises:
            LimitError: there are too many calls.
        """
        most = max(_FEWEST_CALLS, self._budget.limit // _CALLS_SHARE // _CALL_BYTES)
        if self._calls.running > most:
            raise LimitError(
                f"calls: expected at most {most} calls under way, got one more; call again later, or start "
                "the server with a larger --memory",
                argument="calls",
                retry_after=_RETRY_SECONDS,
            )

    @contextmanager
    def _watch(self, handler: Any) -> Iterator[None]:
        """Count a call of health or reflection if it may last.

        Raises:
            LimitError: there are too many.
        """
        if not handler.response_streaming:
            yield
            return
        if self._watches >= _MOST_WATCHES:
            raise LimitError.expected(
                "calls", f"at most {_MOST_WATCHES} of health and reflection", "one more"
            )
        self._watches += 1
        try:
            yield
        finally:
            self._watches -= 1

    def _client(self, context: grpc.aio.ServicerContext, *, is_conversation: bool = False) -> Client:
        pause = "idle_timeout" if is_conversation else "body_timeout"
        return Client(context, self._budget, self._peers, self._settings, pause, LARGEST_PART)


def _behaviour(handler: Any) -> Callable[..., Any]:
    """Return the function of a handler of any kind."""
    found: Callable[..., Any] = (
        handler.unary_unary or handler.unary_stream or handler.stream_unary or handler.stream_stream
    )
    return found


async def _decoded(parts: AsyncIterator[bytes], decode: Callable[[bytes], Any] | None) -> AsyncIterator[Any]:
    async for part in parts:
        if len(part) > _LARGEST_FOREIGN:
            raise LimitError.expected("request", f"at most {_LARGEST_FOREIGN} bytes", len(part))
        try:
            yield decode(part) if decode else part
        except DecodeError:
            raise _no_message("this method", len(part)) from None


async def _only(messages: AsyncIterator[Result]) -> Result:
    """Return the only message of a request.

    Raises:
        ArgumentError: there is none.
    """
    async for message in messages:
        return message
    raise ArgumentError.expected("request", "a message", "none")


def _serialized(answer: Message | bytes) -> bytes:
    return answer if isinstance(answer, bytes) else answer.SerializeToString()


def _no_message(verb: str, size: int) -> ArgumentError:
    return ArgumentError.expected("request", f"a message of {verb}", f"{size} bytes that are none")


class _Reader:
    """Decodes the requests of one method.

    Args:
        method: its path, e.g. "/revolute.v1.TrajectoryService/Rollout".
        calls: checks that a worker will be free.
        memory: shared memory that may hold arrays; None to refuse it.
    """

    def __init__(self, method: str, calls: Calls, memory: OpenBlocks | None) -> None:
        name = method.removeprefix("/").replace("/", ".")
        self.verb = f"/{name}".removeprefix(_OURS)
        rpc = descriptor_pool.Default().FindMethodByName(name)
        self._type = message_factory.GetMessageClass(rpc.input_type)
        self._streaming = rpc.client_streaming
        self.streams_both_ways = rpc.client_streaming and rpc.server_streaming
        self._calls = calls
        # the server writes a segment before the client has read the last one, so they cannot share memory
        self.memory = memory if self.verb != "TrajectoryService.StreamRollout" else None

    async def read(self, parts: AsyncIterator[bytes]) -> Any:
        """Return the request, or the stream of its parts.

        Raises:
            ArgumentError: the bytes are not a valid message; for a stream, raised when the part is read.
            LimitError: the queue for workers is full; for a stream, raised when the first part is read.
        """
        return _Parts(self, parts) if self._streaming else self.message(await _only(parts))

    async def check_room(self, stream: AsyncIterator[bytes]) -> None:
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

    def message(self, content: bytes) -> Any:
        """Decode a message or a part of one.

        Raises:
            ArgumentError: the bytes are not valid.
        """
        try:
            return self._type.FromString(content)
        except DecodeError:
            raise _no_message(self.verb, len(content)) from None


class _Parts:
    """The decoded parts of a streamed request.

    Args:
        reader: decodes them.
        stream: their bytes.
    """

    def __init__(self, reader: _Reader, stream: AsyncIterator[bytes]) -> None:
        self._reader = reader
        self._stream = stream
        self._is_begun = False

    def __aiter__(self) -> _Parts:
        return self

    async def __anext__(self) -> ReceivedPart:
        content = await anext(self._stream)
        if not self._is_begun:
            self._is_begun = True
            await self._reader.check_room(self._stream)
        return ReceivedPart(self._reader.message(content), len(content))


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
            _PARTS_HEADER,
            "no such metadata, because every answer comes in parts",
            repr(headers[_PARTS_HEADER])[:80],
            advice="call again without it",
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
    # gRPC's own error refers to this one, and to itself in a cycle: the arrays in the frames of the traceback
    # would stay until the next garbage collection
    error.__traceback__ = error.__context__ = error.__cause__ = None
    await context.abort(grpc.StatusCode[kind.grpc_code], found.message, trailing)

"""The gRPC transport: turns messages into documents, calls the verbs, and turns the answers back."""

from __future__ import annotations

import contextlib
import functools
from collections.abc import AsyncGenerator, Callable, Iterator
from typing import Any

import grpc
from google.protobuf.message_factory import GetMessageClass
from grpc_health.v1 import health, health_pb2, health_pb2_grpc
from grpc_reflection.v1alpha import reflection

from revolute.contract.codec.documents import read_message
from revolute.contract.errors import ArgumentError
from revolute.contract.v1 import trajectory_pb2
from revolute.contract.verbs import VERBS, Verb

from ..access.admission import Calls
from ..answers import Document, document_bytes
from ..compute.memory_budget import Reservation
from ..verbs import Verbs
from .connections import SilenceLimit, connection_options
from .interceptor import CallInterceptor
from .messages import receive, send, whole
from .offered_memory import OpenBlocks

_MOST = 2**31 - 1
"""Largest value of an option of gRPC."""

CHANNEL_OPTIONS = (
    # a client may send a part or two ahead of what was read: large arrays come in half the time
    ("grpc.http2.lookahead_bytes", 1024**2),
    # read in pieces of 8 KiB, as is the default, an array costs its reader twice the time
    ("grpc.experimental.tcp_read_chunk_size", 256 * 1024),
    # a second server on the same port is an error, not a silent sharing of its calls
    ("grpc.so_reuseport", 0),
    # by default calls that the event loop has not come to yet are dropped, as CANCELLED, when there are a
    # thousand of them or after 30 s; here each gets an answer or a reason, or reaches its deadline
    ("grpc.server.max_pending_requests", _MOST),
    ("grpc.server.max_pending_requests_hard_limit", _MOST),
    ("grpc.server_max_unrequested_time_in_server", _MOST),
    # clients may ping idle connections every 15 s, so that a dead peer is noticed
    ("grpc.http2.min_recv_ping_interval_without_data_ms", 15_000),
    ("grpc.keepalive_permit_without_calls", 1),
)

_LARGEST_PART = ("grpc.max_receive_message_length", 2 * 1024**2)
"""Parts are at most 1 MiB. Protobuf parses 2 MiB of the worst kind in 50 ms, in which nothing else runs."""

SERVICES = tuple(dict.fromkeys(verb.method.containing_service.full_name for verb in VERBS.values()))


class Health:
    """`grpc.health.v1` for the server as a whole and for each service."""

    def __init__(self, server: grpc.aio.Server) -> None:
        self._servicer = health.aio.HealthServicer()
        health_pb2_grpc.add_HealthServicer_to_server(self._servicer, server)

    async def set_serving(self, serving: bool) -> None:
        """Report every service as serving or not."""
        names = health_pb2.HealthCheckResponse
        status = names.SERVING if serving else names.NOT_SERVING
        for service in ("", *SERVICES):
            await self._servicer.set(service, status)


def create_server(
    verbs: Verbs, calls: Calls, memory: OpenBlocks | None = None
) -> tuple[grpc.aio.Server, Health]:
    """Build the gRPC server with all services, health and reflection; it is not yet bound to an address.

    Args:
        verbs: what it does.
        calls: the calls of all listeners.
        memory: what clients on this machine share with us; None where they shall not.
    """
    settings = verbs.service.settings
    server = grpc.aio.server(
        interceptors=[CallInterceptor(calls, memory), SilenceLimit(settings)],
        options=(*CHANNEL_OPTIONS, *connection_options(settings), _LARGEST_PART),
    )
    server.add_generic_rpc_handlers(tuple(_Services(verbs).handlers()))
    reported = Health(server)
    reflection.enable_server_reflection((*SERVICES, health.SERVICE_NAME, reflection.SERVICE_NAME), server)
    return server, reported


class _Services:
    """The rpcs of all services over the verbs.

    Args:
        verbs: what they do.
    """

    def __init__(self, verbs: Verbs) -> None:
        self._verbs = verbs

    def handlers(self) -> Iterator[grpc.GenericRpcHandler]:
        """Yield what serves each service."""
        for service in SERVICES:
            rpcs = {
                verb.method.name: self._handler(verb)
                for verb in VERBS.values()
                if verb.method.containing_service.full_name == service
            }
            yield grpc.method_handlers_generic_handler(service, rpcs)

    def _handler(self, verb: Verb) -> grpc.RpcMethodHandler:
        """Return the handler of one rpc."""
        special = {"StreamRollout": self._segments, "ValueAndGradient": self._value_and_gradient}
        streams = verb.method.client_streaming, verb.method.server_streaming
        answer = special.get(verb.name, self._parts if verb.method.server_streaming else self._whole)
        return _BUILD[streams](functools.partial(answer, verb))

    async def _whole(self, verb: Verb, request: Any, _context: Any) -> Any:
        """Answer with one message."""
        with self._memory() as memory:
            document = await self._verbs.call(verb, await self._document(verb, request, memory))
        message = GetMessageClass(verb.method.output_type)()
        return whole(message, {verb.wrapped_in: document} if verb.wrapped_in else document)

    async def _parts(self, verb: Verb, request: Any, _context: Any) -> AsyncGenerator[Any, None]:
        """Answer with a message in parts.

        The answer's arrays are counted while they are sent, unless they are those of a kept trajectory with
        all its states.
        """
        undo = self._verbs.undo(verb)
        with self._memory() as memory:
            document = await self._verbs.call(verb, await self._document(verb, request, memory))
            try:
                if document.get("checkpoints") != "every":
                    memory.grow(document_bytes(document))
                async for part in self._send(verb, document):
                    yield part
            except BaseException:
                if undo is not None:
                    undo(document)
                raise

    async def _segments(self, verb: Verb, parts: Any, _context: Any) -> AsyncGenerator[Any, None]:
        """Answer with segments, and at last the end of the trajectory."""
        part_type = GetMessageClass(verb.method.output_type)
        with self._memory() as memory:
            request = await self._document(verb, parts, memory)
            async with contextlib.aclosing(self._verbs.stream(verb, request)) as pieces:
                async for piece in pieces:
                    if "trajectory_id" not in piece:
                        async for part in self._send(verb, piece):
                            yield part
                        continue
                    try:
                        yield part_type(end=whole(trajectory_pb2.RolloutEnd(), piece))
                    except BaseException:
                        self._verbs.undo_rollout(piece)
                        raise

    async def _value_and_gradient(self, verb: Verb, parts: Any, _context: Any) -> AsyncGenerator[Any, None]:
        """Answer for a loss that is given, or else in a conversation."""
        with self._memory() as memory:
            request = await self._one(parts, memory)
            answers = self._given_loss if "loss" in request else self._own_loss
            async with contextlib.aclosing(answers(verb, request, parts, memory)) as answer:
                async for part in answer:
                    yield part

    async def _given_loss(
        self, verb: Verb, request: dict[str, Any], parts: Any, memory: Reservation
    ) -> AsyncGenerator[Any, None]:
        """Answer with the loss and its gradient."""
        async for _ in parts:
            raise ArgumentError.expected("part", "the end of the stream", "one part more")
        document = await self._verbs.call(verb, _with_default_words(request))
        memory.grow(document_bytes(document))
        async for part in self._send(verb, document):
            yield part

    async def _own_loss(
        self, verb: Verb, request: dict[str, Any], parts: Any, memory: Reservation
    ) -> AsyncGenerator[Any, None]:
        """Send the trajectory, wait for the client's cotangents, and answer with the gradient."""
        async with self._verbs.own_loss(request) as (trajectory, differentiate):
            async for part in self._send(verb, trajectory, "trajectory"):
                yield part
            cotangents = await self._one(parts, memory, "cotangents")
            for name in ("trajectory_id", "wrt"):
                if cotangents.pop(name):
                    raise ArgumentError.expected(f"cotangents.{name}", "nothing", "a value")
            document = await differentiate(cotangents)
            memory.grow(document_bytes(document))
            async for part in self._send(verb, document):
                yield part

    def _memory(self) -> Reservation:
        """Count the memory of a request and its answer; nothing yet."""
        return self._verbs.service.budget.reserve("a request")

    async def _document(self, verb: Verb, request: Any, memory: Reservation) -> dict[str, Any]:
        """Read a request, whole or in parts."""
        if not verb.method.client_streaming:
            return read_message(request, {})
        found = await receive(request, memory, self._verbs.service.settings)
        return {**found, "text": _text(found.get("text", b""))} if verb.name == "RegisterModel" else found

    async def _one(self, parts: Any, memory: Reservation, first: str = "start") -> dict[str, Any]:
        """Read one message of a stream that goes on after it."""
        return await receive(parts, memory, self._verbs.service.settings, first, to_end=False)

    def _send(self, verb: Verb, document: Document, first: str = "start") -> AsyncGenerator[Any, None]:
        """Write a message of an answer part by part; `first` names the field that begins it."""
        output = verb.method.output_type
        message = output.fields_by_name[first].message_type
        assert message is not None
        start = GetMessageClass(message)()
        return send(GetMessageClass(output), start, document, self._verbs.service.telemetry, first)


_BUILD: dict[tuple[bool, bool], Callable[..., grpc.RpcMethodHandler]] = {
    (False, False): grpc.unary_unary_rpc_method_handler,
    (True, False): grpc.stream_unary_rpc_method_handler,
    (False, True): grpc.unary_stream_rpc_method_handler,
    (True, True): grpc.stream_stream_rpc_method_handler,
}
"""By whether request and answer are streams."""


def _text(content: bytes) -> str:
    """Return a model's text, which is sent as bytes."""
    try:
        return content.decode("utf-8")
    except UnicodeDecodeError as error:
        found = f"byte {content[error.start]:#04x}"
        raise ArgumentError.expected("text", "a file in UTF-8", found, at=f"byte {error.start}") from None


def _with_default_words(request: dict[str, Any]) -> dict[str, Any]:
    """Leave out the words of a loss that were not set; the protocol has the empty string for that."""
    for term in request.get("loss", {}).get("terms", ()):
        for word in ("when", "form"):
            if not term[word]:
                del term[word]
    return request

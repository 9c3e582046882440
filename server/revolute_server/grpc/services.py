"""The gRPC services: turn messages into documents, call the verbs, and turn the answers into messages."""

from __future__ import annotations

import contextlib
import functools
from collections.abc import Iterator
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
from .client import Client
from .connections import LARGEST_PART, connection_options
from .interceptor import CallInterceptor
from .messages import receive, send, whole
from .offered_memory import OpenBlocks
from .waits import Peers

_MOST = 2**31 - 1
"""Largest value of a gRPC option."""

_CHANNEL_OPTIONS = (
    # let clients send a part or two ahead: large arrays arrive in half the time
    ("grpc.http2.lookahead_bytes", 1024**2),
    # a part counts as sent when the client has taken it; by default gRPC buffers 64 KiB of each call
    ("grpc.http2.write_buffer_size", 0),
    # the default of 8 KiB doubles the time to read an array
    ("grpc.experimental.tcp_read_chunk_size", 256 * 1024),
    # by default gRPC cancels calls that the event loop has not started after 30 s, or beyond a thousand; with
    # these options each call gets an answer or an error, or reaches its deadline
    ("grpc.server.max_pending_requests", _MOST),
    ("grpc.server.max_pending_requests_hard_limit", _MOST),
    ("grpc.server_max_unrequested_time_in_server", _MOST),
    # clients may ping idle connections every 15 s to notice a dead server
    ("grpc.http2.min_recv_ping_interval_without_data_ms", 15_000),
    ("grpc.keepalive_permit_without_calls", 1),
)


def channel_options(*, share_port: bool = False) -> tuple[tuple[str, int], ...]:
    """Return gRPC's options for a server; a second one on its port is an error unless both share it."""
    return (*_CHANNEL_OPTIONS, ("grpc.so_reuseport", int(share_port)))


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
    verbs: Verbs, calls: Calls, peers: Peers, memory: OpenBlocks | None = None, *, share_port: bool = False
) -> tuple[grpc.aio.Server, Health]:
    """Build the gRPC server with all services, health and reflection; it is not yet bound to an address.

    Args:
        verbs: carries out the rpcs.
        calls: admits the calls.
        peers: records the calls of each connection.
        memory: shared memory of clients on this machine; None to refuse it.
        share_port: whether other servers may listen on the same port, each with a part of the connections.
    """
    settings = verbs.service.settings
    largest = ("grpc.max_receive_message_length", LARGEST_PART)
    server = grpc.aio.server(
        interceptors=[CallInterceptor(calls, settings, verbs.service.budget, peers, memory)],
        options=(*channel_options(share_port=share_port), *connection_options(settings), largest),
    )
    server.add_generic_rpc_handlers(tuple(_Services(verbs).handlers()))
    reported = Health(server)
    reflection.enable_server_reflection((*SERVICES, health.SERVICE_NAME, reflection.SERVICE_NAME), server)
    return server, reported


class _Services:
    """The rpcs of all services.

    Args:
        verbs: carries out the rpcs.
    """

    def __init__(self, verbs: Verbs) -> None:
        self._verbs = verbs

    def handlers(self) -> Iterator[grpc.GenericRpcHandler]:
        """Yield the handler of each service."""
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
        answer = special.get(verb.name, self._parts if verb.method.server_streaming else self._whole)
        # the interceptor calls it with a decoded request and the client
        return grpc.stream_stream_rpc_method_handler(functools.partial(answer, verb))

    async def _whole(self, verb: Verb, request: Any, client: Client) -> None:
        """Answer with one message."""
        with self._memory() as memory:
            document = await self._verbs.call(verb, await self._document(verb, request, memory))
        message = GetMessageClass(verb.method.output_type)()
        await client.write(whole(message, {verb.wrapped_in: document} if verb.wrapped_in else document))

    async def _parts(self, verb: Verb, request: Any, client: Client) -> None:
        """Answer with a message in parts.

        The arrays of the answer count as memory in use while they are sent. Those of a kept trajectory with
        all states are counted already.
        """
        undo = self._verbs.undo(verb)
        with self._memory() as memory:
            document = await self._verbs.call(verb, await self._document(verb, request, memory))
            try:
                if document.get("checkpoints") != "every":
                    memory.grow(document_bytes(document))
                await self._send(client, verb, document)
            except BaseException:
                if undo is not None:
                    undo(document)
                raise

    async def _segments(self, verb: Verb, parts: Any, client: Client) -> None:
        """Answer with the segments of a rollout, then its RolloutEnd."""
        part_type = GetMessageClass(verb.method.output_type)
        with self._memory() as memory:
            request = await self._document(verb, parts, memory)
            async with contextlib.aclosing(self._verbs.stream(verb, request)) as pieces:
                async for piece in pieces:
                    if "trajectory_id" not in piece:
                        await self._send(client, verb, piece)
                        continue
                    try:
                        await client.write(part_type(end=whole(trajectory_pb2.RolloutEnd(), piece)))
                    except BaseException:
                        self._verbs.undo_rollout(piece)
                        raise

    async def _value_and_gradient(self, verb: Verb, parts: Any, client: Client) -> None:
        """Answer for the loss of the request; without one, ask the client for the loss's gradient."""
        with self._memory() as memory:
            request = await self._one(parts, memory)
            answer = self._given_loss if "loss" in request else self._client_loss
            await answer(verb, request, parts, client, memory)

    async def _given_loss(
        self, verb: Verb, request: dict[str, Any], parts: Any, client: Client, memory: Reservation
    ) -> None:
        """Answer with the loss and its gradient."""
        async for _ in parts:
            raise ArgumentError.expected("part", "the end of the stream", "one part more")
        document = await self._verbs.call(verb, _without_empty_fields(request))
        memory.grow(document_bytes(document))
        await self._send(client, verb, document)

    async def _client_loss(
        self, verb: Verb, request: dict[str, Any], parts: Any, client: Client, memory: Reservation
    ) -> None:
        """Send the trajectory, wait for the client's cotangents, and answer with the gradient."""
        async with self._verbs.client_loss(request) as (trajectory, differentiate):
            await self._send(client, verb, trajectory, "trajectory")
            cotangents = await self._one(parts, memory, "cotangents")
            for name in ("trajectory_id", "wrt", "gradient"):
                if cotangents.pop(name):
                    raise ArgumentError.expected(f"cotangents.{name}", "nothing", "a value")
            document = await differentiate(cotangents)
            memory.grow(document_bytes(document))
            await self._send(client, verb, document)

    def _memory(self) -> Reservation:
        """Return an empty reservation for the memory of a request and its answer."""
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

    async def _send(self, client: Client, verb: Verb, document: Document, first: str = "start") -> None:
        """Write a message of an answer part by part; `first` names the field of its first part."""
        output = verb.method.output_type
        message = output.fields_by_name[first].message_type
        assert message is not None
        start = GetMessageClass(message)()
        await send(
            client.write, GetMessageClass(output), start, document, self._verbs.service.telemetry, first
        )


def _text(content: bytes) -> str:
    """Decode a model's text, which is sent as bytes."""
    try:
        return content.decode("utf-8")
    except UnicodeDecodeError as error:
        found = f"byte {content[error.start]:#04x}"
        raise ArgumentError.expected("text", "a file in UTF-8", found, at=f"byte {error.start}") from None


def _without_empty_fields(request: dict[str, Any]) -> dict[str, Any]:
    """Remove the fields `when` and `form` of loss terms that are empty, which means "not set"."""
    for term in request.get("loss", {}).get("terms", ()):
        for field in ("when", "form"):
            if not term[field]:
                del term[field]
    return request

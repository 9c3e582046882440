"""The gRPC transport: one channel, blocking calls, large arrays as streams of parts."""

from __future__ import annotations

import functools
import itertools
import os
import queue
from collections.abc import Callable, Iterator, Mapping
from typing import Any

# grpc reads this variable on import. Without it, new channels of a forked child use the parent's descriptors
os.environ.setdefault("GRPC_ENABLE_FORK_SUPPORT", "1")

import grpc
import grpc.experimental
from google.protobuf import message_factory
from google.protobuf.message import Message

from ..contract.codec import documents, parts
from ..contract.codec.heap import keep_freed_memory
from ..contract.codec.shared_memory import HEADER, OPENED, SHARED_FROM, SharedMemory, array_bytes, shared
from ..contract.codec.status import DETAILS_KEY, decode_status
from ..contract.errors import ArgumentError, InternalError, LimitError, RevoluteError
from ..contract.verbs import VERBS, Verb
from .deadline import Deadline
from .network import (
    Address,
    Credentials,
    closed_during_call,
    deadline_exceeded,
    missing_verb,
    not_a_server,
    trace_headers,
    unreachable,
)
from .offered_memory import OfferedMemory

_OPTIONS = (
    # detect a dead server: ping every 30 s during a call, and wait 10 s for the answer
    ("grpc.keepalive_time_ms", 30_000),
    ("grpc.keepalive_timeout_ms", 10_000),
    # keep pinging while the server computes and sends no data
    ("grpc.http2.max_pings_without_data", 0),
    # the default of 8 KiB doubles the time to read an array
    ("grpc.experimental.tcp_read_chunk_size", 256 * 1024),
    # reconnect soon after a server's restart; by default the pauses grow to two minutes
    ("grpc.initial_reconnect_backoff_ms", 100),
    ("grpc.max_reconnect_backoff_ms", 2_000),
    # the calling thread waits for the answer, without an extra thread per call
    (grpc.experimental.ChannelOptions.SingleThreadedUnaryStream, 1),
)

_OWN_CONNECTIONS = ("grpc.use_local_subchannel_pool", 1)
"""Channel option for forked processes. By default, channels to one server share a connection. If grpc was
imported before the variable above was set, a forked child would share its parent's connection, and calls
would fail with "Wrong file descriptor generation"."""

_PROCESS = os.getpid()
"""Process that imported grpc; any other process is a fork of it."""


class GrpcTransport:
    """Carries verbs over gRPC.

    Args:
        address: the server.
        timeout: time limit of one call in s; None for no limit.
        credentials: token and TLS files.
    """

    def __init__(self, address: Address, *, timeout: float | None, credentials: Credentials) -> None:
        self.address = address.text
        self._where = address
        self._timeout = timeout
        self._closed = False
        keep_freed_memory()
        token = credentials.token
        self._metadata = (("authorization", f"Bearer {token}"),) if token else ()
        options = (*_OPTIONS, ("grpc.enable_http_proxy", 0)) if address.is_loopback else _OPTIONS
        if os.getpid() != _PROCESS:
            options = (*options, _OWN_CONNECTIONS)
        if address.scheme == "grpcs":
            files = (credentials.read(name) for name in ("ca", "key", "cert"))
            self._channel = grpc.secure_channel(address.netloc, grpc.ssl_channel_credentials(*files), options)
        else:
            self._channel = grpc.insecure_channel(address.netloc, options)
        # not a bound method: it would keep an unused transport, and its connection, alive
        ask = functools.partial(_can_open, self._channel, self._metadata)
        self._memory = OfferedMemory(ask, address.is_loopback)
        self._methods = {name: _Method(self._channel, verb, self._memory) for name, verb in VERBS.items()}

    def call(self, verb: str, document: Mapping[str, Any], *, timeout: float | None = None) -> dict[str, Any]:
        """Carry out one verb; see `Transport.call`."""
        deadline = Deadline(self._timeout if timeout is None else timeout)
        method = self._methods[verb]
        answer = self._with_fallback(
            verb, deadline, lambda: method.call(document, deadline, self._call_metadata())
        )
        wrapped_in = VERBS[verb].wrapped_in
        return answer[wrapped_in] if wrapped_in else answer

    def stream(self, verb: str, document: Mapping[str, Any]) -> Iterator[dict[str, Any]]:
        """Carry out a streaming verb; see `Transport.stream`."""
        try:
            yield from self._methods[verb].stream(document, self._timeout, self._call_metadata())
        except grpc.RpcError as error:
            raise self._error(error, verb, self._timeout) from None

    def custom_loss(
        self, document: Mapping[str, Any], respond: Callable[[dict[str, Any]], Mapping[str, Any]]
    ) -> dict[str, Any]:
        """Differentiate a Python loss function in one call; see `Transport.custom_loss`."""
        method = self._methods["ValueAndGradient"]
        deadline = Deadline(self._timeout)
        return self._with_fallback(
            "ValueAndGradient",
            deadline,
            lambda: method.converse(
                document, "trajectory", "cotangents", respond, deadline, self._call_metadata()
            ),
        )

    def close(self) -> None:
        """Close the channel."""
        self._closed = True
        self._memory.give_up()
        self._channel.close()

    def _with_fallback(
        self, verb: str, deadline: Deadline, attempt: Callable[[], dict[str, Any]]
    ) -> dict[str, Any]:
        """Make a call. If the server cannot read shared memory, repeat the call without it."""
        try:
            try:
                return attempt()
            except grpc.RpcError as error:
                raise self._error(error, verb, deadline.seconds) from None
        except ArgumentError as error:
            if error.argument != HEADER:
                raise
            self._memory.give_up()
        return self._with_fallback(verb, deadline, attempt)

    def _call_metadata(self) -> tuple[tuple[str, str], ...]:
        """Return the metadata of a call: the token and the trace context."""
        return (*self._metadata, *trace_headers().items())

    def _error(self, error: Any, verb: str, limit: float | None) -> RevoluteError:
        """Return the exception for a failed call."""
        for key, value in error.trailing_metadata() or ():
            if key == DETAILS_KEY and (known := decode_status(value)) is not None:
                return known
        code, details = error.code(), error.details() or ""
        if code == grpc.StatusCode.UNAVAILABLE:
            return unreachable(self._where, details)
        if code == grpc.StatusCode.DEADLINE_EXCEEDED:
            return deadline_exceeded(verb, limit)
        if code == grpc.StatusCode.UNIMPLEMENTED and verb != "GetServerInfo":
            return missing_verb(self._where, verb)
        if code in (grpc.StatusCode.UNIMPLEMENTED, grpc.StatusCode.UNKNOWN):
            return not_a_server(self._where, details or code.name)
        if code == grpc.StatusCode.CANCELLED:
            if self._closed:
                return closed_during_call(verb)
            # a stopping server cancels calls without details
            return unreachable(self._where, f"{verb} was cancelled there")
        if code == grpc.StatusCode.RESOURCE_EXHAUSTED:
            return LimitError(f"{verb}: expected a message within the limits, got {details}")
        return InternalError(f"{verb}: expected an answer, got {code.name} from {self.address} ({details})")


def _can_open(
    channel: grpc.Channel, metadata: tuple[tuple[str, str], ...], offer: str, seconds: float
) -> bool | None:
    """Ask the server whether it can open the offered memory; None if the request fails."""
    ask: Any = channel.unary_unary("/revolute.v1.ServerService/GetServerInfo")
    try:
        shown = (*metadata, *trace_headers().items(), (HEADER, offer))
        _, call = ask.with_call(b"", timeout=seconds, metadata=shown)
    except grpc.RpcError:
        return None
    return (HEADER, OPENED) in tuple(call.trailing_metadata() or ())


def _with_offer(metadata: tuple[tuple[str, str], ...], memory: SharedMemory | None) -> Any:
    """Add the offer of shared memory to a call's metadata."""
    return metadata if memory is None else (*metadata, (HEADER, memory.offer))


class _Method:
    """One rpc: its message types and calls."""

    def __init__(self, channel: grpc.Channel, verb: Verb, memory: OfferedMemory) -> None:
        method = verb.method
        self._channel = channel
        self._memory = memory
        self._path = f"/{method.containing_service.full_name}/{method.name}"
        self._request = message_factory.GetMessageClass(method.input_type)
        self._response = message_factory.GetMessageClass(method.output_type)
        self._streams_request = method.client_streaming
        self._streams_response = method.server_streaming
        self._large_answer = verb.large_answer
        self._callables: dict[str, Any] = {}

    def call(self, document: Mapping[str, Any], deadline: Deadline, metadata: Any) -> dict[str, Any]:
        """Send a document and return the answer's document."""
        start, values = self._fill(document)
        with self._memory.lent(self._shares_memory(values), deadline) as memory:
            first, rest = self._requests(start, values, memory)
            metadata = _with_offer(metadata, memory)
            kind = "unary" if rest is None else "stream"
            send = self._callable(kind, "stream" if self._streams_response else "unary")
            request = first if rest is None else itertools.chain([first], rest)
            answer = send(request, timeout=deadline.remaining(), metadata=metadata)
            if not self._streams_response:
                return documents.read_message(answer, parts.read_values(answer))
            try:
                return documents.read_message(*parts.assemble(answer, memory=memory))
            except BaseException:
                answer.cancel()
                raise

    def stream(
        self, document: Mapping[str, Any], timeout: float | None, metadata: Any
    ) -> Iterator[dict[str, Any]]:
        """Send a document and yield the answer's documents, the one of `end` last."""
        first, rest = self._requests(*self._fill(document))
        request = [first] if rest is None else itertools.chain([first], rest)
        answer = self._callable("stream", "stream")(iter(request), timeout=timeout, metadata=metadata)
        try:
            while (found := self._next_message(answer)) is not None:
                yield found
        finally:
            answer.cancel()

    def converse(
        self,
        document: Mapping[str, Any],
        question: str,
        reply: str,
        respond: Callable[[dict[str, Any]], Mapping[str, Any]],
        deadline: Deadline,
        metadata: Any,
    ) -> dict[str, Any]:
        """Send a document, answer the server's question about it, and return the server's answer.

        Args:
            document: the request.
            question: name of the field that begins the question.
            reply: name of the field that begins the reply.
            respond: returns the reply's document for the question's document.
            deadline: time limit of the whole exchange.
            metadata: metadata of the call.
        """
        start, values = self._fill(document)
        with self._memory.lent(True, deadline) as memory:
            first, rest = self._requests(start, values, memory)
            replies: queue.SimpleQueue[Iterator[Message]] = queue.SimpleQueue()

            def requests() -> Iterator[Message]:
                yield first
                yield from rest or ()
                yield from replies.get()

            call = self._callable("stream", "stream")
            answer = call(requests(), timeout=deadline.remaining(), metadata=_with_offer(metadata, memory))
            try:
                asked = self._next_message(answer, question, memory)
                if asked is None:
                    raise ArgumentError.expected("part", f"'{question}'", "an empty stream")
                # use shared memory only if the server has proved that it can: a retry would call respond
                # again
                used = memory if memory is not None and memory.was_read else None
                replies.put(self._message_parts(*self._fill(respond(asked), reply), used, reply))
                return documents.read_message(*parts.assemble(answer, memory=memory))
            finally:
                # end the request iterator, which may be waiting for a reply
                replies.put(iter(()))
                answer.cancel()

    def _shares_memory(self, values: Mapping[str, Any]) -> bool:
        """Return whether shared memory is likely to speed up a call with these arrays."""
        return self._streams_response and (self._large_answer or array_bytes(values) >= SHARED_FROM)

    def _next_message(
        self, received: Iterator[Any], first: str = "start", memory: SharedMemory | None = None
    ) -> dict[str, Any] | None:
        """Return the next document of a streamed answer, or None at its end."""
        assembler = parts.Assembler(first=first)
        for part in received:
            if part.WhichOneof("part") == "end":
                return documents.read_message(part.end, parts.read_values(part.end))
            assembler.feed(part)
            if assembler.shared_bytes:
                assembler.load(memory)
            if assembler.complete:
                return documents.read_message(*assembler.finish())
        return None

    def _fill(self, document: Mapping[str, Any], first: str = "start") -> tuple[Message, dict[str, Any]]:
        """Return the first (or only) message of a request, and its arrays by field path."""
        if self._streams_request:
            kind: Any = self._request.DESCRIPTOR.fields_by_name[first].message_type
            message = message_factory.GetMessageClass(kind)()
        else:
            message = self._request()
        return message, documents.fill_message(message, document)

    def _message_parts(
        self, message: Message, values: dict[str, Any], memory: SharedMemory | None, first: str = "start"
    ) -> Iterator[Message]:
        """Split a request message into parts."""
        return parts.to_parts(self._request, message, shared(message, values, memory), first=first)

    def _requests(
        self, start: Message, values: dict[str, Any], memory: SharedMemory | None = None
    ) -> tuple[Message, Iterator[Message] | None]:
        """Return the first part of a request, and the other parts or None."""
        if not self._streams_request:
            return start, None
        stream = self._message_parts(start, values, memory)
        first, second = next(stream), next(stream, None)
        return first, None if second is None else itertools.chain([second], stream)

    def _callable(self, request: str, response: str) -> Any:
        """Return the channel's callable. On the wire, a stream of one request equals a unary request, and the
        unary callable is faster."""
        kind = f"{request}_{response}"
        if kind not in self._callables:
            self._callables[kind] = getattr(self._channel, kind)(
                self._path,
                request_serializer=self._request.SerializeToString,
                response_deserializer=self._response.FromString,
            )
        return self._callables[kind]

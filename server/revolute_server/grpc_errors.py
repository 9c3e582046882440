"""Errors over gRPC: a status code, and google.rpc.Status with ErrorInfo in the trailing metadata."""

from __future__ import annotations

from collections.abc import AsyncIterator, Awaitable, Callable
from typing import Any

import grpc
from google.protobuf.message import DecodeError

from revolute.codec.status import DETAILS_KEY, encode_status
from revolute.errors import ArgumentError, kind_of

from .errors import public_error

_OURS = "/revolute.v1."


class ErrorInterceptor(grpc.aio.ServerInterceptor):
    """Turns what the services raise into statuses; the services themselves only raise."""

    async def intercept_service(
        self,
        continuation: Callable[[grpc.HandlerCallDetails], Awaitable[Any]],
        handler_call_details: grpc.HandlerCallDetails,
    ) -> Any:
        handler = await continuation(handler_call_details)
        method = handler_call_details.method
        if handler is None or not method.startswith(_OURS):
            return handler
        kinds: dict[tuple[bool, bool], tuple[Callable[..., Any], Any]] = {
            (False, False): (grpc.unary_unary_rpc_method_handler, handler.unary_unary),
            (True, False): (grpc.stream_unary_rpc_method_handler, handler.stream_unary),
            (False, True): (grpc.unary_stream_rpc_method_handler, handler.unary_stream),
            (True, True): (grpc.stream_stream_rpc_method_handler, handler.stream_stream),
        }
        build, inner = kinds[handler.request_streaming, handler.response_streaming]
        guard: Callable[..., Any] = _guard_stream if handler.response_streaming else _guard_unary
        reader = _Reader(method.rpartition("/")[2], handler.request_deserializer, handler.request_streaming)
        # bytes are decoded under the guard, so that broken ones are the client's error and no fault of ours
        return build(guard(inner, reader), response_serializer=handler.response_serializer)


class _Reader:
    """Decodes the requests of one verb."""

    def __init__(self, verb: str, decode: Callable[[bytes], Any], streaming: bool) -> None:
        self.verb = verb
        self._decode = decode
        self._streaming = streaming

    def read(self, request: Any) -> Any:
        """Return the request, or the stream of its parts.

        Raises:
            ArgumentError: the bytes are no message; for a stream, when the part is read.
        """
        return self._parts(request) if self._streaming else self._message(request)

    async def _parts(self, stream: AsyncIterator[bytes]) -> AsyncIterator[Any]:
        async for content in stream:
            yield self._message(content)

    def _message(self, content: bytes) -> Any:
        try:
            return self._decode(content)
        except DecodeError:
            raise ArgumentError.expected(
                "request", f"a message of {self.verb}", f"{len(content)} bytes that are none"
            ) from None


def _guard_unary(inner: Callable[..., Awaitable[Any]], reader: _Reader) -> Callable[..., Awaitable[Any]]:
    async def guarded(request: Any, context: grpc.aio.ServicerContext) -> Any:
        try:
            return await inner(reader.read(request), context)
        except Exception as error:
            return await _abort(context, error, reader.verb)

    return guarded


def _guard_stream(
    inner: Callable[..., AsyncIterator[Any]], reader: _Reader
) -> Callable[..., AsyncIterator[Any]]:
    async def guarded(request: Any, context: grpc.aio.ServicerContext) -> AsyncIterator[Any]:
        try:
            async for part in inner(reader.read(request), context):
                yield part
        except Exception as error:
            await _abort(context, error, reader.verb)

    return guarded


async def _abort(context: grpc.aio.ServicerContext, error: Exception, verb: str) -> None:
    if isinstance(error, grpc.aio.AbortError):
        raise error
    found = public_error(error, verb)
    await context.abort(
        grpc.StatusCode[kind_of(found).grpc_code], found.message, ((DETAILS_KEY, encode_status(found)),)
    )

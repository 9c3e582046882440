"""Errors over gRPC: a status code, and google.rpc.Status with ErrorInfo in the trailing metadata."""

from __future__ import annotations

from collections.abc import AsyncIterator, Awaitable, Callable
from typing import Any

import grpc

from revolute.codec.status import DETAILS_KEY, encode_status
from revolute.errors import kind_of

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
        return build(
            guard(inner, method.rpartition("/")[2]),
            request_deserializer=handler.request_deserializer,
            response_serializer=handler.response_serializer,
        )


def _guard_unary(inner: Callable[..., Awaitable[Any]], verb: str) -> Callable[..., Awaitable[Any]]:
    async def guarded(request: Any, context: grpc.aio.ServicerContext) -> Any:
        try:
            return await inner(request, context)
        except Exception as error:
            return await _abort(context, error, verb)

    return guarded


def _guard_stream(inner: Callable[..., AsyncIterator[Any]], verb: str) -> Callable[..., AsyncIterator[Any]]:
    async def guarded(request: Any, context: grpc.aio.ServicerContext) -> AsyncIterator[Any]:
        try:
            async for part in inner(request, context):
                yield part
        except Exception as error:
            await _abort(context, error, verb)

    return guarded


async def _abort(context: grpc.aio.ServicerContext, error: Exception, verb: str) -> None:
    if isinstance(error, grpc.aio.AbortError):
        raise error
    found = public_error(error, verb)
    await context.abort(
        grpc.StatusCode[kind_of(found).grpc_code], found.message, ((DETAILS_KEY, encode_status(found)),)
    )

"""Turns streamed requests into documents and documents into streamed answers."""

from __future__ import annotations

import time
from collections.abc import AsyncIterable, AsyncIterator
from typing import Any, TypeVar

import numpy as np
from google.protobuf.message import Message

from revolute.codec.documents import fill_message, read_message
from revolute.codec.parts import Assembler, locate, to_wire
from revolute.codec.tensor import encode_tensor

from .answers import Document
from .memory import Reservation
from .telemetry import Telemetry

AnyMessage = TypeVar("AnyMessage", bound=Message)


async def receive(parts: AsyncIterable[Any], reservation: Reservation, limit: int) -> dict[str, Any]:
    """Read a streamed request.

    Args:
        parts: the request's parts.
        reservation: grows by the bytes that the request declares, before they arrive.
        limit: bytes of one request.

    Raises:
        ArgumentError: the parts do not make up one message.
        LimitError: it is too large.
    """
    assembler = Assembler(limit, limit_name="max_request")
    begun = False
    async for part in parts:
        assembler.feed(part)
        if not begun:
            reservation.grow(assembler.declared_bytes)
            begun = True
    return read_message(*assembler.finish())


async def receive_one(
    parts: AsyncIterable[Any], reservation: Reservation, limit: int, first: str = "start"
) -> dict[str, Any]:
    """Read one message of a stream that goes on after it; as `receive` otherwise.

    Args:
        parts: the stream's parts; those after the message are left in it.
        reservation: grows by the bytes that the message declares.
        limit: bytes of one message.
        first: name of the field that begins the message.
    """
    assembler = Assembler(limit, limit_name="max_request", first=first)
    begun = False
    async for part in parts:
        assembler.feed(part)
        if not begun:
            reservation.grow(assembler.declared_bytes)
            begun = True
        if assembler.complete:
            break
    return read_message(*assembler.finish())


async def send(
    part_type: type[Message],
    start: Message,
    document: Document,
    telemetry: Telemetry,
    first: str = "start",
) -> AsyncIterator[Any]:
    """Yield an answer part by part, as bytes, and report the time it took to make them."""
    began = ended = time.time_ns()
    spent = 0
    parts = to_wire(part_type, start, fill_message(start, document), first=first)
    while (part := next(parts, None)) is not None:
        ended = time.time_ns()
        spent += ended - began
        yield part
        began = time.time_ns()
    telemetry.record("serialise", ended - spent, ended, transport="grpc")


def whole(message: AnyMessage, document: Document) -> AnyMessage:
    """Fill a message that is not streamed; its arrays are small and stand in it whole."""
    for path, value in fill_message(message, document).items():
        locate(message, path).CopyFrom(encode_tensor(np.asarray(value)))
    return message

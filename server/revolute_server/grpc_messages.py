"""Turns streamed requests into documents and documents into streamed answers."""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterable, AsyncIterator, Awaitable, Callable, Iterable, Iterator
from typing import Any, TypeVar

import numpy as np
from google.protobuf.message import Message

from revolute.codec.documents import fill_message, read_message
from revolute.codec.parts import CHUNK_BYTES, ONE_PART_BYTES, Assembler, GradualWriter, locate, to_wire
from revolute.codec.tensor import encode_tensor
from revolute.errors import UnavailableError

from . import offered_memory
from .answers import Document
from .call import current_call
from .drafts import Draft
from .memory import Reservation
from .offered_memory import current_offer
from .telemetry import Telemetry

AnyMessage = TypeVar("AnyMessage", bound=Message)
Result = TypeVar("Result")


async def receive(parts: AsyncIterable[Any], reservation: Reservation, limit: int) -> dict[str, Any]:
    """Read a streamed request.

    A request that is whole with its first part is not waited for any longer: the end of its stream would cost
    as much as another part. After chunks the end is waited for, so that an overlap is seen.

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
            begun = True
            await _begin(assembler, reservation)
            if assembler.complete:
                break
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
            begun = True
            await _begin(assembler, reservation)
        if assembler.complete:
            break
    return read_message(*assembler.finish())


async def _begin(assembler: Assembler, reservation: Reservation) -> None:
    """Make room for a message whose first part is there, and take what it has in shared memory."""
    reservation.grow(assembler.declared_bytes)
    if assembler.shared_bytes:
        await offered_memory.load(assembler, current_offer())


def _part_bytes() -> int:
    """Return the bytes of arrays that a part of the answer to the call that runs now may have."""
    return ONE_PART_BYTES if wants_one_part() else CHUNK_BYTES


def wants_one_part() -> bool:
    """Tell whether the answer to the call that runs now must be one part."""
    call = current_call()
    return call is not None and call.one_part


async def send(
    part_type: type[Message],
    start: Message,
    document: Document,
    telemetry: Telemetry,
    first: str = "start",
) -> AsyncIterator[Any]:
    """Yield an answer part by part, as bytes, and report the time it took to make them.

    Its arrays go into the memory that the client shares, if it does.
    """
    clock = _Clock()
    values = await clock.time(offered_memory.put(start, fill_message(start, document), current_offer()))
    for part in clock.each(to_wire(part_type, start, values, chunk_bytes=_part_bytes(), first=first)):
        yield part
    clock.report(telemetry)


async def send_draft(
    part_type: type[Message],
    start: Message,
    draft: Draft,
    work: asyncio.Future[Document],
    count: Callable[[Document], None],
    telemetry: Telemetry,
) -> AsyncIterator[Any]:
    """Yield an answer part by part while it is made, all of it once the verb is through.

    Args:
        part_type: message of the parts.
        start: the answer's empty message.
        draft: what is known of the answer.
        work: the verb.
        count: counts the memory of the answer, when the verb is through and no longer does.
        telemetry: gets the time it takes to make the parts.

    Raises:
        UnavailableError: the answer became another one than what was sent of it; the caller may ask again.
        BaseException: the verb failed.
    """
    clock = _Clock()
    writer: GradualWriter | None = None
    begun: Document = {}
    values: dict[str, np.ndarray] = {}
    while not work.done():
        await draft.changed(work)
        if draft.document is None or work.done():
            continue
        if writer is None:
            begun = draft.document
            # its arrays are fields of the message itself
            values = {path: np.asarray(value) for path, value in fill_message(start, begun).items()}
            writer = GradualWriter(part_type, start, values, draft.known)
        else:
            values = _arrays(draft.document, values)
        for part in clock.each(writer.more(values, draft.known)):
            yield part
    document = await work
    count(document)
    if writer is None:
        async for part in send(part_type, start, document, telemetry):
            yield part
        return
    if not _continues(begun, document):
        raise UnavailableError.expected(
            "answer", "one that stays as it was sent", "another server's", advice="call again"
        )
    for part in clock.each(writer.rest(_arrays(document, values))):
        yield part
    clock.report(telemetry)


async def send_whole(
    part_type: type[Message],
    start: Message,
    draft: Draft,
    work: asyncio.Future[Document],
    count: Callable[[Document], None],
    telemetry: Telemetry,
) -> AsyncIterator[Any]:
    """Yield an answer when the verb is through; its arrays are put into the client's memory before.

    The arguments are those of `send_draft`, of a draft whose arrays are complete.
    """
    clock = _Clock()
    values: dict[str, Any] = {}
    await draft.changed(work)
    # the verb first hands its record to the store, whose thread then works at the same time
    await asyncio.sleep(0)
    if (begun := draft.document) is not None and not work.done():
        values = await clock.time(offered_memory.put(start, fill_message(start, begun), current_offer()))
    document = await work
    count(document)
    if not values or begun is None or not _continues(begun, document):
        start.Clear()
        async for part in send(part_type, start, document, telemetry):
            yield part
        return
    for part in clock.each(to_wire(part_type, start, values, chunk_bytes=_part_bytes())):
        yield part
    clock.report(telemetry)


def whole(message: AnyMessage, document: Document) -> AnyMessage:
    """Fill a message that is not streamed; its arrays are small and stand in it whole."""
    for path, value in fill_message(message, document).items():
        locate(message, path).CopyFrom(encode_tensor(np.asarray(value)))
    return message


def _arrays(document: Document, names: Iterable[str]) -> dict[str, np.ndarray]:
    """Return some of a document's arrays."""
    return {name: np.asarray(document[name]) for name in names}


def _continues(begun: Document, document: Document) -> bool:
    """Tell whether an answer is the one that was begun: its plain values are, and its arrays' shapes."""

    def plain(value: Any) -> Any:
        return value.shape if isinstance(value, np.ndarray) else value

    return {name: plain(value) for name, value in begun.items()} == {
        name: plain(value) for name, value in document.items()
    }


class _Clock:
    """Adds up the time in which parts are made, apart from that in which they are sent."""

    def __init__(self) -> None:
        self._spent = 0

    def each(self, parts: Iterator[bytes]) -> Iterator[bytes]:
        began = time.time_ns()
        for part in parts:
            self._spent += time.time_ns() - began
            yield part
            began = time.time_ns()
        self._spent += time.time_ns() - began

    async def time(self, copying: Awaitable[Result]) -> Result:
        began = time.time_ns()
        result = await copying
        self._spent += time.time_ns() - began
        return result

    def report(self, telemetry: Telemetry) -> None:
        now = time.time_ns()
        telemetry.record("serialise", now - self._spent, now, transport="grpc")

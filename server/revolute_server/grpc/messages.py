"""Reads streamed requests into documents, and writes documents as streamed answers."""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterable, Awaitable, Callable, Iterator
from typing import Any, NamedTuple, TypeVar

import numpy as np
from google.protobuf.message import Message

from revolute.contract.codec.documents import fill_message, read_message
from revolute.contract.codec.parts import Assembler, count_entries, locate, to_parts
from revolute.contract.codec.tensor import encode_tensor
from revolute.contract.errors import LimitError

from ..answers import Document
from ..compute.memory_budget import Reservation
from ..observe.telemetry import Telemetry
from ..settings import Settings
from . import offered_memory
from .offered_memory import current_offer

AnyMessage = TypeVar("AnyMessage", bound=Message)
Result = TypeVar("Result")

_FEW_ENTRIES = 500
"""Messages with at most this many entries are read on the event loop, in about a millisecond."""

_ENTRY_BYTES = 2
"""Fewest bytes of an entry in a message: a tag and a length."""


class ReceivedPart(NamedTuple):
    """A part of a request, and its encoded size in bytes."""

    message: Any
    size: int


async def receive(
    parts: AsyncIterable[ReceivedPart],
    reservation: Reservation,
    settings: Settings,
    first: str = "start",
    *,
    to_end: bool = True,
) -> dict[str, Any]:
    """Read one message from a streamed request.

    If the first part completes the message, the end of the stream is not awaited, because waiting would cost
    as much as another part. After chunks it is awaited, so that overlapping chunks are detected.

    Args:
        parts: the stream's parts.
        reservation: grows by the bytes of each part as it arrives.
        settings: has the limits on a request.
        first: name of the field of the first part.
        to_end: whether the stream ends with the message; if not, later parts are left in the stream.

    Raises:
        ArgumentError: the parts do not form one message.
        LimitError: the message is too large.
    """
    assembler = Assembler(settings.max_request, limit_name="max_request", first=first)
    entries, begun = 0, False
    async for part in parts:
        reservation.grow(part.size)
        if begun:
            assembler.feed(part.message)
        else:
            entries = _count_entries(part, settings)
            await _off_the_loop(entries, assembler.feed, part.message)
            await _begin(assembler, reservation, part.size)
        if assembler.complete and not (begun and to_end):
            break
        begun = True
    return await _off_the_loop(entries, lambda: read_message(*assembler.finish()))


async def _begin(assembler: Assembler, reservation: Reservation, received: int) -> None:
    """Refuse a message at its first part if the rest would not fit into memory; copy its shared memory."""
    reservation.check(assembler.declared_bytes - received)
    if assembler.shared_bytes:
        reservation.grow(assembler.shared_bytes)
        await offered_memory.load(assembler, current_offer())


def _count_entries(part: ReceivedPart, settings: Settings) -> int:
    """Count the entries of lists and maps in a message, before each of them is read; 0 for few.

    Raises:
        LimitError: there are too many.
    """
    most = settings.max_entries
    if part.size <= _ENTRY_BYTES * min(most, _FEW_ENTRIES):
        return 0
    count = count_entries(part.message, most)
    if count > most:
        raise LimitError.expected(
            "request",
            f"at most {most} entries in its lists and maps",
            f"{count} or more",
            advice="send fewer at once, or start the server with a larger --max-entries",
        )
    return count


async def _off_the_loop(entries: int, work: Callable[..., Result], *arguments: Any) -> Result:
    """Run work whose time grows with the entries of a message; on a thread if there are many."""
    if entries <= _FEW_ENTRIES:
        return work(*arguments)
    return await asyncio.to_thread(work, *arguments)


async def send(
    write: Callable[[bytes], Awaitable[None]],
    part_type: type[Message],
    start: Message,
    document: Document,
    telemetry: Telemetry,
    first: str = "start",
) -> None:
    """Write the bytes of an answer part by part, and record the time spent on making the parts.

    If the client shares memory, the arrays of the answer are written there.
    """
    clock = _Clock()
    values = await clock.time(offered_memory.put(start, fill_message(start, document), current_offer()))
    # `map` keeps no part while its bytes are sent
    for part in clock.each(map(part_type.SerializeToString, to_parts(part_type, start, values, first=first))):
        await write(part)
    clock.report(telemetry)


def whole(message: AnyMessage, document: Document) -> AnyMessage:
    """Fill a message that is not streamed, including its arrays, which are small."""
    for path, value in fill_message(message, document).items():
        locate(message, path).CopyFrom(encode_tensor(np.asarray(value)))
    return message


class _Clock:
    """Measures the time spent on making parts, without the time spent on sending them."""

    def __init__(self) -> None:
        self._spent = 0

    def each(self, parts: Iterator[Any]) -> Iterator[Any]:
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

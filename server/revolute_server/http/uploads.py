"""Receives the body of a request; its memory grows, and is counted, with the bytes that have come."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable

from fastapi import Request
from starlette.requests import ClientDisconnect

from revolute.contract.codec.buffers import BUFFERS
from revolute.contract.errors import LimitError

from ..compute.memory_budget import Reservation
from ..settings import Settings, format_bytes
from .disconnect import gone

_FIRST_BYTES = 256 * 1024
"""Of memory for a body of which nothing has come yet."""

_QUICK = 1024**2
"""Bytes that are copied at once; more would keep other calls waiting."""


async def receive_body(
    request: Request, settings: Settings, name: str, reservation: Reservation
) -> memoryview:
    """Receive a body, no further than the limit.

    Args:
        request: the request.
        settings: has the limit.
        name: the setting that holds the limit.
        reservation: grows by the bytes that are held.

    Raises:
        LimitError: the body is too large, or there is no memory for it.
        CancelledError: the client has left.
    """
    limit = getattr(settings, name)
    declared = request.headers.get("content-length", "")
    if declared.isdigit() and int(declared[:20]) > limit:
        raise _too_large(int(declared[:20]), limit, settings.flag(name))
    larger = _towards(int(declared)) if declared.isdigit() else _doubled(limit)
    body, place = memoryview(b""), 0
    async for piece in _pieces(request):
        end = place + len(piece)
        if end > limit:
            raise _too_large(end, limit, settings.flag(name))
        if end > len(body):
            body = await _grown(body, place, larger(end), reservation)
        body[place:end] = piece
        place = end
    return body[:place].toreadonly()


async def _pieces(request: Request) -> AsyncIterator[bytes]:
    try:
        async for piece in request.stream():
            yield piece
    except ClientDisconnect:
        raise gone("a whole body") from None


async def _grown(body: memoryview, filled: int, size: int, reservation: Reservation) -> memoryview:
    """Return memory of a larger size that begins with what is there."""
    reservation.grow(size)
    new = BUFFERS.empty(size).data
    if filled <= _QUICK:
        new[:filled] = body[:filled]
    else:
        await asyncio.to_thread(_copy, body[:filled], new)
    reservation.give_back(len(body))
    return new


def _copy(source: memoryview, target: memoryview) -> None:
    # a copy holds the GIL, so other threads have their turn between blocks
    for place in range(0, len(source), _QUICK):
        block = source[place : place + _QUICK]
        target[place : place + len(block)] = block


def _towards(declared: int) -> Callable[[int], int]:
    """Return the sizes of memory for a body of a known length: the last is that length.

    Each is four times the one before, so that no more is held than four times what has come, and little is
    copied.
    """
    sizes = [declared]
    while sizes[-1] > _FIRST_BYTES:
        sizes.append(-(-sizes[-1] // 4))

    def larger(needed: int) -> int:
        return min((size for size in sizes if size >= needed), default=needed)

    return larger


def _doubled(limit: int) -> Callable[[int], int]:
    """Return the sizes of memory for a body of unknown length."""
    return lambda needed: min(limit, max(_FIRST_BYTES, 2 * needed))


def _too_large(size: int, limit: int, flag: str) -> LimitError:
    kind = "JSON, or send application/x-npz" if flag.startswith("--max-json") else "it"
    return LimitError.expected(
        "body",
        f"at most {format_bytes(limit)}",
        f"{format_bytes(size)} or more",
        advice=f"send less of {kind} at once, or start the server with more than {flag}",
    )

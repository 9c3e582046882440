"""Receives the body of a request into memory that grows, and is counted, with the received bytes."""

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
"""Memory for the first bytes of a body."""

_QUICK = 1024**2
"""Up to this many bytes are copied on the event loop."""


async def receive_body(
    request: Request, settings: Settings, name: str, reservation: Reservation
) -> memoryview:
    """Receive a body of limited size.

    Args:
        request: the request.
        settings: has the limit.
        name: name of the setting with the limit.
        reservation: grows by the bytes in memory.

    Raises:
        LimitError: the body is too large, or does not fit into memory.
        CancelledError: the client has disconnected.
    """
    limit = getattr(settings, name)
    declared = request.headers.get("content-length", "")
    if declared.isdigit() and int(declared[:20]) > limit:
        raise _too_large(int(declared[:20]), limit, settings.flag(name))
    larger = _sizes_up_to(int(declared)) if declared.isdigit() else _doubled(limit)
    body, received = memoryview(b""), 0
    async for piece in _pieces(request):
        end = received + len(piece)
        if end > limit:
            raise _too_large(end, limit, settings.flag(name))
        if end > len(body):
            body = await _grown(body, received, larger(end), reservation)
        body[received:end] = piece
        received = end
    return body[:received].toreadonly()


async def _pieces(request: Request) -> AsyncIterator[bytes]:
    try:
        async for piece in request.stream():
            yield piece
    except ClientDisconnect:
        raise gone("a whole body") from None


async def _grown(body: memoryview, filled: int, size: int, reservation: Reservation) -> memoryview:
    """Return larger memory with a copy of the first `filled` bytes."""
    reservation.grow(size)
    new = BUFFERS.empty(size).data
    if filled <= _QUICK:
        new[:filled] = body[:filled]
    else:
        await asyncio.to_thread(_copy, body[:filled], new)
    reservation.give_back(len(body))
    return new


def _copy(source: memoryview, target: memoryview) -> None:
    # a copy holds the GIL; other threads can run between blocks
    for start in range(0, len(source), _QUICK):
        block = source[start : start + _QUICK]
        target[start : start + len(block)] = block


def _sizes_up_to(declared: int) -> Callable[[int], int]:
    """Return a function from the needed to the allocated size, for a body of known length.

    The sizes grow by a factor of four up to that length, so that at most four times the received bytes are
    allocated and few bytes are copied.
    """
    sizes = [declared]
    while sizes[-1] > _FIRST_BYTES:
        sizes.append(-(-sizes[-1] // 4))

    def larger(needed: int) -> int:
        return min((size for size in sizes if size >= needed), default=needed)

    return larger


def _doubled(limit: int) -> Callable[[int], int]:
    """Return a function from the needed to the allocated size, for a body of unknown length."""
    return lambda needed: min(limit, max(_FIRST_BYTES, 2 * needed))


def _too_large(size: int, limit: int, flag: str) -> LimitError:
    kind = "JSON, or send application/x-npz" if flag.startswith("--max-json") else "it"
    return LimitError.expected(
        "body",
        f"at most {format_bytes(limit)}",
        f"{format_bytes(size)} or more",
        advice=f"send less of {kind} at once, or start the server with more than {flag}",
    )

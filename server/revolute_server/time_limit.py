"""A time limit on an awaitable that never loses a cancellation."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable
from typing import TypeVar

Result = TypeVar("Result")


async def within(seconds: float | None, work: Awaitable[Result]) -> Result:
    """Await work for a limited time.

    Before Python 3.12, `asyncio.wait_for` returns the result if the caller is cancelled in the turn of the
    event loop in which the work ends. A task that works in a loop would then continue forever, and so would
    the task that waits for its end.

    Args:
        seconds: time limit; None for no limit.
        work: the work; cancelled when the time is over or the caller is cancelled.

    Raises:
        asyncio.TimeoutError: the time is over.
    """
    task = asyncio.ensure_future(work)
    try:
        await asyncio.wait((task,), timeout=seconds)
        if task.done():
            return task.result()
    finally:
        await _ended(task)
    raise asyncio.TimeoutError


async def _ended(task: asyncio.Future[Result]) -> None:
    """Cancel a task unless it is done, wait for its end, and drop its result."""
    if not task.done():
        task.cancel()
        await asyncio.wait((task,))
    if not task.cancelled():
        task.exception()

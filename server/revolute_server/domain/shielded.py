"""Work that is not interrupted by cancellation."""

from __future__ import annotations

import asyncio
from collections.abc import Coroutine
from typing import Any, TypeVar

Result = TypeVar("Result")


async def shielded(work: Coroutine[Any, Any, Result]) -> Result:
    """Await short work that must not stop half-way, such as a commit and its follow-up.

    If the caller is cancelled, the cancellation takes effect when the work is finished.
    """
    task = asyncio.ensure_future(work)
    try:
        return await asyncio.shield(task)
    except asyncio.CancelledError:
        while not task.done():
            try:
                await asyncio.wait([task])
            except asyncio.CancelledError:
                continue
        if not task.cancelled():
            task.exception()
        raise

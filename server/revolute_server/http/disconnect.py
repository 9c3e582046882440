"""Cancels the work of an HTTP request when its client disconnects; gRPC does this itself."""

from __future__ import annotations

import asyncio
from collections.abc import Coroutine
from typing import Any, TypeVar

from fastapi import Request

from revolute.contract.errors import CancelledError

Result = TypeVar("Result")


async def while_connected(request: Request, work: Coroutine[Any, Any, Result]) -> Result:
    """Run `work`, and cancel it when the client closes the connection.

    Args:
        request: a request whose body has been read.
        work: the coroutine of the verb.

    Raises:
        CancelledError: the client has disconnected; the error is only logged.
    """
    task = asyncio.ensure_future(work)
    watcher = asyncio.ensure_future(disconnected(request))
    try:
        await asyncio.wait((task, watcher), return_when=asyncio.FIRST_COMPLETED)
        if task.done():
            return task.result()
        raise gone("a client that waits for the answer")
    finally:
        watcher.cancel()
        task.cancel()


async def disconnected(request: Request) -> None:
    """Wait until the client has closed the connection."""
    while (await request.receive())["type"] != "http.disconnect":
        pass


def gone(expected: str) -> CancelledError:
    """Return the error of a call whose client has disconnected; it is only logged."""
    return CancelledError(f"call: expected {expected}, got a closed connection")

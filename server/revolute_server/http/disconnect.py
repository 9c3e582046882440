"""Stops the work of an HTTP request whose client has gone, as gRPC does for its calls by itself."""

from __future__ import annotations

import asyncio
from collections.abc import Coroutine
from typing import Any, TypeVar

from fastapi import Request

from revolute.contract.errors import CancelledError

Result = TypeVar("Result")


async def while_connected(request: Request, work: Coroutine[Any, Any, Result]) -> Result:
    """Run `work`, but cancel it when the client closes the connection.

    Args:
        request: a request whose body has been read.
        work: the verb.

    Raises:
        CancelledError: the client has gone; nobody will read this.
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
    """Return the error of a call whose client has closed the connection; nobody will read it."""
    return CancelledError(f"call: expected {expected}, got a closed connection")

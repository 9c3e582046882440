"""Admission of HTTP calls: opened before routing, admitted once the route is known, closed at the end."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from typing import Any

from fastapi import Request
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from ..access.admission import CALL_ID_HEADER, Calls
from ..access.call import current_call
from ..observe.incidents import stopping
from .problems import problem


class HttpCalls:
    """ASGI middleware that opens a call for each request."""

    def __init__(self, app: ASGIApp, calls: Calls) -> None:
        self._app = app
        self._calls = calls

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        headers = {name.decode("latin-1"): value.decode("latin-1") for name, value in scope["headers"]}
        host = (scope.get("client") or ("unix",))[0]
        with self._calls.open("http", headers, host=host) as call:
            started = False

            async def sending(message: Message) -> None:
                nonlocal started
                if message["type"] == "http.response.start":
                    started = True
                    message["headers"] = [
                        *message.get("headers", ()),
                        (CALL_ID_HEADER.encode(), call.id.encode()),
                        (b"x-content-type-options", b"nosniff"),
                    ]
                await send(message)

            try:
                await self._app(scope, receive, sending)
            except asyncio.CancelledError:
                # only the listener cancels requests, when they exceed the grace time of a stop
                if started:
                    raise
                await problem(stopping())(scope, receive, sending)


def admission(
    calls: Calls, verb: str | None = None, *, while_draining: bool = False
) -> Callable[[Request], Awaitable[None]]:
    """Return a FastAPI dependency that admits or refuses a call before its body is read.

    Args:
        calls: admits the calls.
        verb: name of the verb; by default the rpc of the route.
        while_draining: whether calls are admitted while the server drains.
    """

    async def admit(request: Request) -> None:
        call = current_call()
        assert call is not None
        call.verb = verb or rpc_of(request.scope["route"])
        authorization = request.headers.get("authorization")
        calls.admit(call, authorization, while_draining=while_draining)

    return admit


def rpc_of(route: Any) -> str:
    """Return the rpc of a route, "Service.Rpc": its tag is the service, its name the method."""
    return f"{route.tags[0]}.{route.name}"

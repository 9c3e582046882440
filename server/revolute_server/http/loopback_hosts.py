"""Protects a server on loopback from web pages (DNS rebinding), by the Host header of requests.

A web page may let its own host name resolve to 127.0.0.1 after it was loaded, and then read the server's
answers. The Host header of such a request has the page's host; other requests have a loopback address.
Requests of web pages without rebinding fail, because they need CORS, which the server does not offer, or send
a body type that it does not read.
"""

from __future__ import annotations

from starlette.types import ASGIApp, Receive, Scope, Send

from revolute.contract.errors import ArgumentError

from ..settings import is_loopback
from .problems import problem


class LoopbackHosts:
    """ASGI middleware that accepts only loopback names in the Host header."""

    def __init__(self, app: ASGIApp) -> None:
        self._app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] == "http" and not is_loopback(name := _host_name(scope)):
            error = ArgumentError.expected(
                "host",
                "a loopback name such as 127.0.0.1 or localhost",
                repr(name[:100]),
                advice="start the server with --insecure if it is meant to be reached by other names",
            )
            await problem(error, 421)(scope, receive, send)
            return
        await self._app(scope, receive, send)


def _host_name(scope: Scope) -> str:
    """Return the Host header without its port."""
    host = next((value for name, value in scope["headers"] if name == b"host"), b"").decode("latin-1")
    return host[: host.rindex("]") + 1] if host.startswith("[") and "]" in host else host.partition(":")[0]

"""Refuses requests that a web page made a browser send to a server on loopback.

A page may give its own host name the address 127.0.0.1 after it was loaded, and then read what the server
answers (DNS rebinding). Such a request names the page's host; one that is meant for the server names a
loopback address. Requests without that trick need CORS, which the server does not offer, or a body type
that it does not read.
"""

from __future__ import annotations

from starlette.types import ASGIApp, Receive, Scope, Send

from revolute.contract.errors import ArgumentError

from ..settings import is_loopback
from .problems import problem


class LoopbackHosts:
    """ASGI middleware that lets only loopback names pass in the Host header."""

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

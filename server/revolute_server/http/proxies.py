"""Reverse proxies: path prefixes, and the X-Forwarded headers of trusted proxies.

A proxy may forward `/robots/revolute/v1/server` with or without the prefix `/robots/revolute`. Pages use
relative URLs, so they work in both cases. The OpenAPI description contains the prefix if it is known, from
`--root-path` or from the header X-Forwarded-Prefix of a trusted proxy.
"""

from __future__ import annotations

import ipaddress

from starlette.types import ASGIApp, Receive, Scope, Send
from uvicorn.middleware.proxy_headers import ProxyHeadersMiddleware

from ..settings import Settings, is_prefix


class Proxies:
    """ASGI middleware that sets the path prefix, and applies the headers of trusted proxies.

    Args:
        app: the application.
        settings: has the prefix and the trusted proxies.
    """

    def __init__(self, app: ASGIApp, settings: Settings) -> None:
        self._root_path = settings.root_path
        self._trusted = [ipaddress.ip_network(network) for network in settings.proxies]
        # X-Forwarded-For and X-Forwarded-Proto
        self._app: ASGIApp = (
            ProxyHeadersMiddleware(app, settings.proxies) if self._trusted else app  # type: ignore[arg-type, assignment]
        )

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] == "http" and (prefix := self._prefix(scope)):
            path = scope["path"]
            has_prefix = path == prefix or path.startswith(f"{prefix}/")
            scope = {**scope, "root_path": prefix, "path": path if has_prefix else prefix + path}
        await self._app(scope, receive, send)

    def _prefix(self, scope: Scope) -> str:
        """Return the path prefix, without a trailing slash."""
        if self._trusted and self._is_trusted(scope):
            for name, value in scope["headers"]:
                if name == b"x-forwarded-prefix":
                    given = value.decode("latin-1").partition(",")[0].strip().rstrip("/")
                    if is_prefix(given):
                        return given
        return self._root_path

    def _is_trusted(self, scope: Scope) -> bool:
        host = (scope.get("client") or ("",))[0]
        try:
            address = ipaddress.ip_address(host)
        except ValueError:
            return False
        return any(address in network for network in self._trusted)

"""Reverse proxies: the path below which one serves us, and what it says of its clients.

A proxy may pass `/robots/revolute/v1/server` on as it is or without the first part. Pages name what they load
relative to themselves, so that they work without knowing that part; who knows it, by `--root-path` or by the
header X-Forwarded-Prefix of a proxy that is trusted, finds it in the description of the interface.
"""

from __future__ import annotations

import ipaddress

from starlette.types import ASGIApp, Receive, Scope, Send
from uvicorn.middleware.proxy_headers import ProxyHeadersMiddleware

from ..settings import Settings, is_prefix


class Proxies:
    """ASGI middleware that notes the path prefix, and believes what trusted proxies say.

    Args:
        app: what answers.
        settings: the prefix, and who is trusted.
    """

    def __init__(self, app: ASGIApp, settings: Settings) -> None:
        self._root_path = settings.root_path
        self._trusted = [ipaddress.ip_network(place) for place in settings.proxies]
        # X-Forwarded-For and X-Forwarded-Proto
        self._app: ASGIApp = (
            ProxyHeadersMiddleware(app, settings.proxies) if self._trusted else app  # type: ignore[arg-type, assignment]
        )

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] == "http" and (prefix := self._prefix(scope)):
            path = scope["path"]
            whole = path == prefix or path.startswith(f"{prefix}/")
            scope = {**scope, "root_path": prefix, "path": path if whole else prefix + path}
        await self._app(scope, receive, send)

    def _prefix(self, scope: Scope) -> str:
        """Return the path in front of ours, without a slash at its end."""
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

"""The server process: one event loop with gRPC and HTTP listeners over one service.

Start: bind all listeners, then report ready. Stop (SIGTERM, SIGINT): readiness goes off, new calls are
refused as draining, running ones get the grace time, what still runs then is cancelled and stops within one
control step. SIGHUP reads tokens and certificates again.
"""

from __future__ import annotations

import asyncio
import contextlib
import json
import logging
import os
import signal
import socket
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import grpc
import uvicorn
from fastapi import FastAPI

from revolute.errors import ArgumentError

from . import dm_env_rpc, grpc_services, http_routes, listeners
from .auth import Access, TokenFile
from .calls import Calls
from .offered_memory import OpenBlocks
from .service import Service
from .settings import Settings
from .telemetry import Telemetry
from .tracing import Tracing, tracing_to
from .verbs import Verbs

if TYPE_CHECKING:
    from .dm_env_rpc.listener import Listener

_log = logging.getLogger("revolute.server")

_QUIET, _LONGEST_QUIET = 0.25, 1.0
"""Seconds without a call after which nobody calls any more, and the longest wait for them."""

_LAST_ANSWERS = 2
"""Seconds for the last bytes of answers, when no call computes any more."""


class Application:
    """The listeners, from bind to stop.

    Args:
        settings: how it is set.
        tracing: where spans go; by default where the settings say.
    """

    def __init__(self, settings: Settings, tracing: Tracing | None = None) -> None:
        self.settings = settings
        self.tokens = TokenFile(settings.tokens) if settings.tokens else None
        self.telemetry = Telemetry(tracing or tracing_to(settings.otlp_endpoint))
        self.service = Service(settings, self.telemetry)
        self.calls = Calls(Access(self.tokens), self.telemetry.call, self.service.pool.check_room)
        self.addresses: dict[str, str] = {}
        self._memory = None if settings.no_shared_memory else OpenBlocks()
        self._tls = listeners.Tls(settings) if settings.tls_cert else None
        self._grpc: grpc.aio.Server | None = None
        self._health: grpc_services.Health | None = None
        self._dm_env_rpc: Listener | None = None
        self._http: list[_HttpListener] = []
        self._http_tasks: list[asyncio.Task[None]] = []

    async def start(self) -> None:
        """Bind and serve all listeners, then say that the server is ready.

        Raises:
            ArgumentError: an address cannot be bound.
        """
        await self.service.open()
        try:
            await self._start()
        except BaseException:
            await self.service.close_store()
            raise

    async def _start(self) -> None:
        """Bind and serve all listeners over a service whose store is open."""
        verbs = Verbs(self.service)
        if self.settings.dm_env_rpc is not None:
            self._dm_env_rpc = dm_env_rpc.create_listener(verbs, self.calls)
        sockets = self._bind_http()
        try:
            self._grpc, self._health = grpc_services.create_server(verbs, self.calls, self._memory)
            self._bind_grpc(self._grpc)
            await self._grpc.start()
            await self._start_dm_env_rpc()
        except BaseException:
            for listener, _ in sockets:
                listener.close()
            listeners.remove_unix(self.settings.http_socket)
            raise
        app = http_routes.create_app(verbs, self.calls)
        for listener, tls in sockets:
            http = _HttpListener(app, self.settings, tls)
            self._http.append(http)
            self._http_tasks.append(asyncio.create_task(http.serve(sockets=[listener]), name="http"))
        for http, task in zip(self._http, self._http_tasks, strict=True):
            while not http.started:
                if task.done():
                    await task
                await asyncio.sleep(0.005)
        self.service.ready = True
        await self._health.set_serving(True)

    def _bind_http(self) -> list[tuple[socket.socket, listeners.Tls | None]]:
        """Open the sockets of HTTP, the Unix one without TLS, and note their addresses."""
        settings = self.settings
        sockets: list[tuple[socket.socket, listeners.Tls | None]] = []
        if not settings.no_tcp:
            tcp = listeners.bind_tcp(settings.host, settings.http_port, setting="http_port")
            place = listeners.join(settings.host, tcp.getsockname()[1])
            self.addresses["http"] = f"http{'s' if self._tls else ''}://{place}"
            sockets.append((tcp, self._tls))
        if settings.http_socket:
            try:
                sockets.append((listeners.bind_unix(settings.http_socket, setting="http_socket"), None))
            except BaseException:
                for listener, _ in sockets:
                    listener.close()
                raise
            self.addresses["http_socket"] = f"http+unix://{Path(settings.http_socket).absolute()}"
        return sockets

    def _bind_grpc(self, server: grpc.aio.Server) -> None:
        """Open the addresses of gRPC, the Unix one without TLS, and note them."""
        settings = self.settings
        if not settings.no_tcp:
            place = listeners.join(settings.host, settings.grpc_port)
            try:
                if self._tls:
                    port = server.add_secure_port(place, self._tls.credentials())
                else:
                    port = server.add_insecure_port(place)
            except RuntimeError as error:
                raise listeners.taken("grpc_port", place) from error
            place = listeners.join(settings.host, port)
            self.addresses["grpc"] = f"grpc{'s' if self._tls else ''}://{place}"
        if settings.grpc_socket:
            listeners.clear_unix(settings.grpc_socket, setting="grpc_socket")
            path = str(Path(settings.grpc_socket).absolute())
            try:
                with listeners.private_files():
                    server.add_insecure_port(f"unix:{path}")
            except RuntimeError as error:
                raise listeners.taken("grpc_socket", path) from error
            self.addresses["grpc_socket"] = f"unix://{path}"

    async def _start_dm_env_rpc(self) -> None:
        """Open the address of the façade, if there is one, and note it."""
        port = self.settings.dm_env_rpc
        if self._dm_env_rpc is None or port is None:
            return
        place = listeners.join(self.settings.host, port)
        try:
            port = self._dm_env_rpc.bind(place, self._tls.credentials() if self._tls else None)
        except RuntimeError as error:
            raise listeners.taken("dm_env_rpc", place) from error
        await self._dm_env_rpc.start()
        place = listeners.join(self.settings.host, port)
        self.addresses["dm_env_rpc"] = f"grpc{'s' if self._tls else ''}://{place}"

    def announce(self) -> None:
        """Print where the server listens and how it is set, and write the port file if one was asked for."""
        kinds = ("grpc", "http", "grpc_socket", "http_socket", "dm_env_rpc")
        addresses = {kind: self.addresses[kind] for kind in kinds if kind in self.addresses}
        if self.settings.port_file:
            path = Path(self.settings.port_file)
            draft = path.with_name(f".{path.name}.{os.getpid()}")
            draft.write_text(json.dumps({**addresses, "pid": os.getpid()}) + "\n", encoding="utf-8")
            draft.replace(path)
        info = self.service.info
        if self.settings.log_format == "json":
            line = {
                "message": "serving",
                "version": info.version,
                **addresses,
                "settings": self.settings.shown(),
            }
            print(json.dumps(line), flush=True)
            return
        print(
            f"revolute {info.version} serves {' and '.join(addresses.values())} "
            f"({self.settings.workers} workers, {self.settings.threads} threads, {info.build['isa']})",
            flush=True,
        )
        print("settings:", *(f"{name}={value}" for name, value in self.settings.shown().items()), flush=True)
        if self.settings.tls_cert and not (self.settings.tls_client_ca or self.settings.tokens):
            _log.warning("tls_cert: lets everybody in; --tokens or --tls-client-ca ask who calls")

    def reload(self) -> None:
        """Read again what may change while the server runs: tokens and certificates."""
        if self.tokens is not None:
            self.tokens.reload()
        if self._tls is not None:
            try:
                self._tls.reload()
                for http in self._http:
                    http.reload_tls()
                _log.info("tls_cert: read again, for new connections")
            except ArgumentError as error:
                _log.error("%s; the certificate stays as it was", error)

    async def stop(self) -> None:
        """Refuse new calls, give running ones the grace time, then end the listeners."""
        assert self._health and self._grpc
        self.service.ready = False
        self.calls.draining = True
        await self._health.set_serving(False)
        if self._dm_env_rpc:
            self._dm_env_rpc.drain()
        with contextlib.suppress(asyncio.TimeoutError):
            await asyncio.wait_for(self.calls.idle(), self.settings.grace)
            await self.calls.quiet(_QUIET, _LONGEST_QUIET)
        # what still runs stops within one control step, and its callers are told
        self.service.close()
        for http in self._http:
            http.should_exit = True
        await self.calls.end(_LAST_ANSWERS)
        servers = [server for server in (self._grpc, self._dm_env_rpc) if server]
        await asyncio.gather(*(server.stop(_LAST_ANSWERS) for server in servers), *self._http_tasks)
        if self._memory is not None:
            self._memory.close()
        listeners.remove_unix(self.settings.grpc_socket)
        listeners.remove_unix(self.settings.http_socket)
        await self.service.close_store()
        await asyncio.to_thread(self.telemetry.tracing.close)


class _HttpListener(uvicorn.Server):
    """Uvicorn without signal handlers of its own: the application owns the signals."""

    def reload_tls(self) -> None:
        """Use the certificate that the files have now."""
        if self._tls is not None and self.config.ssl is not None:
            self._tls.load_into(self.config.ssl)

    def __init__(self, app: FastAPI, settings: Settings, tls: listeners.Tls | None) -> None:
        self._tls = tls
        super().__init__(
            uvicorn.Config(
                app,
                # its own lines about start and stop say nothing that ours do not
                log_level="debug" if settings.log_level == "debug" else "warning",
                log_config=None,
                access_log=False,
                lifespan="off",
                **(tls.for_uvicorn() if tls else {}),
                # a client that stalls in the middle of a request does not hold up the end for ever
                timeout_graceful_shutdown=_LAST_ANSWERS,
            )
        )

    @contextlib.contextmanager
    def capture_signals(self) -> Iterator[None]:
        yield


async def serve(settings: Settings) -> None:
    """Run a server until SIGTERM or SIGINT."""
    application = Application(settings)
    await application.start()
    stopping = asyncio.Event()

    def interrupt() -> None:
        # a second signal means: at once
        if stopping.is_set():
            application.service.close()
        stopping.set()

    for number in (signal.SIGTERM, signal.SIGINT):
        asyncio.get_running_loop().add_signal_handler(number, interrupt)
    if hasattr(signal, "SIGHUP"):
        asyncio.get_running_loop().add_signal_handler(signal.SIGHUP, application.reload)
    application.announce()
    await stopping.wait()
    _log.info("stopping")
    await application.stop()

"""The server process: one event loop with gRPC and HTTP listeners over one service.

Start: bind all listeners, then report ready. Stop (SIGTERM, SIGINT): report not ready and refuse new calls;
running calls get most of the grace time; the rest are cancelled and stop within one control step. SIGHUP
reloads tokens and certificates.
"""

from __future__ import annotations

import asyncio
import json
import logging
import os
import signal
import socket
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING

import grpc

from revolute.contract.errors import ArgumentError, RevoluteError

from . import dm_env_rpc
from .access import listeners
from .access.admission import Calls
from .access.connections import Connections, descriptors_for, most_connections, raise_descriptor_limit
from .access.tokens import Access, TokenFile
from .domain.service import Service
from .grpc import services
from .grpc.connections import Sockets
from .grpc.offered_memory import OpenBlocks
from .grpc.waits import Peers
from .http import routes
from .http.connections import HttpListener, sweep
from .observe import logs
from .observe.telemetry import Telemetry
from .observe.tracing import Tracing, tracing_to
from .settings import Settings
from .shutdown import Countdown, exit_now, on_signals
from .started_threads import started_executor
from .verbs import Verbs

if TYPE_CHECKING:
    from .dm_env_rpc.listener import Listener

_log = logging.getLogger("revolute.server")

_QUIET, _LONGEST_QUIET = 0.25, 1.0
"""Seconds without a call after which the draining ends, and the longest wait for such a pause."""

_LAST_ANSWERS, _LEAST_ANSWERS = 2.0, 0.5
"""Bounds in s on the time for sending the last answers and closing the store, after all engine calls have
stopped: a quarter of the grace time within these bounds."""

_THREADS = 8
"""Number of threads that read and write large requests and answers."""


class Application:
    """The server: all listeners and the service behind them, from start to stop.

    Args:
        settings: the settings.
        tracing: receives the spans; by default the collector in the settings.

    Attributes:
        addresses: addresses of the listeners, by kind.
        hangs: whether threads or tasks were still running when `stop` returned.
    """

    def __init__(self, settings: Settings, tracing: Tracing | None = None) -> None:
        self.settings = settings
        self.tokens = TokenFile(settings.tokens) if settings.tokens else None
        self.telemetry = Telemetry(tracing or tracing_to(settings.otlp_endpoint))
        self.service = Service(settings, self.telemetry)
        self.calls = Calls(
            Access(self.tokens), self.telemetry.call, self.service.pool.check_room, self.service.rates
        )
        self.addresses: dict[str, str] = {}
        self.hangs = False
        self._memory = None if settings.no_shared_memory else OpenBlocks()
        self._tls = listeners.Tls(settings) if settings.tls_cert else None
        self._grpc: grpc.aio.Server | None = None
        self._grpc_ports: set[int] = set()
        self._health: services.Health | None = None
        self._dm_env_rpc: Listener | None = None
        self._http: list[HttpListener] = []
        self._http_tasks: list[asyncio.Task[None]] = []
        self._watches: list[asyncio.Task[None]] = []
        self._sockets: Sockets | None = None

    async def start(self) -> None:
        """Bind and serve all listeners, then report ready.

        Raises:
            ArgumentError: an address cannot be bound, or the store or the port file cannot be used.
        """
        if self.settings.port_file:
            _check_port_file(Path(self.settings.port_file))
        try:
            await self._start()
        except BaseException:
            await self.service.close_store()
            raise

    async def _start(self) -> None:
        """Bind all listeners, open the store, and serve."""
        verbs, peers = Verbs(self.service), Peers()
        if self.settings.dm_env_rpc is not None:
            self._dm_env_rpc = dm_env_rpc.create_listener(verbs, self.calls, peers)
        sockets = self._bind_http()
        try:
            self._grpc, self._health = services.create_server(verbs, self.calls, peers, self._memory)
            self._bind_grpc(self._grpc)
            self._bind_dm_env_rpc()
            # only after binding, so that a start that fails for its addresses creates no files
            await self.service.open()
            await self._grpc.start()
            if self._dm_env_rpc:
                await self._dm_env_rpc.start()
        except BaseException:
            for server in self._grpc_servers():
                await server.stop(0)
            for listener, _ in sockets:
                listener.close()
            listeners.remove_unix(self.settings.http_socket)
            raise
        self._sockets = Sockets(self._grpc_ports, most_connections(self.settings), peers)
        self._sockets.start()
        app = routes.create_app(verbs, self.calls)
        connections = Connections(most_connections(self.settings))
        self._watches.append(asyncio.create_task(sweep(connections), name="silent HTTP connections"))
        for listener, tls in sockets:
            http = HttpListener(app, self.settings, connections, self.service.budget, self.telemetry, tls)
            self._http.append(http)
            self._http_tasks.append(asyncio.create_task(http.serve(sockets=[listener]), name="http"))
        for http, task in zip(self._http, self._http_tasks, strict=True):
            while not http.started:
                if task.done():
                    await task
                await asyncio.sleep(0.005)
        self.service.serving = True
        self.service.store_watch.changed = self._report_health
        await self._report_health()

    async def _report_health(self) -> None:
        """Update the gRPC health service."""
        if self._health is not None:
            await self._health.set_serving(self.service.ready)

    def _bind_http(self) -> list[tuple[socket.socket, listeners.Tls | None]]:
        """Bind the HTTP sockets (the Unix socket without TLS), and record their addresses."""
        settings = self.settings
        sockets: list[tuple[socket.socket, listeners.Tls | None]] = []
        if not settings.no_tcp:
            tcp = listeners.bind_tcp(settings.host, settings.http_port, setting="http_port")
            address = listeners.join(settings.host, tcp.getsockname()[1])
            self.addresses["http"] = f"http{'s' if self._tls else ''}://{address}"
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
        """Bind the gRPC addresses (the Unix socket without TLS), and record them."""
        settings = self.settings
        if not settings.no_tcp:
            listeners.check_free(settings.host, settings.grpc_port, setting="grpc_port")
            port = listeners.bind_grpc(
                server, settings.host, settings.grpc_port, self._tls, setting="grpc_port"
            )
            address = listeners.join(settings.host, port)
            self._grpc_ports.add(port)
            self.addresses["grpc"] = f"grpc{'s' if self._tls else ''}://{address}"
        if settings.grpc_socket:
            listeners.clear_unix(settings.grpc_socket, setting="grpc_socket")
            path = str(Path(settings.grpc_socket).absolute())
            try:
                with listeners.private_files():
                    server.add_insecure_port(f"unix:{path}")
            except RuntimeError as error:
                raise listeners.taken("grpc_socket", path) from error
            self.addresses["grpc_socket"] = f"unix://{path}"

    def _bind_dm_env_rpc(self) -> None:
        """Bind the address for dm_env_rpc if there is one, and record it."""
        port = self.settings.dm_env_rpc
        if self._dm_env_rpc is None or port is None:
            return
        listeners.check_free(self.settings.host, port, setting="dm_env_rpc")
        port = self._dm_env_rpc.bind(self.settings.host, port, self._tls)
        self._grpc_ports.add(port)
        address = listeners.join(self.settings.host, port)
        self.addresses["dm_env_rpc"] = f"grpc{'s' if self._tls else ''}://{address}"

    def _grpc_servers(self) -> list[grpc.aio.Server | Listener]:
        return [server for server in (self._grpc, self._dm_env_rpc) if server]

    def announce(self) -> None:
        """Print the addresses and the settings, and write the port file if the settings name one."""
        kinds = ("grpc", "http", "grpc_socket", "http_socket", "dm_env_rpc")
        addresses = {kind: self.addresses[kind] for kind in kinds if kind in self.addresses}
        if self.settings.port_file:
            _write_port_file(Path(self.settings.port_file), {**addresses, "pid": os.getpid()})
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
        """Reload tokens and certificates."""
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
        """Refuse new calls, give running ones time, then end the listeners, all within the grace time."""
        assert self._grpc
        grace = self.settings.grace
        last = min(_LAST_ANSWERS, max(_LEAST_ANSWERS, grace / 4))
        countdown = Countdown(max(grace, grace / 2 + last))
        self.service.serving = False
        self.calls.draining = True
        await self._report_health()
        if self._dm_env_rpc:
            self._dm_env_rpc.drain()
        if await countdown.wait_for(self.calls.idle(), last):
            await countdown.wait_for(self.calls.quiet(_QUIET, _LONGEST_QUIET), last)
        # running calls stop within one control step and get an error
        self.service.close()
        answering = min(_LAST_ANSWERS, countdown.left() / 3)
        for http in self._http:
            http.end(answering)
        await self.calls.end(answering)
        await countdown.finish(self._stop_listeners(answering))
        for watch in self._watches:
            watch.cancel()
        if self._sockets is not None:
            self._sockets.stop()
        if self._memory is not None:
            self._memory.close()
        self.remove_sockets()
        await countdown.finish(self.service.close_store())
        await countdown.finish(asyncio.to_thread(self.telemetry.tracing.close))
        self.hangs = countdown.exceeded or self.service.pool.busy > 0

    async def _stop_listeners(self, seconds: float) -> None:
        """Stop the listeners when their last answers are sent, after at most `seconds`."""
        servers = (server.stop(seconds) for server in self._grpc_servers())
        await asyncio.gather(*servers, *self._http_tasks)

    def remove_sockets(self) -> None:
        """Remove the Unix sockets."""
        listeners.remove_unix(self.settings.grpc_socket)
        listeners.remove_unix(self.settings.http_socket)


def _check_port_file(path: Path) -> None:
    """Check that the port file can be written, before the server creates other files.

    Raises:
        ArgumentError: the path is a folder, or its folder does not exist or cannot be written.
    """
    if path.is_dir() or not path.parent.is_dir() or not os.access(path.parent, os.W_OK | os.X_OK):
        raise ArgumentError.expected("port_file", "a path in a folder that can be written", path)


def _write_port_file(path: Path, content: Mapping[str, str | int]) -> None:
    """Write the addresses of the server to a file, atomically.

    Raises:
        ArgumentError: the file cannot be written.
    """
    temporary = path.with_name(f".{path.name}.{os.getpid()}")
    try:
        temporary.write_text(json.dumps(content) + "\n", encoding="utf-8")
        temporary.replace(path)
    except OSError as error:
        temporary.unlink(missing_ok=True)
        found = f"{path} ({error.strerror or error})"
        raise ArgumentError.expected("port_file", "a path that can be written", found) from None


async def _started(settings: Settings) -> Application:
    """Start an application and announce its addresses.

    Raises:
        RevoluteError: it cannot start; the text is one line.
    """
    try:
        application = Application(settings)
        await application.start()
        try:
            application.announce()
        except BaseException:
            await application.stop()
            raise
    except RevoluteError:
        raise
    except Exception as error:
        _log.debug("the server cannot start", exc_info=error)
        raise RevoluteError.expected(
            "server",
            "a start",
            f"{type(error).__name__}: {error}",
            advice="--log-level debug tells where",
        ) from error
    return application


async def serve(settings: Settings) -> None:
    """Run a server until SIGTERM or SIGINT.

    Raises:
        RevoluteError: it cannot start.
    """
    raise_descriptor_limit(descriptors_for(settings))
    loop = asyncio.get_running_loop()
    loop.set_default_executor(started_executor(_THREADS, "revolute"))
    stopping = asyncio.Event()
    application: Application | None = None

    def clean_up() -> None:
        if application is not None:
            application.remove_sockets()

    on_signals(settings.grace, stopping.set, clean_up)
    application = await _started(settings)
    if hasattr(signal, "SIGHUP"):
        loop.add_signal_handler(signal.SIGHUP, application.reload)
        loop.add_signal_handler(signal.SIGUSR1, logs.more, settings.log_level)
    await stopping.wait()
    _log.info("stopping")
    await application.stop()
    if application.hangs:
        # a thread of the store or of the engine would keep the process alive
        exit_now()

"""The server process: one event loop with a gRPC and an HTTP listener over one service.

Start: bind both listeners, then report ready. Stop (SIGTERM, SIGINT): readiness goes off, running calls get
the grace time, what still runs then is cancelled and stops within one control step.
"""

from __future__ import annotations

import asyncio
import contextlib
import json
import logging
import math
import os
import signal
import socket
from collections.abc import Iterator
from pathlib import Path

import grpc
import uvicorn
from fastapi import FastAPI

from revolute.errors import ArgumentError

from . import grpc_services, http_routes
from .service import Service
from .settings import Settings
from .verbs import Verbs

_log = logging.getLogger("revolute.server")


class Application:
    """Both listeners, from bind to stop."""

    def __init__(self, settings: Settings) -> None:
        self.settings = settings
        self.service = Service(settings)
        self.grpc_address = ""
        self.http_address = ""
        self._grpc: grpc.aio.Server | None = None
        self._health: grpc_services.Health | None = None
        self._http: _HttpListener | None = None
        self._http_task: asyncio.Task[None] | None = None

    async def start(self) -> None:
        """Bind and serve both listeners, then say that the server is ready.

        Raises:
            ArgumentError: an address cannot be bound.
        """
        settings = self.settings
        verbs = Verbs(self.service)
        http_socket = _bind(settings.host, settings.http_port)
        self._grpc, self._health = grpc_services.create_server(verbs)
        try:
            grpc_port = self._grpc.add_insecure_port(_join(settings.host, settings.grpc_port))
        except RuntimeError as error:
            http_socket.close()
            raise _taken("grpc_port", settings.host, settings.grpc_port) from error
        await self._grpc.start()
        self._http = _HttpListener(http_routes.create_app(verbs), settings)
        self._http_task = asyncio.create_task(self._http.serve(sockets=[http_socket]), name="http")
        while not self._http.started:
            if self._http_task.done():
                await self._http_task
            await asyncio.sleep(0.005)
        self.grpc_address = _join(settings.host, grpc_port)
        self.http_address = _join(settings.host, http_socket.getsockname()[1])
        self.service.ready = True
        await self._health.set_serving(True)

    def announce(self) -> None:
        """Print where the server listens, in one line, and write the port file if one was asked for."""
        addresses = {"grpc": f"grpc://{self.grpc_address}", "http": f"http://{self.http_address}"}
        if self.settings.port_file:
            path = Path(self.settings.port_file)
            draft = path.with_name(f".{path.name}.{os.getpid()}")
            draft.write_text(json.dumps({**addresses, "pid": os.getpid()}) + "\n", encoding="utf-8")
            draft.replace(path)
        info = self.service.info
        print(
            f"revolute {info.version} serves {addresses['grpc']} and {addresses['http']} "
            f"({self.settings.workers} workers, {self.settings.threads} threads, {info.build['isa']})",
            flush=True,
        )

    async def stop(self) -> None:
        """Refuse new calls, give running ones the grace time, then end both listeners."""
        self.service.ready = False
        assert self._health and self._grpc and self._http and self._http_task
        await self._health.set_serving(False)
        self._http.should_exit = True
        ending = asyncio.create_task(self._grpc.stop(self.settings.grace), name="grpc stop")
        await asyncio.wait(
            (ending, self._http_task), timeout=self.settings.grace, return_when=asyncio.ALL_COMPLETED
        )
        # what still runs stops within one control step, and its callers are told
        self.service.close()
        await asyncio.gather(ending, self._http_task)


class _HttpListener(uvicorn.Server):
    """Uvicorn without signal handlers of its own: the application owns the signals."""

    def __init__(self, app: FastAPI, settings: Settings) -> None:
        super().__init__(
            uvicorn.Config(
                app,
                log_level=settings.log_level,
                access_log=False,
                lifespan="off",
                # a client that stalls in the middle of a request does not hold up the end for ever
                timeout_graceful_shutdown=math.ceil(settings.grace) + 1,
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
    application.announce()
    await stopping.wait()
    _log.info("stopping")
    await application.stop()


def _bind(host: str, port: int) -> socket.socket:
    """Open the HTTP listener's socket, so that a port that is taken is found before anything is served."""
    bare = host.strip("[]")
    family = socket.AF_INET6 if ":" in bare else socket.AF_INET
    # asyncio sends small answers at once (TCP_NODELAY) only on sockets that name their protocol
    listener = socket.socket(family, socket.SOCK_STREAM, socket.IPPROTO_TCP)
    if os.name == "posix":
        listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    try:
        listener.bind((bare, port))
    except OSError as error:
        listener.close()
        raise _taken("http_port", host, port) from error
    listener.setblocking(False)
    return listener


def _taken(name: str, host: str, port: int) -> ArgumentError:
    return ArgumentError.expected(
        name,
        "an address this machine can listen on",
        _join(host, port),
        advice="another program may use the port; 0 takes a free one",
    )


def _join(host: str, port: int) -> str:
    bare = host.strip("[]")
    return f"[{bare}]:{port}" if ":" in bare else f"{bare}:{port}"

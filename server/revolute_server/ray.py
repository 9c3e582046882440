"""The server on Ray Serve: `serve run revolute_server.ray:app`.

Each replica is a server with its own engine. All of them keep sessions, trajectories and remembered requests
in one store, REVOLUTE_STORE, so any replica answers any call, and one that dies loses nothing. Ray Serve's
multiplexing by model or session id is not needed: it is only a hint to its router.

Settings come from the environment (REVOLUTE_STORE=redis://…, REVOLUTE_TOKENS, …), in replicas too. HTTP goes
through Ray's proxy. Ray's gRPC proxy takes no requests that are streams, as ours are. So with
REVOLUTE_GRPC_PORT the replicas of a node listen there themselves, and the kernel divides the connections
among them.
"""

from __future__ import annotations

import argparse
import contextlib
import logging
import os
from collections.abc import AsyncIterator

from fastapi import FastAPI
from ray import serve

from revolute.contract.errors import ArgumentError

from . import settings
from .access import listeners
from .access.admission import Calls
from .access.tokens import Access, TokenFile
from .domain.service import Service
from .grpc import services
from .grpc.connections import Sockets, most_connections
from .grpc.waits import Peers
from .http import routes
from .observe import logs
from .observe.telemetry import Telemetry
from .observe.tracing import tracing_to
from .settings import Settings
from .verbs import Verbs

_log = logging.getLogger("revolute.server")
_GRPC_PORT = "REVOLUTE_GRPC_PORT"


def create_replica() -> FastAPI:
    """Build the application of one replica; it opens its store when it starts.

    Raises:
        ArgumentError: a setting is wrong, or the store is not one that replicas share.
    """
    chosen = settings.from_arguments(argparse.Namespace())
    _check_store(chosen)
    logs.configure(chosen.log_level, chosen.log_format)
    telemetry = Telemetry(tracing_to(chosen.otlp_endpoint))
    service = Service(chosen, telemetry)
    tokens = TokenFile(chosen.tokens) if chosen.tokens else None
    calls = Calls(Access(tokens), telemetry.call, service.pool.check_room, service.rates)
    verbs = Verbs(service)
    app = routes.create_app(verbs, calls)

    @contextlib.asynccontextmanager
    async def lifespan(_app: FastAPI) -> AsyncIterator[None]:
        await service.open()
        try:
            service.serving = True
            async with _grpc_listener(verbs, calls):
                yield
        finally:
            service.serving = False
            service.close()
            await service.close_store()

    app.router.lifespan_context = lifespan
    return app


@contextlib.asynccontextmanager
async def _grpc_listener(verbs: Verbs, calls: Calls) -> AsyncIterator[None]:
    """Serve gRPC at REVOLUTE_GRPC_PORT while the replica runs; without that variable, do nothing.

    Raises:
        ArgumentError: the address cannot be bound.
    """
    if _GRPC_PORT not in os.environ:
        yield
        return
    service, peers = verbs.service, Peers()
    chosen = service.settings
    server, reported = services.create_server(verbs, calls, peers, share_port=True)
    tls = listeners.Tls(chosen) if chosen.tls_cert else None
    port = listeners.bind_grpc(server, chosen.host, chosen.grpc_port, tls, setting="grpc_port")
    sockets = Sockets({port}, most_connections(chosen), peers)

    async def report_health() -> None:
        await reported.set_serving(service.ready)

    await server.start()
    sockets.start()
    service.store_watch.changed = report_health
    await report_health()
    try:
        yield
    finally:
        await reported.set_serving(False)
        await server.stop(chosen.grace)
        sockets.stop()


def _check_store(chosen: Settings) -> None:
    if not (chosen.store or "").startswith(("redis://", "rediss://", "unix://")):
        raise ArgumentError.expected(
            "store",
            "one that replicas share: REVOLUTE_STORE=redis://…",
            chosen.store or "none",
        )


@serve.deployment(num_replicas=2, health_check_period_s=2, graceful_shutdown_timeout_s=20)
@serve.ingress(create_replica)
class Replica:
    """One server behind Ray Serve's proxy."""


app = Replica.bind()  # type: ignore[attr-defined]
"""The application; `serve run` and `serve deploy` take it by its name."""

"""The server on Ray Serve, over HTTP: `serve run revolute_server.ray:app`.

Each replica is a server with its own engine. All of them keep sessions, trajectories and remembered requests
in one store, REVOLUTE_STORE, so any replica answers any call, and one that dies loses nothing. Ray Serve's
multiplexing by model or session id is not needed: it is only a hint to its router.

Settings come from the environment (REVOLUTE_STORE=redis://…, REVOLUTE_TOKENS, …), also of replicas.
"""

from __future__ import annotations

import argparse
import contextlib
import logging
from collections.abc import AsyncIterator

from fastapi import FastAPI
from ray import serve

from revolute.contract.errors import ArgumentError

from . import settings
from .access.admission import Calls
from .access.tokens import Access, TokenFile
from .domain.service import Service
from .http import routes
from .observe import logs
from .observe.telemetry import Telemetry
from .observe.tracing import tracing_to
from .settings import Settings
from .verbs import Verbs

_log = logging.getLogger("revolute.server")


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
    app = routes.create_app(Verbs(service), calls)

    @contextlib.asynccontextmanager
    async def lifespan(_app: FastAPI) -> AsyncIterator[None]:
        await service.open()
        service.serving = True
        try:
            yield
        finally:
            service.serving = False
            service.close()
            await service.close_store()

    app.router.lifespan_context = lifespan
    return app


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

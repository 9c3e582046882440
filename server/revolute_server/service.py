"""Models, sessions and trajectories over one engine, one pool and one memory budget."""

from __future__ import annotations

import dataclasses
import importlib.metadata
import platform

import numpy as np

from revolute_engine import Engine, _native
from revolute_engine._parameters import PARAMETERS

from .engine_pool import EnginePool
from .memory import MemoryBudget
from .models import Models
from .quotas import Quotas
from .sessions import Sessions
from .settings import Settings
from .telemetry import Telemetry
from .trajectories import Trajectories

API_VERSIONS = ("v1",)
FEATURES = (
    "backward.many_cotangents",
    "check_gradient",
    *(f"backward.{name}" for name in PARAMETERS),
    "jacobian",
    "jvp",
    "rollout.params",
    *(f"rollout.params.{name}" for name in PARAMETERS),
    "session.jacobian",
    "stream_rollout",
    "value_and_gradient.loss_terms",
    "value_and_gradient.own_loss",
)

LIMITS = (
    "max_request",
    "max_json",
    "max_model",
    "max_mesh",
    "max_batch",
    "memory",
    "max_models",
    "max_sessions",
    "max_trajectories",
    "queue",
)
"""The settings that GetServerInfo reports as limits."""


@dataclasses.dataclass(frozen=True)
class ServerInfo:
    """What GetServerInfo answers."""

    version: str
    api_versions: tuple[str, ...]
    features: tuple[str, ...]
    limits: dict[str, int]
    build: dict[str, str | int]


class Service:
    """What the server holds."""

    def __init__(self, settings: Settings, telemetry: Telemetry | None = None) -> None:
        self.settings = settings
        self.telemetry = telemetry or Telemetry()
        self.ready = False
        self.engine = Engine(threads=settings.threads)
        self.quotas = Quotas(settings.max_client_calls, settings.max_client_memory)
        self.pool = EnginePool(
            settings.workers,
            settings.queue,
            batch_delay=settings.batch_delay,
            batch_size=settings.batch_size,
            quotas=self.quotas,
            telemetry=self.telemetry,
        )
        self.budget = MemoryBudget(settings.memory, self.quotas)
        self.models = Models(self.pool, self.budget, settings.max_models)
        self.sessions = Sessions(
            self.engine,
            self.pool,
            self.budget,
            self.models,
            settings.max_sessions,
            settings.max_client_sessions,
        )
        self.trajectories = Trajectories(
            self.engine, self.pool, self.budget, self.models, settings.max_trajectories
        )
        self.info = _server_info(settings)
        self.telemetry.metrics.watch(self)

    def close(self) -> None:
        """Stop every engine call within one control step and refuse new ones."""
        self.pool.close()


def _server_info(settings: Settings) -> ServerInfo:
    return ServerInfo(
        version=importlib.metadata.version("revolute-server"),
        api_versions=API_VERSIONS,
        features=FEATURES,
        limits={name: getattr(settings, name) for name in LIMITS},
        build={
            "isa": _native.isa,
            "lanes": _native.lanes,
            "threads": settings.threads,
            "workers": settings.workers,
            "python": platform.python_version(),
            "numpy": np.__version__,
            "machine": platform.machine(),
        },
    )

"""Models, sessions and trajectories over one engine, one pool and one memory budget."""

from __future__ import annotations

import dataclasses
import importlib.metadata
import platform
from collections.abc import Callable, Iterator

import numpy as np

from revolute.contract.codec.shared_memory import AVAILABLE
from revolute.contract.controllers import STEP_INPUTS
from revolute_engine import Engine, native
from revolute_engine.parameters import PARAMETERS

from ..access.rates import Rates
from ..compute.compiler import Compiler
from ..compute.memory_budget import MemoryBudget
from ..compute.pool import EnginePool
from ..compute.quotas import Quotas
from ..observe.telemetry import Telemetry
from ..settings import Settings
from ..store import (
    MODEL,
    SESSION,
    TRAJECTORY,
    Limits,
    MeasuredStore,
    MemoryStore,
    SplitStore,
    default_address,
    open_store,
)
from .derivatives import Derivatives
from .leases import Sweeper
from .measurements import Measurements
from .models import Models
from .request_ids import Requests
from .sessions import Sessions
from .store_watch import StoreWatch
from .trajectories import Trajectories

API_VERSIONS = ("v1",)
FEATURES = (
    "backward.clip",
    "backward.ctrl_bar",
    "backward.many_cotangents",
    "check_gradient",
    "check_gradient.controllers",
    "check_gradient.inputs",
    *(f"backward.{name}" for name in PARAMETERS),
    "jacobian",
    "jvp",
    "jvp.control_tan",
    "measure",
    "measure.inputs",
    "rollout.feedback",
    "rollout.forget",
    "rollout.hold",
    "rollout.measure",
    "rollout.params",
    *(f"rollout.params.{name}" for name in PARAMETERS),
    "rollout.policy",
    "rollout.policy.measured",
    *(f"rollout.{name}" for name in STEP_INPUTS),
    "session.durable",
    "session.feedback",
    "session.hold",
    "session.jacobian",
    "session.measure",
    "session.params",
    "session.policy",
    "session.reset_where",
    *(f"session.{name}" for name in STEP_INPUTS),
    "stream_rollout",
    "stream_rollout.control",
    "value_and_gradient.loss_terms",
    "value_and_gradient.measured_terms",
    "value_and_gradient.on_diverged",
    "value_and_gradient.own_loss",
)

_SHARED_MEMORY = ("shared_memory",)
"""Feature of servers that accept shared memory of clients."""

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
    "store_bytes",
    "lease",
    "max_lease",
    "trajectory_ttl",
    "request_ttl",
    "max_requests",
)
"""The settings that GetServerInfo reports as limits."""


_REQUESTS_SHARE = 8
"""With `--store memory:`, remembered requests may take one part in this many of `--memory`."""


@dataclasses.dataclass(frozen=True)
class ServerInfo:
    """Answer of GetServerInfo."""

    version: str
    api_versions: tuple[str, ...]
    features: tuple[str, ...]
    limits: dict[str, float]
    build: dict[str, str | int]


class Service:
    """The domain of one server: models, sessions, trajectories, and the engine that computes them.

    Attributes:
        serving: whether all listeners serve; set by the application.
    """

    def __init__(self, settings: Settings, telemetry: Telemetry | None = None) -> None:
        self.settings = settings
        self.telemetry = telemetry or Telemetry()
        self.serving = False
        self.engine = Engine(threads=settings.threads)
        self.rates = Rates(
            settings.max_client_rate,
            settings.max_client_steps,
            refused=lambda limit: self.telemetry.metrics.rate_refusals.labels(limit).inc(),
        )
        self.quotas = Quotas(settings.max_client_calls, settings.max_client_memory, self.rates)
        self.pool = EnginePool(
            settings.workers,
            settings.queue,
            batch_delay=settings.batch_delay,
            batch_size=settings.batch_size,
            group=native.lanes * settings.threads,
            nice=settings.engine_nice,
            quotas=self.quotas,
            telemetry=self.telemetry,
        )
        self.budget = MemoryBudget(settings.memory, self.quotas)
        self._kept = self.budget.reserve("what is kept").shared()
        address = settings.store or default_address()
        limits = _limits(settings, in_memory=settings.store == "memory:")
        store = open_store(address, settings.durability, limits, self._kept.grow)
        memory = MemoryStore(_limits(settings, in_memory=True), self._kept.grow)
        self.store = MeasuredStore(SplitStore(store, memory), self.telemetry)
        self.requests = Requests(self.store, settings.request_ttl)
        self.compiler = Compiler(settings, self.budget, self.telemetry)
        self.models = Models(self.compiler, self.pool, self.budget, self.store)
        self.sessions = Sessions(
            self.engine,
            self.pool,
            self.budget,
            self.models,
            self.store,
            settings.lease,
            settings.max_lease,
        )
        self.trajectories = Trajectories(
            self.engine, self.pool, self.budget, self.models, self.store, settings.trajectory_ttl
        )
        self.derivatives = Derivatives(self.engine, self.pool, self.budget, self.models)
        self.measurements = Measurements(
            self.engine, self.pool, self.budget, self.models, self.trajectories, self.sessions
        )
        self._sweeper = Sweeper(self.store, self._forget)
        self.store_watch = StoreWatch(self.store)
        self.info = _server_info(settings)
        self.telemetry.metrics.watch(self._gauges())

    @property
    def ready(self) -> bool:
        """Whether the server takes calls: all listeners serve, and the store answers."""
        return self.serving and self.store_watch.answers

    async def open(self) -> None:
        """Open the store, and start to delete expired records.

        Raises:
            ArgumentError: the store has another format or cannot be reached.
            LimitError: the system cannot start the process that compiles models.
        """
        self.compiler.start()
        try:
            await self.store.open()
        except BaseException:
            self.compiler.close()
            raise
        self._sweeper.start()
        self.store_watch.start()

    def close(self) -> None:
        """Stop all compilations, stop all engine calls within one control step, and refuse new ones."""
        self.compiler.close()
        self.pool.close()

    async def close_store(self) -> None:
        """Close the store; no call may run any longer."""
        await self.store_watch.stop()
        await self._sweeper.stop()
        await self.store.close()

    def _gauges(self) -> Iterator[tuple[str, str, Callable[[], float]]]:
        """Yield name, description and value of each gauge at /metrics."""
        pool, budget = self.pool, self.budget
        yield "revolute_queue_length", "Waiting engine calls.", lambda: pool.waiting
        yield "revolute_workers", "Engine calls that may run at the same time.", lambda: pool.workers
        yield "revolute_workers_busy", "Running engine calls.", lambda: pool.busy
        yield "revolute_compilers_busy", "Running compilations.", lambda: self.compiler.running
        yield "revolute_models", "Stored models.", lambda: len(self.models)
        yield "revolute_sessions", "Stored sessions.", lambda: len(self.sessions)
        yield "revolute_trajectories", "Trajectories kept.", lambda: len(self.trajectories)
        yield "revolute_requests_remembered", "Mutations remembered by id.", lambda: len(self.requests)
        yield (
            "revolute_requests_remembered_bytes",
            "Bytes of these mutations and their answers.",
            lambda: self.requests.kept_bytes,
        )
        yield "revolute_memory_bytes", "Bytes of what is kept and under way.", lambda: budget.used
        yield "revolute_memory_limit_bytes", "Bound on these bytes, --memory.", lambda: budget.limit
        yield "revolute_ready", "1 while new calls are taken.", lambda: float(self.ready)

    def _forget(self, kind: str, key: str) -> None:
        """Drop an expired record from the caches."""
        if kind == SESSION:
            self.sessions.forget(key)
        else:
            self.trajectories.forget(key)


def _limits(settings: Settings, *, in_memory: bool) -> Limits:
    counts = {
        MODEL: settings.max_models,
        SESSION: settings.max_sessions,
        TRAJECTORY: settings.max_trajectories,
    }
    mine = {} if settings.max_client_sessions is None else {SESSION: settings.max_client_sessions}
    request_bytes = settings.request_bytes
    if in_memory:
        # remembered requests must leave memory for models, sessions and trajectories
        request_bytes = min(request_bytes, settings.memory // _REQUESTS_SHARE)
    return Limits(
        counts,
        settings.store_bytes,
        mine,
        settings.max_client_memory,
        requests=settings.max_requests,
        request_bytes=request_bytes,
    )


def _server_info(settings: Settings) -> ServerInfo:
    return ServerInfo(
        version=importlib.metadata.version("revolute-server"),
        api_versions=API_VERSIONS,
        features=(*FEATURES, *_SHARED_MEMORY) if AVAILABLE and not settings.no_shared_memory else FEATURES,
        limits={name: getattr(settings, name) for name in LIMITS},
        build={
            "isa": native.isa,
            "lanes": native.lanes,
            "threads": settings.threads,
            "workers": settings.workers,
            "python": platform.python_version(),
            "numpy": np.__version__,
            "machine": platform.machine(),
        },
    )

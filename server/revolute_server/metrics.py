"""What the server counts and times, for Prometheus at /metrics."""

from __future__ import annotations

from typing import TYPE_CHECKING

from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram, ProcessCollector, generate_latest
from prometheus_client.exposition import CONTENT_TYPE_PLAIN_0_0_4

if TYPE_CHECKING:
    from .service import Service

CONTENT_TYPE = CONTENT_TYPE_PLAIN_0_0_4

_SECONDS = (
    5e-4,
    1e-3,
    2.5e-3,
    5e-3,
    0.01,
    0.025,
    0.05,
    0.1,
    0.25,
    0.5,
    1.0,
    2.5,
    5.0,
    10.0,
    30.0,
    60.0,
    300.0,
)
_ENVIRONMENTS = tuple(float(4**power) for power in range(9))


class Metrics:
    """The metrics of one server, in a registry of their own."""

    def __init__(self) -> None:
        self.registry = CollectorRegistry()
        ProcessCollector(registry=self.registry)
        self.requests = Counter(
            "revolute_requests",
            "Calls that ended, by verb, transport and reason (OK, or that of the error).",
            ("verb", "transport", "reason"),
            registry=self.registry,
        )
        self.request_seconds = self._histogram(
            "revolute_request_seconds",
            "From the first byte of a request to the last one of its answer.",
            ("verb", "transport"),
        )
        self.stage_seconds = {
            "queue": self._histogram("revolute_queue_wait_seconds", "Wait of an engine call for a worker."),
            "compute": self._histogram("revolute_compute_seconds", "Time of an engine call on its worker."),
            "compile": self._histogram("revolute_compile_seconds", "Time to compile a model."),
            "serialise": self._histogram(
                "revolute_serialise_seconds", "Time to write an answer.", ("transport",)
            ),
            "store": self._histogram(
                "revolute_store_seconds", "Time of an operation of the store.", ("operation",)
            ),
        }
        self.batch_environments = self._histogram(
            "revolute_batch_environments", "Environments of one engine call.", buckets=_ENVIRONMENTS
        )

    def watch(self, service: Service) -> None:
        """Report what a service holds, as it is when somebody asks."""
        pool, budget = service.pool, service.budget
        for name, text, value in (
            ("revolute_queue_length", "Engine calls that wait for a worker.", lambda: pool.waiting),
            ("revolute_workers", "Engine calls that may run at once.", lambda: pool.workers),
            ("revolute_workers_busy", "Engine calls that run.", lambda: pool.busy),
            ("revolute_compilers_busy", "Models that are compiled.", lambda: service.compiler.running),
            ("revolute_models", "Models kept.", lambda: len(service.models)),
            ("revolute_sessions", "Sessions kept.", lambda: len(service.sessions)),
            ("revolute_trajectories", "Trajectories kept.", lambda: len(service.trajectories)),
            ("revolute_requests_remembered", "Mutations remembered by id.", lambda: len(service.requests)),
            (
                "revolute_requests_remembered_bytes",
                "Bytes of these mutations and their answers.",
                lambda: service.requests.kept_bytes,
            ),
            ("revolute_memory_bytes", "Bytes of what is kept and under way.", lambda: budget.used),
            ("revolute_memory_limit_bytes", "Bound on these bytes, --memory.", lambda: budget.limit),
            ("revolute_ready", "1 while new calls are taken.", lambda: float(service.ready)),
        ):
            Gauge(name, text, registry=self.registry).set_function(value)

    def text(self) -> bytes:
        """Write all metrics in Prometheus' text format."""
        return generate_latest(self.registry)

    def _histogram(
        self, name: str, text: str, labels: tuple[str, ...] = (), buckets: tuple[float, ...] = _SECONDS
    ) -> Histogram:
        return Histogram(name, text, labels, buckets=buckets, registry=self.registry)

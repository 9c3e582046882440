"""Metrics of the server for Prometheus, at /metrics."""

from __future__ import annotations

from collections.abc import Callable, Iterable

from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram, ProcessCollector, generate_latest
from prometheus_client.exposition import CONTENT_TYPE_PLAIN_0_0_4

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
    """The metrics of one server, in their own registry."""

    def __init__(self) -> None:
        self.registry = CollectorRegistry()
        ProcessCollector(registry=self.registry)
        self.requests = Counter(
            "revolute_requests",
            "Finished calls, by verb, transport and reason (OK or the error's reason).",
            ("verb", "transport", "reason"),
            registry=self.registry,
        )
        self.rate_refusals = Counter(
            "revolute_rate_refusals",
            "Calls that were refused because their client had used up its calls or steps per second.",
            ("limit",),
            registry=self.registry,
        )
        self.request_seconds = self._histogram(
            "revolute_request_seconds",
            "Time from a request's first byte to its answer's last byte.",
            ("verb", "transport"),
        )
        self.stage_seconds = {
            "queue": self._histogram(
                "revolute_queue_wait_seconds", "Time that an engine call waited for a worker."
            ),
            "compute": self._histogram("revolute_compute_seconds", "Time of an engine call on its worker."),
            "compile": self._histogram("revolute_compile_seconds", "Time to compile a model."),
            "serialise": self._histogram(
                "revolute_serialise_seconds", "Time to encode an answer.", ("transport",)
            ),
            "store": self._histogram(
                "revolute_store_seconds", "Time of an operation of the store.", ("operation",)
            ),
        }
        self.batch_environments = self._histogram(
            "revolute_batch_environments", "Environments per engine call.", buckets=_ENVIRONMENTS
        )

    def watch(self, gauges: Iterable[tuple[str, str, Callable[[], float]]]) -> None:
        """Add gauges whose values are read at each request of /metrics.

        Args:
            gauges: name, description and value function of each gauge.
        """
        for name, text, value in gauges:
            Gauge(name, text, registry=self.registry).set_function(value)

    def text(self) -> bytes:
        """Return all metrics in Prometheus' text format."""
        return generate_latest(self.registry)

    def _histogram(
        self, name: str, text: str, labels: tuple[str, ...] = (), buckets: tuple[float, ...] = _SECONDS
    ) -> Histogram:
        return Histogram(name, text, labels, buckets=buckets, registry=self.registry)

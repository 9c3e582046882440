"""Records calls and their stages as metrics and as spans of a trace.

A stage is a part of a call: "queue", "compute", "compile", "serialise" or "store".
"""

from __future__ import annotations

import time
from collections import deque
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from .metrics import Metrics
from .tracing import NoTracing, Tracing

if TYPE_CHECKING:
    from ..access.call import Call

_RECENT = 500
"""Number of recent calls per verb whose durations are kept for quantiles."""

_FAILURES = 50
"""Number of recent failures that are kept."""


@dataclass(frozen=True)
class Failure:
    """A failed call, or a request that was refused before it became a call.

    Attributes:
        ended: time of the failure, in s of the monotonic clock.
        verb: name of the verb.
        transport: "grpc" or "http".
        reason: reason of the error.
        message: text of the error.
        call_id: id of the call in the log; empty if the request did not become a call.
    """

    ended: float
    verb: str
    transport: str
    reason: str
    message: str
    call_id: str = ""


class Telemetry:
    """Receives the calls and stages of a server.

    Args:
        tracing: receives the spans; by default they are dropped.
    """

    def __init__(self, tracing: Tracing | None = None) -> None:
        self.metrics = Metrics()
        self.tracing = tracing or NoTracing()
        self.recent_seconds: dict[str, deque[float]] = {}
        self.failures: deque[Failure] = deque(maxlen=_FAILURES)
        # to find these by their labels takes longer than to add to them
        self._stages: dict[tuple[str, ...], Any] = {}

    @contextmanager
    def call(self, call: Call, headers: Mapping[str, str]) -> Iterator[None]:
        """Count and time a call."""
        started = time.monotonic()
        try:
            with self.tracing.call(call, headers):
                yield
        finally:
            ended = time.monotonic()
            self.metrics.requests.labels(call.verb, call.transport, call.reason).inc()
            self.metrics.request_seconds.labels(call.verb, call.transport).observe(ended - started)
            self.recent_seconds.setdefault(call.verb, deque(maxlen=_RECENT)).append(ended - started)
            if call.reason != "OK":
                self.failures.append(
                    Failure(ended, call.verb, call.transport, call.reason, call.message, call.id)
                )

    def refused(self, transport: str, reason: str, message: str) -> None:
        """Count a request that was refused before it became a call."""
        self.metrics.requests.labels("unknown", transport, reason).inc()
        self.failures.append(Failure(time.monotonic(), "unknown", transport, reason, message))

    def record(self, stage: str, started: int, ended: int, **labels: str) -> None:
        """Record a stage of the current call.

        Args:
            stage: "queue", "compute", "compile", "serialise" or "store".
            started: start time in ns since 1970.
            ended: end time in ns since 1970.
            labels: labels of the stage's metric: `transport` of "serialise", `operation` of "store".
        """
        key = (stage, *labels.values())
        if (child := self._stages.get(key)) is None:
            histogram = self.metrics.stage_seconds[stage]
            child = self._stages[key] = histogram.labels(**labels) if labels else histogram
        child.observe(max(0, ended - started) / 1e9)
        self.tracing.stage(stage, started, ended, labels)

    @contextmanager
    def measure(self, stage: str, **labels: str) -> Iterator[None]:
        """Record the block as a stage of the current call."""
        started = time.time_ns()
        try:
            yield
        finally:
            self.record(stage, started, time.time_ns(), **labels)

"""Seeing inside: one place that calls and their stages report to, as metrics and as spans.

A stage is a part of a call: "queue", "compute", "compile", "serialise" or "store".
"""

from __future__ import annotations

import time
from collections import deque
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING

from .metrics import Metrics
from .tracing import NoTracing, Tracing

if TYPE_CHECKING:
    from ..access.call import Call

_RECENT = 500
"""Calls of a verb whose times are remembered, for its quantiles."""

_FAILURES = 50
"""Calls that failed last and are remembered."""


@dataclass(frozen=True)
class Failure:
    """A call that failed, or a request that was refused before it was one.

    Attributes:
        ended: when, in s of the monotonic clock.
        verb: what was called.
        transport: "grpc" or "http".
        reason: reason of the error.
        message: its text.
        call_id: the call's name in the log; empty for a request that never was one.
    """

    ended: float
    verb: str
    transport: str
    reason: str
    message: str
    call_id: str = ""


class Telemetry:
    """The metrics of a server and where its spans go.

    Args:
        tracing: where spans go; nowhere by default.
    """

    def __init__(self, tracing: Tracing | None = None) -> None:
        self.metrics = Metrics()
        self.tracing = tracing or NoTracing()
        self.recent_seconds: dict[str, deque[float]] = {}
        self.failures: deque[Failure] = deque(maxlen=_FAILURES)

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
        """Count a request that was refused before it was a call."""
        self.metrics.requests.labels("unknown", transport, reason).inc()
        self.failures.append(Failure(time.monotonic(), "unknown", transport, reason, message))

    def record(self, stage: str, started: int, ended: int, **labels: str) -> None:
        """Report a stage of the call that runs now.

        Args:
            stage: "queue", "compute", "compile", "serialise" or "store".
            started: when it began, in ns since 1970.
            ended: when it ended.
            labels: what the stage's metric is split by: `transport` of "serialise", `operation` of "store".
        """
        histogram = self.metrics.stage_seconds[stage]
        (histogram.labels(**labels) if labels else histogram).observe(max(0, ended - started) / 1e9)
        self.tracing.stage(stage, started, ended, labels)

    @contextmanager
    def measure(self, stage: str, **labels: str) -> Iterator[None]:
        """Report a block as a stage."""
        started = time.time_ns()
        try:
            yield
        finally:
            self.record(stage, started, time.time_ns(), **labels)

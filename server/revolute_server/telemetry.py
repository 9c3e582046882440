"""Seeing inside: one place that calls and their stages report to, as metrics and as spans.

A stage is a part of a call: "queue", "compute", "serialise" or "store".
"""

from __future__ import annotations

import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import TYPE_CHECKING

from .metrics import Metrics
from .tracing import NoTracing, Tracing

if TYPE_CHECKING:
    from .call import Call


class Telemetry:
    """The metrics of a server and where its spans go.

    Args:
        tracing: where spans go; nowhere by default.
    """

    def __init__(self, tracing: Tracing | None = None) -> None:
        self.metrics = Metrics()
        self.tracing = tracing or NoTracing()

    @contextmanager
    def call(self, call: Call, headers: Mapping[str, str]) -> Iterator[None]:
        """Count and time a call."""
        started = time.monotonic()
        try:
            with self.tracing.call(call, headers):
                yield
        finally:
            self.metrics.requests.labels(call.verb, call.transport, call.reason).inc()
            self.metrics.request_seconds.labels(call.verb, call.transport).observe(time.monotonic() - started)

    def record(self, stage: str, started: int, ended: int, **labels: str) -> None:
        """Report a stage of the call that runs now.

        Args:
            stage: "queue", "compute", "serialise" or "store".
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

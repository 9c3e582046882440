"""Traces for OpenTelemetry: a span for each call, below the caller's own, and in it one for each stage.

`opentelemetry` comes with the extra `revolute-server[telemetry]` and is loaded only when spans are asked for.
"""

from __future__ import annotations

import importlib.metadata
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, Protocol

from revolute.contract.errors import ArgumentError

if TYPE_CHECKING:
    from ..access.call import Call


class Tracing(Protocol):
    """Where spans go."""

    def call(self, call: Call, headers: Mapping[str, str]) -> Any:
        """Return a context manager that is a call's span."""

    def stage(self, name: str, started: int, ended: int, labels: Mapping[str, str]) -> None:
        """Add a span of the call that runs now; times are in ns since 1970."""

    def close(self) -> None:
        """Send what is left."""


class NoTracing:
    """Makes no spans."""

    @contextmanager
    def call(self, call: Call, headers: Mapping[str, str]) -> Iterator[None]:
        yield

    def stage(self, name: str, started: int, ended: int, labels: Mapping[str, str]) -> None:
        pass

    def close(self) -> None:
        pass


class OpenTelemetry:
    """Makes spans with a tracer provider of OpenTelemetry's SDK.

    Args:
        provider: an `opentelemetry.sdk.trace.TracerProvider`.
    """

    def __init__(self, provider: Any) -> None:
        from opentelemetry import trace
        from opentelemetry.trace.propagation.tracecontext import TraceContextTextMapPropagator

        self._trace = trace
        self._provider = provider
        self._tracer = provider.get_tracer("revolute_server")
        self._propagator = TraceContextTextMapPropagator()

    @contextmanager
    def call(self, call: Call, headers: Mapping[str, str]) -> Iterator[None]:
        """Open a call's span, a child of the span that the header `traceparent` names (W3C)."""
        parent = self._propagator.extract(headers)
        with self._tracer.start_as_current_span(
            call.verb, parent, kind=self._trace.SpanKind.SERVER, record_exception=False
        ) as span:
            try:
                yield
            finally:
                span.update_name(call.verb)
                span.set_attribute("revolute.call_id", call.id)
                span.set_attribute("revolute.transport", call.transport)
                span.set_attribute("revolute.caller", call.caller.name if call.caller else "")
                span.set_attribute("revolute.reason", call.reason)
                if call.reason != "OK":
                    span.set_status(self._trace.StatusCode.ERROR, call.reason)

    def stage(self, name: str, started: int, ended: int, labels: Mapping[str, str]) -> None:
        """Add a finished span below the current one."""
        attributes = {f"revolute.{key}": value for key, value in labels.items()}
        self._tracer.start_span(name, start_time=started, attributes=attributes).end(ended)

    def close(self) -> None:
        """Send what is left; bounded by the exporter's own timeout."""
        self._provider.shutdown()


def tracing_to(endpoint: str | None) -> Tracing:
    """Return where spans go: to a collector over OTLP/HTTP, or nowhere without an endpoint.

    Args:
        endpoint: URL of the collector, e.g. "http://127.0.0.1:4318".

    Raises:
        ArgumentError: the extra is not installed, or the endpoint is no URL.
    """
    if not endpoint:
        return NoTracing()
    if not endpoint.startswith(("http://", "https://")):
        raise ArgumentError.expected("otlp_endpoint", "a URL such as http://127.0.0.1:4318", repr(endpoint))
    try:
        from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter
        from opentelemetry.sdk.resources import Resource
        from opentelemetry.sdk.trace import TracerProvider
        from opentelemetry.sdk.trace.export import BatchSpanProcessor
    except ImportError as error:
        raise ArgumentError.expected(
            "otlp_endpoint",
            "OpenTelemetry beside it",
            f"none ({error})",
            advice="pip install 'revolute-server[telemetry]' brings it "
            "(from a clone: pip install ./client '.[telemetry]')",
        ) from None
    resource = Resource.create(
        {"service.name": "revolute", "service.version": importlib.metadata.version("revolute-server")}
    )
    provider = TracerProvider(resource=resource, shutdown_on_exit=False)
    url = endpoint if endpoint.endswith("/v1/traces") else endpoint.rstrip("/") + "/v1/traces"
    provider.add_span_processor(BatchSpanProcessor(OTLPSpanExporter(endpoint=url, timeout=5)))
    return OpenTelemetry(provider)

"""OpenTelemetry traces: a span for each call, as a child of the client's span, with a child for each stage.

`opentelemetry` comes with the extra `revolute-server[telemetry]`. It is imported only if tracing is on.
"""

from __future__ import annotations

import importlib.metadata
from collections.abc import Iterator, Mapping
from contextlib import AbstractContextManager, contextmanager, nullcontext
from typing import TYPE_CHECKING, Any, Protocol

from revolute.contract.errors import ArgumentError

if TYPE_CHECKING:
    from ..access.call import Call


class Tracing(Protocol):
    """Receives spans."""

    def call(self, call: Call, headers: Mapping[str, str]) -> Any:
        """Return a context manager for the span of a call."""

    def stage(self, name: str, started: int, ended: int, labels: Mapping[str, str]) -> None:
        """Add a span of the current call; times are in ns since 1970."""

    def close(self) -> None:
        """Send the remaining spans."""


class NoTracing:
    """Drops all spans."""

    def call(self, call: Call, headers: Mapping[str, str]) -> AbstractContextManager[None]:
        return nullcontext()

    def stage(self, name: str, started: int, ended: int, labels: Mapping[str, str]) -> None:
        pass

    def close(self) -> None:
        pass


class OpenTelemetry:
    """Creates spans with a tracer provider of OpenTelemetry's SDK.

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
        """Open the span of a call, as a child of the span in the header `traceparent` (W3C)."""
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
        """Send the remaining spans; the exporter's timeout limits the wait."""
        self._provider.shutdown()


def tracing_to(endpoint: str | None) -> Tracing:
    """Return the tracing to a collector over OTLP/HTTP; without an endpoint it drops all spans.

    Args:
        endpoint: URL of the collector, e.g. "http://127.0.0.1:4318".

    Raises:
        ArgumentError: the extra is not installed, or the endpoint is not a URL.
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

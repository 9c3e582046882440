"""Spans of calls and their stages: in memory from a server in this process, and sent to a collector."""

from __future__ import annotations

import asyncio
import threading
import time
from collections.abc import Iterator
from concurrent.futures import Future
from http.server import BaseHTTPRequestHandler, HTTPServer

import grpc
import httpx
import numpy as np
import pytest
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest
from opentelemetry.sdk.trace import ReadableSpan, TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter

import revolute
from revolute.contract.errors import ArgumentError
from revolute.contract.v1 import model_pb2
from revolute_server.app import Application
from revolute_server.observe.tracing import OpenTelemetry, tracing_to
from revolute_server.settings import Settings
from testbed.cart import CART
from testbed.server_process import running_server

TRACE, PARENT = "0af7651916cd43dd8448eb211c80319c", "b7ad6b7169203331"
TRACEPARENT = f"00-{TRACE}-{PARENT}-01"


class _Traced:
    """A server on a loop of its own in this process, and the spans it makes."""

    def __init__(self) -> None:
        self.exporter = InMemorySpanExporter()
        provider = TracerProvider(shutdown_on_exit=False)
        provider.add_span_processor(SimpleSpanProcessor(self.exporter))
        settings = Settings(grpc_port=0, http_port=0, workers=1, threads=1, grace=5.0)
        self.application = Application(settings, OpenTelemetry(provider))
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._loop.run_forever)
        self._thread.start()
        self._do(self.application.start())

    def stop(self) -> None:
        self._do(self.application.stop())
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join(10.0)

    def spans(self, name: str) -> list[ReadableSpan]:
        """Return the spans of a verb and its stages; a span ends after the answer is sent."""
        deadline = time.monotonic() + 10.0
        while True:
            finished = self.exporter.get_finished_spans()
            found = [span for span in finished if span.name == name]
            if found:
                own = {span.context.span_id for span in found}
                return found + [span for span in finished if span.parent and span.parent.span_id in own]
            assert time.monotonic() < deadline, f"no span {name}"
            time.sleep(0.01)

    def _do(self, work: object) -> None:
        future: Future[None] = asyncio.run_coroutine_threadsafe(work, self._loop)  # type: ignore[arg-type]
        future.result(30.0)


@pytest.fixture(scope="module")
def traced() -> Iterator[_Traced]:
    server = _Traced()
    yield server
    server.stop()


@pytest.mark.parametrize("transport", ["grpc", "http"])
def test_a_call_has_a_span_for_each_stage_in_order(traced: _Traced, transport: str) -> None:
    traced.exporter.clear()
    with revolute.connect(traced.application.addresses[transport]) as simulator:
        cart = simulator.load_model(CART)
        simulator.rollout(cart, np.zeros(1), np.zeros(1), np.ones((10, 1)))
        call, *stages = traced.spans("TrajectoryService.Rollout")
    assert call.attributes is not None
    assert call.attributes["revolute.transport"] == transport and call.attributes["revolute.reason"] == "OK"
    assert call.status.is_ok or call.status.is_unset
    assert call.parent is None
    assert [stage.name for stage in stages] == ["store", "queue", "compute", "store", "serialise"]
    times = [call.start_time, *(t for stage in stages for t in (stage.start_time, stage.end_time))]
    assert times[1:] == sorted(times[1:])  # type: ignore[type-var]
    assert {stage.context.trace_id for stage in stages} == {call.context.trace_id}


def test_the_callers_trace_goes_on(traced: _Traced) -> None:
    traced.exporter.clear()
    httpx.get(traced.application.addresses["http"] + "/v1/server", headers={"traceparent": TRACEPARENT})
    target = traced.application.addresses["grpc"].removeprefix("grpc://")
    with grpc.insecure_channel(target) as channel:
        get = channel.unary_unary(
            "/revolute.v1.ModelService/GetModel",
            request_serializer=model_pb2.GetModelRequest.SerializeToString,
            response_deserializer=model_pb2.GetModelResponse.FromString,
        )
        with pytest.raises(grpc.RpcError):
            get(model_pb2.GetModelRequest(model_id="x"), metadata=(("traceparent", TRACEPARENT),), timeout=10)
    for name, reason in (("ServerService.GetServerInfo", "OK"), ("ModelService.GetModel", "NOT_FOUND")):
        span = traced.spans(name)[0]
        assert span.parent is not None and span.attributes is not None
        assert (f"{span.context.trace_id:032x}", f"{span.parent.span_id:016x}") == (TRACE, PARENT)
        assert span.attributes["revolute.reason"] == reason
        assert span.status.is_ok is False or reason == "OK"


@pytest.mark.parametrize("transport", ["grpc", "http"])
def test_the_client_carries_its_programs_trace_on(traced: _Traced, transport: str) -> None:
    traced.exporter.clear()
    tracer = TracerProvider(shutdown_on_exit=False).get_tracer("program")
    with revolute.connect(traced.application.addresses[transport]) as simulator:
        with tracer.start_as_current_span("training") as training:
            simulator.models()
        span = traced.spans("ModelService.ListModels")[0]
        assert span.parent is not None
        own = training.get_span_context()
        assert (span.context.trace_id, span.parent.span_id) == (own.trace_id, own.span_id)
        # without a span of the program's there is none to belong to
        traced.exporter.clear()
        simulator.models()
        assert traced.spans("ModelService.ListModels")[0].parent is None


def test_spans_go_to_a_collector() -> None:
    received: list[str] = []

    class Collector(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            body = self.rfile.read(int(self.headers["content-length"]))
            if self.headers.get("content-encoding") is None and self.path == "/v1/traces":
                request = ExportTraceServiceRequest.FromString(body)
                received.extend(
                    span.name
                    for resource in request.resource_spans
                    for scope in resource.scope_spans
                    for span in scope.spans
                )
            self.send_response(200)
            self.end_headers()

        def log_message(self, *_: object) -> None:
            pass

    with HTTPServer(("127.0.0.1", 0), Collector) as collector:
        thread = threading.Thread(target=collector.serve_forever)
        thread.start()
        try:
            with running_server("--otlp-endpoint", f"http://127.0.0.1:{collector.server_port}") as server:
                with revolute.connect(server.grpc) as simulator:
                    simulator.load_model(CART)
                assert server.stop() == 0
        finally:
            collector.shutdown()
            thread.join(10.0)
    # what is left is sent before the process ends
    assert {"ModelService.RegisterModel", "compute", "queue"} <= set(received)


def test_an_endpoint_that_is_no_url_is_refused() -> None:
    with pytest.raises(ArgumentError, match=r"^otlp_endpoint: expected a URL"):
        tracing_to("collector:4318")

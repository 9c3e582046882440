"""The gRPC transport against servers that are not ours, and its settings."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from typing import Any

import grpc
import pytest

import revolute
from revolute.contract.v1 import server_pb2
from revolute.transports.grpc import GrpcTransport
from revolute.transports.network import Credentials, parse_address


@contextmanager
def serving(answer: Callable[[Any], Any]) -> Iterator[str]:
    """Serve GetServerInfo, answered by a function of the call's context."""
    server = grpc.server(ThreadPoolExecutor(1))
    handler = grpc.unary_unary_rpc_method_handler(
        lambda _request, context: answer(context),
        request_deserializer=server_pb2.GetServerInfoRequest.FromString,
        response_serializer=server_pb2.GetServerInfoResponse.SerializeToString,
    )
    named = grpc.method_handlers_generic_handler("revolute.v1.ServerService", {"GetServerInfo": handler})
    server.add_generic_rpc_handlers((named,))
    port = server.add_insecure_port("127.0.0.1:0")
    server.start()
    yield f"grpc://127.0.0.1:{port}"
    server.stop(0).wait()


FAILURES = {
    grpc.StatusCode.UNAVAILABLE: (revolute.UnavailableError, "got no connection (words of the server)"),
    grpc.StatusCode.UNIMPLEMENTED: (revolute.UnavailableError, "expected a revolute server with API v1"),
    grpc.StatusCode.DEADLINE_EXCEEDED: (
        revolute.DeadlineError,
        "timeout: expected the answer to GetServerInfo",
    ),
    grpc.StatusCode.RESOURCE_EXHAUSTED: (revolute.LimitError, "got words of the server"),
    grpc.StatusCode.CANCELLED: (revolute.UnavailableError, "GetServerInfo was cancelled there"),
    grpc.StatusCode.DATA_LOSS: (revolute.InternalError, "got DATA_LOSS"),
}


@pytest.mark.parametrize("code", FAILURES, ids=lambda code: code.name)
def test_bare_status_codes(code: grpc.StatusCode) -> None:
    kind, text = FAILURES[code]
    with (
        serving(lambda context: context.abort(code, "words of the server")) as address,
        pytest.raises(revolute.RevoluteError) as caught,
    ):
        revolute.connect(address)
    assert type(caught.value) is kind
    assert text in str(caught.value)


def test_token_travels_as_bearer() -> None:
    seen: dict[str, str] = {}

    def answer(context: Any) -> server_pb2.GetServerInfoResponse:
        seen.update(context.invocation_metadata())
        return server_pb2.GetServerInfoResponse(version="9", api_versions=["v1"])

    with serving(answer) as address, revolute.connect(address, token="secret") as simulator:
        assert simulator.server_info()["version"] == "9"
    assert seen["authorization"] == "Bearer secret"


def test_channel_settings(monkeypatch: pytest.MonkeyPatch) -> None:
    options: dict[str, Any] = {}
    plain = grpc.insecure_channel

    def insecure_channel(target: str, pairs: Any) -> grpc.Channel:
        options.clear()
        options.update(pairs)
        return plain(target, pairs)

    monkeypatch.setattr(grpc, "insecure_channel", insecure_channel)
    GrpcTransport(parse_address("grpc://robots.example:1"), timeout=1.0, credentials=Credentials()).close()
    assert options["grpc.keepalive_time_ms"] == 30_000 and options["grpc.keepalive_timeout_ms"] == 10_000
    assert "grpc.enable_http_proxy" not in options
    GrpcTransport(parse_address("grpc://[::1]:1"), timeout=1.0, credentials=Credentials()).close()
    assert options["grpc.enable_http_proxy"] == 0

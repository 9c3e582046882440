"""What does not fit is refused with a hint when to come again, and no client takes the share of others."""

from __future__ import annotations

import asyncio
import contextlib
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import grpc
import numpy as np
import pytest

from benchmarks.service import overload
from revolute.contract.codec.documents import fill_message
from revolute.contract.codec.parts import to_parts
from revolute.contract.codec.status import DETAILS_KEY
from revolute.contract.v1 import error_pb2, trajectory_pb2
from revolute_server.grpc.services import channel_options
from testbed.cart import CART
from testbed.server_process import ServerProcess, running_server
from testbed.token_files import write_tokens
from testbed.wire import GrpcWire, HttpWire

FLAGS = (
    *("--workers", "1", "--threads", "1", "--queue", "1"),
    *("--max-client-sessions", "2", "--max-client-memory", "2MiB"),
)


@pytest.fixture(scope="module")
def small() -> Iterator[ServerProcess]:
    with running_server(*FLAGS) as running:
        yield running


@pytest.fixture(scope="module")
def wire(small: ServerProcess) -> Iterator[GrpcWire]:
    way = GrpcWire(small.grpc_target)
    yield way
    way.close()


@pytest.fixture(scope="module")
def json_wire(small: ServerProcess) -> HttpWire:
    return HttpWire(small.http, npz=False)


@pytest.fixture(scope="module")
def cart(wire: GrpcWire) -> str:
    return wire.call("RegisterModel", {"text": CART})["model_id"]


@pytest.fixture
def full(wire: GrpcWire, cart: str) -> Iterator[None]:
    """Keep the worker and the queue busy with two calls until the test is over."""
    channels = [GrpcWire(wire.target) for _ in range(2)]
    handles = [wire.call("CreateSession", {"model_id": cart, "batch": 1})["session_id"] for _ in channels]

    def forever(channel: GrpcWire, handle: str) -> None:
        while True:
            try:
                channel.call("Step", {"session_id": handle, "ctrl": np.ones(1), "steps": 10**9})
            except grpc.RpcError as error:
                # the rollouts that look for a refusal may have the last place for a moment
                if error.code() is not grpc.StatusCode.RESOURCE_EXHAUSTED:
                    return
            except ValueError:
                return

    threads = [threading.Thread(target=forever, args=pair) for pair in zip(channels, handles, strict=True)]
    for thread in threads:
        thread.start()
    try:
        _wait_for_a_refusal(wire, cart)
        yield
    finally:
        for channel in channels:
            channel.close()
        for thread in threads:
            thread.join(10.0)
        for handle in handles:
            wire.call("DeleteSession", {"session_id": handle})


def _rollout(cart: str, steps: int = 3) -> dict[str, object]:
    return {"model_id": cart, "qpos": np.zeros(1), "qvel": np.zeros(1), "ctrl": np.zeros((steps, 1))}


def _wait_for_a_refusal(wire: GrpcWire, cart: str) -> None:
    for _ in range(100):
        try:
            wire.call("Rollout", _rollout(cart), timeout=0.1)
        except grpc.RpcError as error:
            if error.code() is grpc.StatusCode.RESOURCE_EXHAUSTED:
                return
        time.sleep(0.02)
    raise AssertionError("the queue never filled")


@pytest.mark.usefixtures("full")
def test_a_refusal_says_when_to_come_again(wire: GrpcWire, json_wire: HttpWire, cart: str) -> None:
    with pytest.raises(grpc.RpcError) as caught:
        wire.call("Rollout", _rollout(cart))
    assert caught.value.code() is grpc.StatusCode.RESOURCE_EXHAUSTED
    status = error_pb2.Status.FromString(dict(caught.value.trailing_metadata())[DETAILS_KEY])
    kinds = [detail.type_url for detail in status.details]
    assert kinds == ["type.googleapis.com/google.rpc.ErrorInfo", "type.googleapis.com/google.rpc.RetryInfo"]
    delay = error_pb2.RetryInfo.FromString(status.details[1].value).retry_delay
    assert 0.01 <= delay.seconds + 1e-9 * delay.nanos <= 60

    answer = json_wire.send("Rollout", _rollout(cart))
    assert answer.status_code == 429
    assert int(answer.headers["retry-after"]) >= 1
    assert 0.01 <= answer.json()["retry_after"] <= 60


@pytest.mark.usefixtures("full")
def test_what_will_be_refused_is_not_read(wire: GrpcWire, json_wire: HttpWire) -> None:
    """These requests are none; a server with room would say so."""
    for verb in ("TrajectoryService/Rollout", "TrajectoryService/CheckGradient", "SessionService/Step"):
        call = wire.channel.stream_stream(f"/revolute.v1.{verb}")
        with pytest.raises(grpc.RpcError) as caught:
            list(call(iter([b"\xff"])))
        assert caught.value.code() is grpc.StatusCode.RESOURCE_EXHAUSTED
    for path in ("/v1/trajectories", "/v1/stream-rollout", "/v1/check-gradient"):
        assert json_wire.client.post(path, content=b"{").status_code == 429
    # what needs no worker is answered as ever
    assert json_wire.client.post("/v1/sessions", content=b"{").status_code == 400


@pytest.mark.usefixtures("full")
def test_a_client_that_is_still_sending_gets_the_reason(small: ServerProcess, cart: str) -> None:
    """That of grpc.aio says INTERNAL where the answer overtakes a part of the request."""
    start = trajectory_pb2.RolloutInputs()
    parts = to_parts(trajectory_pb2.RolloutRequest, start, fill_message(start, _rollout(cart, 400_000)))
    request = [part.SerializeToString() for part in parts]
    assert len(request) > 3

    async def refused() -> set[grpc.StatusCode]:
        async with grpc.aio.insecure_channel(small.grpc_target) as channel:
            method: Any = channel.stream_stream("/revolute.v1.TrajectoryService/Rollout")
            calls = [method(iter(request)) for _ in range(10)]
            return {await call.code() for call in calls}

    assert asyncio.run(refused()) == {grpc.StatusCode.RESOURCE_EXHAUSTED}


@pytest.mark.usefixtures("full")
def test_a_full_server_still_says_that_it_lives(small: ServerProcess, json_wire: HttpWire) -> None:
    assert json_wire.client.get("/livez").status_code == 200
    assert json_wire.client.get("/readyz").status_code == 200


def test_each_client_has_its_share_of_sessions(two_clients: tuple[GrpcWire, GrpcWire]) -> None:
    greedy, modest = two_clients
    model = greedy.call("RegisterModel", {"text": CART})["model_id"]
    request = {"model_id": model, "batch": 1}
    held = [greedy.call("CreateSession", request)["session_id"] for _ in range(2)]
    error, code = greedy.error("CreateSession", request)
    assert code == "RESOURCE_EXHAUSTED" and "--max-client-sessions" in str(error)
    assert modest.call("CreateSession", request)
    greedy.call("DeleteSession", {"session_id": held[0]})
    assert greedy.call("CreateSession", request)


def test_each_client_has_its_share_of_memory(two_clients: tuple[GrpcWire, GrpcWire]) -> None:
    greedy, modest = two_clients
    request = _rollout(greedy.call("RegisterModel", {"text": CART})["model_id"], 20_000)
    for _ in range(20):
        try:
            greedy.call("Rollout", request)
        except grpc.RpcError:
            break
    error, code = greedy.error("Rollout", request)
    assert code == "RESOURCE_EXHAUSTED" and "--max-client-memory" in str(error)
    assert modest.call("Rollout", request)


@pytest.fixture
def two_clients(tmp_path: Path) -> Iterator[tuple[GrpcWire, GrpcWire]]:
    """Return the ways of two tokens to one server."""
    tokens = write_tokens(tmp_path / "tokens", {"greedy": "run", "modest": "run"})
    with running_server(*FLAGS, "--tokens", str(tmp_path / "tokens")) as server:
        greedy, modest = (GrpcWire(server.grpc_target, token) for token in tokens.values())
        yield greedy, modest
        greedy.close()
        modest.close()


@contextlib.contextmanager
def _stuck_server(release: threading.Event) -> Iterator[str]:
    """Serve, with the server's settings of gRPC, a method that blocks the event loop until it is released."""
    started, ports = threading.Event(), []

    async def method(request: bytes, context: grpc.aio.ServicerContext) -> bytes:
        release.wait(30.0)
        return request

    async def serve() -> None:
        server = grpc.aio.server(options=channel_options())
        methods = {"Method": grpc.unary_unary_rpc_method_handler(method)}
        server.add_generic_rpc_handlers((grpc.method_handlers_generic_handler("Test", methods),))
        ports.append(server.add_insecure_port("127.0.0.1:0"))
        await server.start()
        end = asyncio.Event()
        ends.append((asyncio.get_running_loop(), end))
        started.set()
        await end.wait()
        await server.stop(None)

    ends: list[tuple[asyncio.AbstractEventLoop, asyncio.Event]] = []
    thread = threading.Thread(target=lambda: asyncio.run(serve()))
    thread.start()
    started.wait(30.0)
    try:
        yield f"127.0.0.1:{ports[0]}"
    finally:
        release.set()
        for loop, end in ends:
            loop.call_soon_threadsafe(end.set)
        thread.join()


def test_calls_that_wait_for_the_event_loop_are_not_dropped() -> None:
    """gRPC by itself ends some beyond a thousand as CANCELLED, which says nothing and is not tried again."""
    release = threading.Event()
    with _stuck_server(release) as target, grpc.insecure_channel(target) as channel:
        call = channel.unary_unary("/Test/Method")
        calls = [call.future(b"") for _ in range(3000)]
        time.sleep(0.5)
        release.set()
        assert {call.code() for call in calls} == {grpc.StatusCode.OK}


def test_ten_times_too_many_calls() -> None:
    """The short form of benchmarks/service/overload.py."""
    with running_server(*overload.FLAGS) as server:
        report = overload.run(server, seconds=3.0)
    assert report.answered > 0
    assert report.refused > report.answered
    assert report.failed == {}
    assert len(report.health_ms) > 10
    assert report.most_bytes[0] < overload.CAP and report.most_bytes[1] < overload.CAP
    assert report.normal_after < 60

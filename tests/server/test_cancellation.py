"""A caller that gives up stops the physics, leaves the session as it was, and frees its place."""

from __future__ import annotations

import threading
import time

import grpc
import httpx
import numpy as np
import pytest

from benchmarks.service import cancel
from testbed.cart import CART
from testbed.server_process import ServerProcess, running_server
from testbed.wire import GrpcWire, numbers

H = 1e-3
FOREVER = 10**8


@pytest.fixture(scope="module")
def busy() -> ServerProcess:  # type: ignore[misc]
    """Return a server of its own, whose processor time only these tests use."""
    with running_server("--workers", "2", "--threads", "1") as running:
        yield running


@pytest.fixture(scope="module")
def wire(busy: ServerProcess) -> GrpcWire:
    return GrpcWire(busy.grpc_target)


@pytest.fixture(scope="module")
def session_id(wire: GrpcWire) -> str:
    cart = wire.call("RegisterModel", {"text": CART})["model_id"]
    return wire.call("CreateSession", {"model_id": cart, "batch": 1})["session_id"]


def assert_idle(server: ServerProcess) -> None:
    """Check that processor time stops growing within a second."""
    time.sleep(1.0)
    before = server.cpu_seconds()
    time.sleep(0.5)
    assert server.cpu_seconds() - before < 0.1


def assert_whole(wire: GrpcWire, session_id: str) -> None:
    """Check that the state fits its own step count: x = h^2 k (k + 1) / 2, v = h k."""
    state = wire.call("GetState", {"session_id": session_id})
    k = state["step_count"]
    np.testing.assert_allclose(numbers(state["qpos"]), [[H * H * k * (k + 1) / 2]], rtol=1e-12, atol=0)
    np.testing.assert_allclose(numbers(state["qvel"]), [[H * k]], rtol=1e-12, atol=0)


def assert_serves(wire: GrpcWire, session_id: str) -> None:
    handle = {"session_id": session_id}
    wire.call("Reset", handle)
    state = wire.call("Step", {**handle, "ctrl": np.ones(1), "steps": 1000}, timeout=10.0)
    np.testing.assert_allclose(numbers(state["qpos"]), [[0.5005]], rtol=1e-12)


def test_a_deadline_over_grpc(busy: ServerProcess, wire: GrpcWire, session_id: str) -> None:
    def give_up() -> None:
        for _ in range(3):
            started = time.monotonic()
            with pytest.raises(grpc.RpcError) as caught:
                wire.call(
                    "Step", {"session_id": session_id, "ctrl": np.ones(1), "steps": FOREVER}, timeout=0.3
                )
            assert caught.value.code() is grpc.StatusCode.DEADLINE_EXCEEDED
            assert 0.25 < time.monotonic() - started < 10.0

    threads = [threading.Thread(target=give_up) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert_idle(busy)
    assert_whole(wire, session_id)
    assert_serves(wire, session_id)


def test_a_closed_connection_over_http(busy: ServerProcess, wire: GrpcWire, session_id: str) -> None:
    for _ in range(3):
        with pytest.raises(httpx.TimeoutException), httpx.Client(base_url=busy.http, timeout=0.3) as client:
            client.post(f"/v1/sessions/{session_id}/step", json={"ctrl": [1.0], "steps": FOREVER})
    assert_idle(busy)
    assert_whole(wire, session_id)
    assert_serves(wire, session_id)


def test_a_cancelled_rollout_keeps_nothing(busy: ServerProcess, wire: GrpcWire) -> None:
    cart = wire.call("RegisterModel", {"text": CART})["model_id"]
    document = {"model_id": cart, "qpos": np.zeros(1), "qvel": np.zeros(1), "ctrl": np.ones((64, 100_000, 1))}
    for _ in range(3):
        with pytest.raises(grpc.RpcError):
            wire.call("Rollout", document, timeout=0.25)
    assert_idle(busy)


def test_a_check_of_gradients_stops(busy: ServerProcess, wire: GrpcWire) -> None:
    cart = wire.call("RegisterModel", {"text": CART})["model_id"]
    check = {"model_id": cart, "steps": 20_000, "directions": 30}
    for _ in range(2):
        with pytest.raises(grpc.RpcError) as caught:
            wire.call("CheckGradient", check, timeout=0.3)
        assert caught.value.code() is grpc.StatusCode.DEADLINE_EXCEEDED
        with pytest.raises(httpx.TimeoutException), httpx.Client(base_url=busy.http, timeout=0.3) as client:
            client.post("/v1/check-gradient", json=check)
    assert_idle(busy)
    assert wire.call("CheckGradient", {"model_id": cart, "steps": 3})["passed"]


def test_more_dead_clients_than_workers_block_nobody(
    busy: ServerProcess, wire: GrpcWire, session_id: str
) -> None:
    for _ in range(6):
        channel = GrpcWire(busy.grpc_target)
        cart = channel.call("RegisterModel", {"text": CART})["model_id"]
        session = channel.call("CreateSession", {"model_id": cart, "batch": 1})["session_id"]
        thread = threading.Thread(target=_abandoned, args=(channel, session))
        thread.start()
        time.sleep(0.05)
        channel.close()
        thread.join(10.0)
    assert_serves(wire, session_id)


def _abandoned(channel: GrpcWire, session_id: str) -> None:
    with pytest.raises((grpc.RpcError, ValueError)):
        channel.call("Step", {"session_id": session_id, "ctrl": np.ones(1), "steps": FOREVER})


def test_cancels_at_random_moments_leave_nothing(busy: ServerProcess) -> None:
    """The short form of benchmarks/service/cancel.py; a run that cannot stop is a TimeoutError there."""
    report = cancel.run(busy, count=32, seed=1)
    assert sum(report.given_up.values()) >= 16
    assert not any(report.left.values()), report.left

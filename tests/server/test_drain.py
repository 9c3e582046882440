"""SIGTERM under load: the short form of `python -m benchmarks.service.drain`."""

from __future__ import annotations

import contextlib
import signal
import socket
import threading
import time
from collections.abc import Callable, Iterator
from typing import Any

import grpc
import numpy as np
import pytest

import revolute
from benchmarks.service.drain import drain_once
from revolute.contract.codec.documents import fill_message
from revolute.contract.codec.parts import to_parts
from revolute.contract.v1 import trajectory_pb2
from testbed.cart import CART
from testbed.server_process import ServerProcess, running_server
from testbed.stubs import Stub
from testbed.wire import GrpcWire


@pytest.mark.parametrize("seed", range(4))
def test_every_call_is_answered_or_refused_as_draining(seed: int) -> None:
    found = drain_once(seed)
    assert found.good, found
    assert found.answered > 0
    # whoever calls a draining server is told so
    assert found.refused > 0


def in_thread(call: Callable[[], object], found: list[object]) -> threading.Thread:
    """Start a call in a thread; what comes of it is appended to `found`."""

    def run() -> None:
        try:
            found.append(call())
        except BaseException as error:
            found.append(error)

    thread = threading.Thread(target=run, daemon=True)
    thread.start()
    return thread


@pytest.mark.parametrize("scheme", ["grpc", "http"])
def test_a_call_that_outlasts_the_grace_may_be_tried_again(scheme: str) -> None:
    with running_server("--grace", "0.2") as server:
        simulator = revolute.connect(getattr(server, scheme), retries=0)
        model = simulator.load_model("cartpole")
        session = simulator.session(model, 4)
        found: list[object] = []
        stepping = in_thread(lambda: session.step(np.zeros(1), steps=10**8), found)
        waiting, asked = threading.Event(), threading.Event()

        def loss(states: Any) -> tuple[float, np.ndarray, None]:
            asked.set()
            waiting.wait(20)
            return 0.0, np.ones_like(states.qpos), None

        zeros = np.zeros(2)
        own = in_thread(
            lambda: simulator.value_and_gradient(model, zeros, zeros, np.ones((5, 1)), loss), found
        )
        assert asked.wait(20)
        server.process.send_signal(signal.SIGTERM)
        server.process.wait(20)
        waiting.set()
        for thread in (stepping, own):
            thread.join(20)
        assert [type(error) for error in found] == [revolute.UnavailableError] * 2
        assert all(not error.permanent for error in found if isinstance(error, revolute.UnavailableError))


@pytest.mark.parametrize("kind", ["computes", "waits for a part", "waits for cotangents", "sends"])
def test_a_grpc_call_that_outlasts_the_grace_ends_as_unavailable(kind: str) -> None:
    """A bare client sees the code: CANCELLED would be its own doing."""
    with running_server("--grace", "0.2") as server:
        wire = GrpcWire(server.grpc_target)
        cart = wire.call("RegisterModel", {"text": CART})["model_id"]
        inputs = {"model_id": cart, "qpos": np.zeros(1), "qvel": np.zeros(1)}
        end = threading.Event()
        if kind == "computes":
            session_id = wire.call("CreateSession", {"model_id": cart, "batch": 1})["session_id"]
            call = wire.start("Step", {"session_id": session_id, "ctrl": np.ones(1), "steps": 10**12})
        elif kind == "sends":
            # 160 MB, of which the client takes the first part
            call = wire.start("Rollout", {**inputs, "ctrl": np.ones((10**7, 1))})
            next(call)
        else:
            call = unfinished(wire, inputs, end, own_loss=kind == "waits for cotangents")
        time.sleep(0.5)
        server.process.send_signal(signal.SIGTERM)
        assert server.process.wait(20) == 0
        end.set()
        with pytest.raises(grpc.RpcError) as caught:
            list(call)
        assert caught.value.code() is grpc.StatusCode.UNAVAILABLE
        # behind bytes that the client does not take, our own words do not reach it
        assert "stopping" in caught.value.details() or kind == "sends"
        assert "incident" not in server.log.read_text()
        wire.close()


def unfinished(wire: GrpcWire, inputs: dict[str, Any], end: threading.Event, *, own_loss: bool) -> Any:
    """Begin ValueAndGradient: all of a request without a loss, or the first part of a rollout's; return the
    call, whose client sends nothing more until `end`."""
    start = trajectory_pb2.ValueAndGradientInputs()
    values = fill_message(start, {"inputs": {**inputs, "ctrl": np.ones((1000, 1))}})
    parts = to_parts(
        trajectory_pb2.ValueAndGradientRequest, start, values, chunk_bytes=100_000 if own_loss else 100
    )

    def requests() -> Iterator[trajectory_pb2.ValueAndGradientRequest]:
        yield from parts if own_loss else [next(parts)]
        end.wait(60)

    call = Stub(trajectory_pb2, wire.channel).ValueAndGradient(requests())
    if own_loss:
        next(call)
    return call


def test_an_upload_that_outlasts_the_grace_is_refused_as_a_problem() -> None:
    with running_server("--grace", "0.2") as server, half_sent(server) as connection:
        server.process.send_signal(signal.SIGTERM)
        answer = b"".join(iter(lambda: connection.recv(4096), b""))
        assert answer.startswith(b"HTTP/1.1 503 ")
        assert b'"reason": "UNAVAILABLE"' in answer and b"one that is stopping" in answer


@contextlib.contextmanager
def half_sent(server: ServerProcess) -> Iterator[socket.socket]:
    """Begin a request whose body does not come."""
    host, port = server.http.removeprefix("http://").split(":")
    with socket.create_connection((host, int(port)), timeout=20) as connection:
        head = "POST /v1/jacobian HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n"
        connection.sendall(f"{head}Content-Length: 100\r\nExpect: 100-continue\r\n\r\n".encode())
        # the server asks for the body, so the request is under way
        assert connection.recv(4096).startswith(b"HTTP/1.1 100 ")
        connection.sendall(b"{")
        yield connection


def test_a_call_whose_simulator_is_closed_is_cancelled(server: ServerProcess) -> None:
    simulator = revolute.connect(server.grpc)
    session = simulator.session(simulator.load_model("cartpole"), 4)
    found: list[object] = []
    thread = in_thread(lambda: session.step(np.zeros(1), steps=10**8), found)
    thread.join(0.5)
    simulator.close()
    thread.join(20)
    assert [type(error) for error in found] == [revolute.CancelledError]

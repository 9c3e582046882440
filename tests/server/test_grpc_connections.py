"""Connections of gRPC that are silent, and requests that stop half-way: ended in time, in nobody's way."""

from __future__ import annotations

import contextlib
import socket
import sys
import threading
import time
from collections.abc import Iterator
from pathlib import Path

import grpc
import httpx
import numpy as np
import pytest
from grpc_health.v1 import health_pb2, health_pb2_grpc

import revolute
from revolute.contract.codec.documents import fill_message
from revolute.contract.codec.parts import to_parts
from revolute.contract.codec.status import DETAILS_KEY, decode_status
from revolute.contract.errors import DeadlineError
from revolute.contract.v1 import trajectory_pb2
from revolute_server.access.connections import Connections, most_connections
from revolute_server.settings import Settings
from testbed.cart import CART
from testbed.server_process import ServerProcess, running_server
from testbed.stubs import Stub

PREFACE = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"
SETTINGS = b"\x00\x00\x00\x04\x00\x00\x00\x00\x00"
QUICK = ("--header-timeout", "1", "--body-timeout", "1", "--idle-timeout", "2")
on_linux = pytest.mark.skipif(sys.platform != "linux", reason="descriptors are looked for in /proc")


@pytest.fixture(scope="module")
def quick() -> Iterator[ServerProcess]:
    with running_server(*QUICK) as server:
        yield server


def connected(server: ServerProcess, scheme: str = "grpc") -> socket.socket:
    host, port = getattr(server, scheme).partition("://")[2].split(":")
    return socket.create_connection((host, int(port)), timeout=15)


def seconds_until_closed(client: socket.socket) -> float:
    began = time.monotonic()
    with contextlib.suppress(ConnectionResetError):
        while client.recv(65536):
            pass
    return time.monotonic() - began


def check_health(server: ServerProcess, seconds: float) -> None:
    """Ask for gRPC's health on a connection of its own."""
    with grpc.insecure_channel(server.grpc_target) as channel:
        stub = health_pb2_grpc.HealthStub(channel)
        answer = stub.Check(health_pb2.HealthCheckRequest(), timeout=seconds, wait_for_ready=True)
    assert answer.status == health_pb2.HealthCheckResponse.SERVING


@pytest.mark.parametrize("sent", [b"", PREFACE[:10], PREFACE, PREFACE + SETTINGS])
def test_silent_connections_are_closed(quick: ServerProcess, sent: bytes) -> None:
    with connected(quick) as client:
        client.sendall(sent)
        assert 0.5 < seconds_until_closed(client) < 8


def test_a_connection_without_calls_is_closed_and_opens_again(quick: ServerProcess) -> None:
    with revolute.connect(quick.grpc) as simulator:
        simulator.models()
        time.sleep(4)
        simulator.models()


def rollout_parts(model_id: str, steps: int) -> list[trajectory_pb2.RolloutRequest]:
    document = {"model_id": model_id, "qpos": np.zeros(1), "qvel": np.zeros(1), "ctrl": np.zeros((steps, 1))}
    start = trajectory_pb2.RolloutInputs()
    return list(to_parts(trajectory_pb2.RolloutRequest, start, fill_message(start, document)))


@pytest.mark.parametrize("count", [0, 1, 2])
def test_a_request_that_stops_half_way_ends(quick: ServerProcess, count: int) -> None:
    """Before its first part, and after some of its parts."""
    with revolute.connect(quick.grpc) as simulator:
        parts = rollout_parts(simulator.load_model(CART).id, 1_000_000)
    assert len(parts) > 3
    before = quick.metric("revolute_memory_bytes")
    end = threading.Event()

    def some() -> Iterator[trajectory_pb2.RolloutRequest]:
        yield from parts[:count]
        end.wait(20)

    with grpc.insecure_channel(quick.grpc_target) as channel:
        began = time.monotonic()
        with pytest.raises(grpc.RpcError) as raised:
            list(Stub(trajectory_pb2, channel).Rollout(some()))
        end.set()
    assert 0.5 < time.monotonic() - began < 8
    assert raised.value.code() is grpc.StatusCode.DEADLINE_EXCEEDED
    error = decode_status(dict(raised.value.trailing_metadata())[DETAILS_KEY])
    assert isinstance(error, DeadlineError) and error.argument == "request"
    assert "--body-timeout 1.0 s" in str(error)
    assert quick.metric("revolute_memory_bytes") <= before


def test_a_client_that_computes_between_its_messages_has_time() -> None:
    """A loss of the client's own may take longer than a pause in a request may."""

    def loss(states: revolute.States) -> tuple[float, np.ndarray, None]:
        time.sleep(2.5)
        return 0.0, np.ones((4, 1)), None

    with running_server("--body-timeout", "1") as server, revolute.connect(server.grpc) as simulator:
        cart = simulator.load_model(CART)
        value, _ = simulator.value_and_gradient(cart, np.zeros(1), np.zeros(1), np.ones((3, 1)), loss)
        assert value == 0.0


@on_linux
@pytest.mark.parametrize("scheme", ["grpc", "http"])
def test_silent_sockets_block_neither_transport_however_few_descriptors(
    scheme: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("REVOLUTE_TEST_DESCRIPTORS", "120")
    limited = "tests.server.limited_descriptors"
    with running_server(module=limited) as server, contextlib.ExitStack() as sockets:
        for _ in range(200):
            with contextlib.suppress(OSError):
                sockets.enter_context(connected(server, scheme))
        for _ in range(3):
            assert httpx.get(server.http + "/livez", timeout=5).status_code == 200
            check_health(server, 5)
        # they come again and again
        for _ in range(3):
            for _ in range(40):
                with contextlib.suppress(OSError):
                    sockets.enter_context(connected(server, scheme))
            assert httpx.get(server.http + "/livez", timeout=5).status_code == 200
            check_health(server, 5)
        assert len(list(Path(f"/proc/{server.process.pid}/fd").iterdir())) < 120
        # work goes on as well, files and all
        with revolute.connect(server.grpc) as simulator:
            simulator.rollout(simulator.load_model(CART), np.zeros(1), np.zeros(1), np.ones((3, 1)))


def _is_closed(client: socket.socket) -> bool:
    client.setblocking(False)
    try:
        while client.recv(65536):
            pass
    except BlockingIOError:
        return False
    except OSError:
        pass
    return True


@on_linux
def test_a_connection_with_a_call_stays_where_silent_ones_go() -> None:
    with running_server("--max-connections", "8") as server, contextlib.ExitStack() as stack:
        channel = stack.enter_context(grpc.insecure_channel(server.grpc_target))
        watch = health_pb2_grpc.HealthStub(channel).Watch(health_pb2.HealthCheckRequest())
        next(watch)
        silent = []
        for _ in range(20):
            with contextlib.suppress(OSError):
                silent.append(stack.enter_context(connected(server)))
        time.sleep(2.5)
        closed = [client for client in silent if _is_closed(client)]
        # a quarter of the slots is free again, one is the call's
        assert len(closed) == len(silent) - 5
        assert watch.is_active()
        watch.cancel()


def test_the_number_of_connections_follows_the_descriptors(monkeypatch: pytest.MonkeyPatch) -> None:
    resource = pytest.importorskip("resource")
    for soft, most in ((64, 4), (120, 32), (1024, 484), (4096, 1024), (resource.RLIM_INFINITY, 1024)):
        monkeypatch.setattr(resource, "getrlimit", lambda _, soft=soft: (soft, soft))
        assert most_connections(Settings()) == most
    assert most_connections(Settings(max_connections=7)) == 7


class FakePeer:
    """A connection that notes that it was closed."""

    def __init__(self, silence: float = 0.0) -> None:
        self.silence = silence
        self.is_closed = False

    def abort(self) -> None:
        self.is_closed = True

    def sweep(self, seconds: float) -> None: ...


def test_the_longest_wait_makes_room() -> None:
    connections = Connections(3)
    peers = [FakePeer() for _ in range(3)]
    slots = [connections.take(peer) for peer in peers]
    assert all(slots)
    first, second, _ = slots
    assert first and second
    first.set_waiting(False)
    first.set_waiting(True)  # now behind the others
    assert connections.take(FakePeer()) is not None
    assert [peer.is_closed for peer in peers] == [False, True, False]
    second.release()
    second.set_waiting(True)  # one that has left stays away
    assert len(connections) == 3
    busy = Connections(2)
    slow, quick = FakePeer(silence=5.0), FakePeer(silence=0.1)
    for peer in (slow, quick):
        slot = busy.take(peer)
        assert slot is not None
        slot.set_waiting(False)
    assert busy.take(FakePeer()) is not None
    assert slow.is_closed and not quick.is_closed

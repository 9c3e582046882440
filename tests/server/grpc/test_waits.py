"""Clients that keep the server waiting: their bytes count, their time is limited, their places are free."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Iterator

import pytest

from ..conftest import CART
from ..http2 import PING, Http2, frame
from ..processes import ServerProcess, running_server
from ..wire import GrpcWire

MIB = 1024**2
STEP = "/revolute.v1.SessionService/Step"
CHECK = "/grpc.health.v1.Health/Check"
PATIENCE = 15.0


@pytest.fixture(scope="module")
def small() -> Iterator[ServerProcess]:
    flags = ("--memory", "16MiB", "--max-batch", "100000", "--answer-timeout", "2", "--body-timeout", "2")
    with running_server(*flags, "--threads", "1") as server:
        yield server


@pytest.fixture
def wire(small: ServerProcess) -> Iterator[GrpcWire]:
    wire = GrpcWire(small.grpc_target)
    yield wire
    wire.close()


def wait_for(condition: Callable[[], object]) -> None:
    until = time.monotonic() + PATIENCE
    while not condition():
        assert time.monotonic() < until, "it did not happen"
        time.sleep(0.05)


@pytest.mark.parametrize("path", [STEP, "/revolute.v1.SessionService/GetState", CHECK])
def test_half_messages_count_as_memory_and_the_rest_is_refused(
    small: ServerProcess, wire: GrpcWire, path: str
) -> None:
    before = small.metric("revolute_memory_bytes")
    with Http2(small.grpc_target) as client:
        for stream in range(1, 20, 2):
            client.call(path, stream)
            client.message(bytes(2 * MIB - 4096), 2 * MIB - 1, stream, end=False)
        wait_for(lambda: client.is_open() and len(client.ended) >= 4)
        assert 8 * MIB < small.metric("revolute_memory_bytes") <= 16 * MIB
        # what needs little memory goes on
        assert wire.call("ListModels", {}) is not None
        # the others have their time
        wait_for(lambda: client.is_open() and len(set(client.ended)) == 10)
    wait_for(lambda: small.metric("revolute_memory_bytes") <= before)


def test_a_client_without_a_token_is_refused_before_its_message_is_read(tmp_path) -> None:  # type: ignore[no-untyped-def]
    tokens = tmp_path / "tokens"
    tokens.write_text("")
    with running_server("--tokens", str(tokens)) as server, Http2(server.grpc_target) as client:
        client.call("/revolute.v1.SessionService/GetState")
        client.message(b"", 1000, end=False)
        wait_for(lambda: client.is_open() and client.ended)


def test_an_answer_that_nobody_reads_is_counted_and_given_up(small: ServerProcess, wire: GrpcWire) -> None:
    model = wire.call("RegisterModel", {"text": CART})["model_id"]
    session = wire.call("CreateSession", {"model_id": model, "batch": 40_000})["session_id"]
    before = small.metric("revolute_memory_bytes")
    request = b"\x0a" + bytes([len(session)]) + session.encode()
    with Http2(small.grpc_target, window=0) as client:
        client.call("/revolute.v1.SessionService/GetState")
        client.message(request)
        wait_for(lambda: small.metric("revolute_memory_bytes") > before + 1.2 * MIB)
        assert not client.ended
        wait_for(lambda: not client.is_open())
    wait_for(lambda: small.metric("revolute_memory_bytes") <= before)


def test_small_answers_that_nobody_reads_are_given_up_too(small: ServerProcess) -> None:
    with Http2(small.grpc_target, window=0) as client:
        for stream in (1, 3, 5):
            client.call("/revolute.v1.ServerService/GetServerInfo", stream)
            client.message(b"", stream=stream)
        time.sleep(0.5)
        assert client.is_open() and not client.ended
        wait_for(lambda: not client.is_open())


@pytest.mark.skipif(sys.platform != "linux", reason="descriptors are looked for in /proc")
def test_clients_of_http2_without_a_call_make_room_for_others() -> None:
    with running_server("--max-connections", "12") as server:
        clients = [Http2(server.grpc_target) for _ in range(12)]
        half = clients[0]
        half.call(STEP)  # and nothing of its message
        until = time.monotonic() + 3.0
        while time.monotonic() < until:
            for client in clients:
                if client.is_open():
                    client.send(frame(PING, 0, 0, bytes(8)))
            time.sleep(0.2)
        assert sum(client.is_open() for client in clients) <= 9
        wire = GrpcWire(server.grpc_target)
        assert wire.call("ListModels", {}, timeout=5.0) is not None
        # one with a call stays
        assert wire.call("ListModels", {}, timeout=5.0) is not None
        wire.close()
        for client in clients:
            client.close()

"""Clients that keep the server waiting: their bytes count, their time is limited, their places are free."""

from __future__ import annotations

import asyncio
import functools
import sys
import time
from collections.abc import Callable, Iterator
from typing import Any

import grpc
import pytest

from revolute.contract.errors import DeadlineError, LimitError
from revolute_server.compute.memory_budget import MemoryBudget
from revolute_server.grpc.client import Client
from revolute_server.grpc.waits import Peers, Wait
from revolute_server.settings import Settings
from testbed.cart import CART
from testbed.http2 import PING, Http2, frame
from testbed.server_process import ServerProcess, running_server
from testbed.wire import GrpcWire

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
        for stream in range(1, 60, 2):
            client.call(path, stream)
            client.message(bytes(2 * MIB - 4096), 2 * MIB - 1, stream, end=False)
        wait_for(lambda: client.is_open() and len(client.ended) >= 10)
        # all such waits together have half of the memory
        assert 4 * MIB < small.metric("revolute_memory_bytes") - before <= 8 * MIB
        # what needs little memory goes on
        assert wire.call("ListModels", {}) is not None
        # the others have their time
        wait_for(lambda: client.is_open() and len(set(client.ended)) == 30)
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


class FakeContext:
    """A call whose connection has just ended."""

    def peer(self) -> str:
        return "ipv4:127.0.0.1:1"

    async def write(self, _answer: bytes) -> None:
        raise grpc.aio.InternalError("Failed to execute a batch")


def test_a_write_to_a_client_that_has_just_left_is_a_cancellation() -> None:
    async def scenario() -> None:
        context: Any = FakeContext()
        client = Client(context, MemoryBudget(MIB), Peers(), Settings(), "body_timeout", MIB)
        with pytest.raises(asyncio.CancelledError):
            await client.write(b"answer")

    asyncio.run(scenario())


def test_clients_that_leave_while_they_are_answered_leave_no_incident() -> None:
    with running_server("--threads", "1") as server:
        wire = GrpcWire(server.grpc_target)
        model = wire.call("RegisterModel", {"text": CART})["model_id"]
        session = wire.call("CreateSession", {"model_id": model, "batch": 20_000})["session_id"]
        request = b"\x0a" + bytes([len(session)]) + session.encode()
        for _ in range(60):
            with Http2(server.grpc_target) as client:
                for stream in (1, 3, 5):
                    client.call("/revolute.v1.SessionService/GetState", stream)
                    client.message(request, stream=stream)
        assert wire.call("ListModels", {}) is not None
        log = server.log.read_text()
        assert "incident" not in log and "Traceback" not in log
        wire.close()


def test_a_full_memory_refuses_no_call_that_is_only_late() -> None:
    """One wait of each connection goes on for a while, and the longest of them makes room for others."""

    async def scenario() -> None:
        budget, peers = MemoryBudget(MIB), Peers()
        budget.reserve("others", MIB)
        late = DeadlineError("late")

        async def wait(peer: str, seconds: float) -> str:
            waits = Wait(budget, peers, peer)
            begin = functools.partial(asyncio.sleep, seconds, peer)
            return await waits.for_client(begin, MIB // 2, 5.0, lambda: late, "a part of a request")

        assert await asyncio.gather(*(wait(f"a{number}", 0.1) for number in range(4)))
        first, second = await asyncio.gather(wait("a", 0.1), wait("a", 0.1), return_exceptions=True)
        assert first == "a" and isinstance(second, LimitError)
        found = await asyncio.gather(
            *(wait(f"a{number}", 0.2) for number in range(5)), return_exceptions=True
        )
        assert isinstance(found[0], LimitError) and found[1:] == ["a1", "a2", "a3", "a4"]
        with pytest.raises(LimitError):
            await wait("a", 5.0)

    asyncio.run(scenario())


def test_waits_for_clients_leave_half_of_the_memory_to_others() -> None:
    async def scenario() -> None:
        budget, peers = MemoryBudget(16 * MIB), Peers()
        late = DeadlineError("late")

        async def wait(peer: str) -> str:
            begin = functools.partial(asyncio.sleep, 1.0, peer)
            return await Wait(budget, peers, peer).for_client(
                begin, 2 * MIB, 5.0, lambda: late, "a part of a request"
            )

        # two of each connection, since the only one would be waited for a while
        waits = [asyncio.create_task(wait(f"a{number // 2}")) for number in range(12)]
        await asyncio.sleep(0.5)
        assert budget.used == 8 * MIB
        found = await asyncio.gather(*waits, return_exceptions=True)
        assert sum(isinstance(error, LimitError) for error in found) >= 2
        assert budget.used == 0
        assert await wait("later") == "later"

    asyncio.run(scenario())


def test_waits_count_sooner_while_there_are_many() -> None:
    peers, waits = Peers(), [object() for _ in range(17)]
    for wait in waits:
        assert not peers.in_hurry
        peers.begin_wait(wait)
    assert peers.in_hurry
    peers.end_wait(waits[0])
    assert not peers.in_hurry

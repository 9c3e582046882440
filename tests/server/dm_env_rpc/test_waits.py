"""Agents that keep the server waiting have the limits of all gRPC clients."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator

import grpc
import pytest
from dm_env_rpc.v1 import connection as connections
from dm_env_rpc.v1 import dm_env_rpc_pb2 as pb

from testbed.http2 import Http2
from testbed.server_process import ServerProcess, running_server

KIB = 1024
MIB = 1024**2
PATH = "/dm_env_rpc.v1.Environment/Process"
PATIENCE = 15.0


@pytest.fixture(scope="module")
def small() -> Iterator[ServerProcess]:
    flags = ("--memory", "16MiB", "--answer-timeout", "2", "--idle-timeout", "3", "--threads", "1")
    with running_server("--dm-env-rpc", "0", *flags) as server:
        yield server


def wait_for(condition: Callable[[], object]) -> None:
    until = time.monotonic() + PATIENCE
    while not condition():
        assert time.monotonic() < until, "it did not happen"
        time.sleep(0.05)


def test_half_requests_count_as_memory_and_the_rest_is_refused(small: ServerProcess) -> None:
    before = small.metric("revolute_memory_bytes")
    with Http2(small.dm_env_rpc_target) as client:
        for stream in range(1, 80, 2):
            client.call(PATH, stream)
            client.message(bytes(400 * KIB), 500 * KIB, stream, end=False)
        wait_for(lambda: client.is_open() and len(client.ended) >= 10)
        # all such waits together have half of the memory
        assert 4 * MIB < small.metric("revolute_memory_bytes") - before <= 8 * MIB
        # the others have their time
        wait_for(lambda: client.is_open() and len(set(client.ended)) == 40)
    wait_for(lambda: small.metric("revolute_memory_bytes") <= before)


def test_a_request_beyond_the_limit_is_refused(small: ServerProcess) -> None:
    with Http2(small.dm_env_rpc_target) as client:
        client.call(PATH)
        client.message(b"", 600 * KIB, end=False)
        wait_for(lambda: client.is_open() and client.ended)


def test_answers_that_nobody_reads_end_the_connection(small: ServerProcess) -> None:
    request = pb.EnvironmentRequest(leave_world=pb.LeaveWorldRequest()).SerializeToString()
    with Http2(small.dm_env_rpc_target, window=0) as client:
        client.call(PATH)
        client.message(request, end=False)
        wait_for(lambda: not client.is_open())
    assert "Traceback" not in small.log.read_text()


def test_an_agent_that_thinks_has_time(small: ServerProcess) -> None:
    with grpc.insecure_channel(small.dm_env_rpc_target) as channel:
        agent = connections.Connection(channel)
        for _ in range(2):
            agent.send(pb.LeaveWorldRequest())
            time.sleep(1.5)
        agent.send(pb.LeaveWorldRequest())

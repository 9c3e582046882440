"""A server with the façade, and connections to it."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import grpc
import pytest
from dm_env_rpc.v1 import connection as connections

from testbed.server_process import ServerProcess, running_server

Connect = Callable[[], connections.Connection]


@pytest.fixture(scope="session")
def facade() -> Iterator[ServerProcess]:
    """Return a server that agents of dm_env_rpc can reach, too."""
    with running_server("--dm-env-rpc", "0") as server:
        yield server


@pytest.fixture
def connect(facade: ServerProcess) -> Iterator[Connect]:
    """Return a function that makes a connection, each with a channel of its own."""
    channels = []

    def connect() -> connections.Connection:
        channels.append(grpc.insecure_channel(facade.dm_env_rpc_target))
        return connections.Connection(channels[-1])

    yield connect
    for channel in channels:
        channel.close()


@pytest.fixture
def connection(connect: Connect) -> connections.Connection:
    """Return one connection."""
    return connect()

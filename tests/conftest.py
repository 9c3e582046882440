"""What all tests share: one real server, and a simulator for each way to reach an engine."""

from __future__ import annotations

import os
from collections.abc import Iterator

import pytest

import revolute
from testbed.server_process import ServerProcess, running_server

TRANSPORTS = ("in-process", "grpc", "http")
RAY_ATTEMPTS = 4
"""Ray gives its first process half a minute, which a busy machine may exceed."""


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption(
        "--address",
        default=os.environ.get("REVOLUTE_ADDRESS"),
        help="server that tests/conformance judges: grpc(s):// or http(s)://host:port (default: ours)",
    )
    parser.addoption("--token", default=os.environ.get("REVOLUTE_TOKEN"), help="bearer token for --address")
    parser.addoption("--ca", help="certificates (PEM) that sign that of --address")


def is_slow(item: pytest.Item) -> bool:
    """Return whether a test is marked as slow or uses Ray."""
    return item.get_closest_marker("slow") is not None or "ray_cluster" in getattr(item, "fixturenames", ())


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Begin with files of slow tests, so that no worker still has one when the others are done.

    Files that use Ray come with them, so that one worker starts the only cluster.
    """
    first = {item.path for item in items if is_slow(item)}
    items.sort(key=lambda item: item.path not in first)


@pytest.fixture(scope="session")
def server() -> Iterator[ServerProcess]:
    """Return a server with default settings, in a process of its own on free loopback ports."""
    with running_server() as running:
        yield running


@pytest.fixture(scope="session")
def in_process() -> Iterator[revolute.Simulator]:
    """Return a simulator whose engine is in this process."""
    with revolute.connect() as simulator:
        yield simulator


@pytest.fixture(scope="session")
def over_grpc(server: ServerProcess) -> Iterator[revolute.Simulator]:
    """Return a simulator that reaches the server over gRPC."""
    with revolute.connect(server.grpc) as simulator:
        yield simulator


@pytest.fixture(scope="session")
def over_http(server: ServerProcess) -> Iterator[revolute.Simulator]:
    """Return a simulator that reaches the server over HTTP."""
    with revolute.connect(server.http) as simulator:
        yield simulator


@pytest.fixture(scope="session")
def ray_cluster() -> Iterator[None]:
    """Start a Ray of this machine alone."""
    import ray

    os.environ["RAY_USAGE_STATS_ENABLED"] = "0"
    for attempt in range(RAY_ATTEMPTS):
        try:
            ray.init(
                address="local",
                num_cpus=8,
                include_dashboard=False,
                log_to_driver=False,
                object_store_memory=200 * 1024**2,
            )
            break
        except RuntimeError:
            ray.shutdown()
            if attempt == RAY_ATTEMPTS - 1:
                raise
    yield
    ray.shutdown()


@pytest.fixture(params=TRANSPORTS)
def simulator(request: pytest.FixtureRequest) -> revolute.Simulator:
    """Return each simulator, one after the other."""
    names = {"in-process": "in_process", "grpc": "over_grpc", "http": "over_http"}
    return request.getfixturevalue(names[request.param])


@pytest.fixture
def simulators(
    in_process: revolute.Simulator, over_grpc: revolute.Simulator, over_http: revolute.Simulator
) -> dict[str, revolute.Simulator]:
    """Return all simulators by transport."""
    return {"in-process": in_process, "grpc": over_grpc, "http": over_http}

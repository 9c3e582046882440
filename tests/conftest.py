"""What all tests share: one real server, and a simulator for each way to reach an engine."""

from __future__ import annotations

import importlib.util
import os
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

import revolute
from testbed.server_process import ServerProcess, fork_servers, running_server

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


def pytest_configure() -> None:
    """Name the library of glfw, which MuJoCo imports and which starts a Python to try each library it finds.

    That one prints a traceback if the server that waits for it is stopped.
    """
    found = importlib.util.find_spec("glfw")
    library = Path(found.origin).with_name("x11") / "libglfw.so" if found and found.origin else None
    if library is not None and library.exists():
        os.environ.setdefault("PYGLFW_LIBRARY", str(library))


@pytest.fixture(scope="session", autouse=True)
def _forked_servers() -> None:
    """Start servers as forks."""
    if sys.platform == "linux":
        fork_servers()


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Let each worker begin with other slow tests, and one with all tests that use Ray.

    With --dist worksteal a worker gets an equal share of neighbours, from whose end the others may take. What
    stands at the beginning of one share is done by one worker, one test after the other. Slow files of one
    folder stay together: those of tests/client/ray_pool start Ray, which should run twice at once at most.
    """
    workers = getattr(config, "workerinput", {}).get("workercount", 1)
    slow_files = {item.path for item in items if item.get_closest_marker("slow")}
    slow_folders = list(dict.fromkeys(item.path.parent for item in items if item.path in slow_files))
    first: list[list[pytest.Item]] = [[] for _ in range(workers)]
    rest = []
    for item in items:
        if "ray_cluster" in getattr(item, "fixturenames", ()):
            first[0].append(item)
        elif item.path in slow_files:
            first[-1 - slow_folders.index(item.path.parent) % max(1, workers - 1)].append(item)
        else:
            rest.append(item)
    items.clear()
    for number, share in enumerate(first):
        left = sum(map(len, first[number:])) + len(rest)
        filling = max(0, left // (workers - number) - len(share))
        items += share + rest[:filling]
        del rest[:filling]


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

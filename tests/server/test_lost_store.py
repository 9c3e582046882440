"""A store that is gone or hangs: the server is not ready, calls say so in seconds, and it all comes back."""

from __future__ import annotations

import contextlib
import shutil
import signal
import subprocess
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import grpc
import httpx
import numpy as np
import pytest
from grpc_health.v1 import health_pb2, health_pb2_grpc

from revolute_server.grpc.services import SERVICES
from testbed.cart import CART
from testbed.server_process import ServerProcess, running_server
from testbed.wire import GrpcWire, HttpWire

KNOWN_SECONDS = 6.0
"""Two suffice on a machine that has nothing else to do."""
CALL_SECONDS = 6.0
"""4 s for an answer of Redis, and some for a machine that has other things to do."""

pytestmark = pytest.mark.skipif(shutil.which("redis-server") is None, reason="redis-server is not installed")


class Redis:
    """A Redis server of this test's own, which may hang, die and come back."""

    def __init__(self, folder: Path) -> None:
        self.socket = folder / "redis.sock"
        self._flags = ["--port", "0", "--unixsocket", str(self.socket), "--dir", str(folder)]
        self.start()

    def start(self) -> None:
        flags = [*self._flags, "--appendonly", "yes", "--save", ""]
        self.process = subprocess.Popen(["redis-server", *flags], stdout=subprocess.DEVNULL)
        _wait_for(self.socket.exists, 30.0)

    def hang(self) -> None:
        self.process.send_signal(signal.SIGSTOP)

    def go_on(self) -> None:
        self.process.send_signal(signal.SIGCONT)

    def die(self) -> None:
        self.process.kill()
        self.process.wait()
        self.socket.unlink(missing_ok=True)

    def close(self) -> None:
        if self.process.poll() is None:
            self.go_on()
            self.die()


@pytest.fixture
def redis(tmp_path: Path) -> Iterator[Redis]:
    found = Redis(tmp_path)
    yield found
    found.close()


@pytest.fixture
def server(redis: Redis) -> Iterator[ServerProcess]:
    with running_server("--store", f"unix://{redis.socket}?db=0", "--threads", "1") as running:
        yield running


def _wait_for(holds: Callable[[], Any], seconds: float) -> None:
    deadline = time.monotonic() + seconds
    while not holds():
        assert time.monotonic() < deadline
        time.sleep(0.02)


def serving(server: ServerProcess) -> set[bool]:
    """Return what all that tell of readiness say."""
    with grpc.insecure_channel(server.grpc_target) as channel:
        stub = health_pb2_grpc.HealthStub(channel)
        answers = [
            stub.Check(health_pb2.HealthCheckRequest(service=name), timeout=5.0).status
            for name in ("", *SERVICES)
        ]
    status = httpx.get(f"{server.http}/readyz", timeout=5.0).status_code
    said = {answer == health_pb2.HealthCheckResponse.SERVING for answer in answers}
    return said | {status == 200, bool(server.metric("revolute_ready"))}


@pytest.mark.slow
@pytest.mark.parametrize("way", ["hangs", "dies"])
def test_a_store_that_is_lost(redis: Redis, server: ServerProcess, way: str) -> None:
    wires = {"grpc": GrpcWire(server.grpc_target), "json": HttpWire(server.http, npz=False)}
    wire: Any = wires["grpc"]
    model = wire.call("RegisterModel", {"text": CART})["model_id"]
    session = wire.call("CreateSession", {"model_id": model, "batch": 1})["session_id"]
    step = {"session_id": session, "ctrl": np.ones((1, 1)), "steps": 1, "request_id": "the-step"}
    calls = {
        "GetState": {"session_id": session},
        "Step": step,
        "CreateSession": {"model_id": model, "batch": 1},
        "ListSessions": {},
        # asks for the size of its answer first
        "Reset": {"session_id": session},
    }
    assert serving(server) == {True}

    redis.hang() if way == "hangs" else redis.die()
    lost = time.monotonic()
    _wait_for(lambda: serving(server) == {False}, KNOWN_SECONDS)
    assert time.monotonic() - lost < KNOWN_SECONDS
    assert httpx.get(f"{server.http}/livez").status_code == 200
    for kind, code in (("grpc", "UNAVAILABLE"), ("json", "503")):
        for verb, document in calls.items():
            began = time.monotonic()
            error, found = wires[kind].error(verb, document)
            assert found == code and error.argument == "store", verb
            assert time.monotonic() - began < CALL_SECONDS, verb

    redis.go_on() if way == "hangs" else redis.start()
    _wait_for(lambda: serving(server) == {True}, KNOWN_SECONDS)
    with contextlib.suppress(AssertionError):
        # a reset that the hung server was told of may have happened, and the step as well
        wires["json"].call("Reset", {"session_id": session})
    assert wires["json"].call("Step", step)["step_count"] == 1
    assert "the store does not answer; not ready" in server.log.read_text()
    for each in wires.values():
        each.close()


def test_a_replaced_file_is_a_lost_store(tmp_path: Path) -> None:
    file = tmp_path / "store.db"
    with running_server("--store", f"sqlite:///{file}") as server:
        assert serving(server) == {True}
        file.rename(tmp_path / "elsewhere.db")
        _wait_for(lambda: serving(server) == {False}, KNOWN_SECONDS)
        (tmp_path / "elsewhere.db").rename(file)
        _wait_for(lambda: serving(server) == {True}, KNOWN_SECONDS)

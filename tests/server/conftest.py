"""Ways to reach the server that all tests share: bare gRPC, JSON and npz."""

from __future__ import annotations

import shutil
import subprocess
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from testbed.cart import CART
from testbed.server_process import ServerProcess
from testbed.wire import GrpcWire, HttpWire

Wire = GrpcWire | HttpWire


@pytest.fixture(scope="session")
def grpc_wire(server: ServerProcess) -> Iterator[GrpcWire]:
    """Return bare gRPC."""
    wire = GrpcWire(server.grpc_target)
    yield wire
    wire.close()


@pytest.fixture(scope="session")
def json_wire(server: ServerProcess) -> Iterator[HttpWire]:
    """Return bare HTTP with JSON bodies."""
    wire = HttpWire(server.http, npz=False)
    yield wire
    wire.close()


@pytest.fixture(scope="session")
def npz_wire(server: ServerProcess) -> Iterator[HttpWire]:
    """Return bare HTTP with npz bodies."""
    wire = HttpWire(server.http, npz=True)
    yield wire
    wire.close()


@pytest.fixture(params=["grpc", "json", "npz"])
def wire(request: pytest.FixtureRequest) -> Wire:
    """Return each way to reach the server, one after the other."""
    return request.getfixturevalue(f"{request.param}_wire")


@pytest.fixture
def cart(grpc_wire: GrpcWire) -> str:
    """Return the id of the cart model."""
    return grpc_wire.call("RegisterModel", {"text": CART})["model_id"]


@pytest.fixture(scope="session")
def redis_address() -> Iterator[str]:
    """Return the address of a Redis server that ends with the tests."""
    program = shutil.which("redis-server")
    if program is None:
        pytest.skip("redis-server is not installed (Debian: apt-get install redis-server)")
    with tempfile.TemporaryDirectory() as folder:
        socket = Path(folder, "redis.sock")
        flags = ["--port", "0", "--unixsocket", str(socket), "--dir", folder, "--save", ""]
        process = subprocess.Popen([program, *flags], stdout=subprocess.DEVNULL)
        try:
            deadline = time.monotonic() + 30
            while not socket.exists():
                assert process.poll() is None and time.monotonic() < deadline, "redis-server did not start"
                time.sleep(0.02)
            yield f"unix://{socket}?db=0"
        finally:
            process.terminate()
            process.wait()

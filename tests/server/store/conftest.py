"""A real Redis server for the tests, on a Unix socket of its own."""

from __future__ import annotations

import shutil
import subprocess
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path

import pytest


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

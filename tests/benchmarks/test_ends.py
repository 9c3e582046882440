"""A long form that is ended from outside takes its server with it."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]


def children(process: int) -> list[int]:
    """Return the children of a process, on Linux."""
    found = Path(f"/proc/{process}/task/{process}/children")
    return [int(child) for child in found.read_text().split()] if found.exists() else []


@pytest.mark.skipif(sys.platform != "linux", reason="looks for children in /proc")
@pytest.mark.parametrize("part", ["cancel", "kills"])
def test_sigterm_ends_the_server_as_well(part: str) -> None:
    command = [sys.executable, "-m", f"benchmarks.service.{part}"]
    with subprocess.Popen(command, cwd=ROOT, stdout=subprocess.PIPE, stderr=subprocess.STDOUT) as process:
        try:
            deadline = time.monotonic() + 60
            while not (servers := children(process.pid)):
                assert process.poll() is None and time.monotonic() < deadline, "no server was started"
                time.sleep(0.05)
            # a signal in the middle of the start of a process would leave it to nobody
            time.sleep(0.5)
            process.send_signal(signal.SIGTERM)
            assert process.wait(30) == 128 + signal.SIGTERM
        finally:
            process.kill()
    for server in servers:
        with pytest.raises(ProcessLookupError):
            os.kill(server, 0)

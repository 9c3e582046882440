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


def servers_of(process: int) -> list[int]:
    """Return the children of a process that are servers, on Linux. Imports start other, short-lived ones."""
    found = Path(f"/proc/{process}/task/{process}/children")
    children = found.read_text().split() if found.exists() else []
    return [int(child) for child in children if b"revolute_server" in command_line(child)]


def command_line(process: str) -> bytes:
    """Return the command line of a process; empty when it has ended."""
    try:
        return Path(f"/proc/{process}/cmdline").read_bytes()
    except OSError:
        return b""


@pytest.mark.skipif(sys.platform != "linux", reason="looks for children in /proc")
@pytest.mark.parametrize("part", ["cancel", "kills"])
def test_sigterm_ends_the_server_as_well(part: str) -> None:
    command = [sys.executable, "-m", f"benchmarks.service.{part}"]
    with subprocess.Popen(command, cwd=ROOT, stdout=subprocess.PIPE, stderr=subprocess.STDOUT) as process:
        try:
            deadline = time.monotonic() + 60
            while not (servers := servers_of(process.pid)):
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

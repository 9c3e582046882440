"""Starts real servers, each in its own process on free loopback ports, and stops them."""

from __future__ import annotations

import contextlib
import dataclasses
import functools
import json
import os
import re
import resource
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path

import httpx

from .forked_servers import ForkedServer, ForkingProcess

START_SECONDS = 120.0
STOP_SECONDS = 30.0


@dataclasses.dataclass
class ServerProcess:
    """A running server.

    Attributes:
        grpc: address as `revolute.connect` takes it.
        http: the same over HTTP.
        process: the process.
        log: file with what it printed.
        addresses: all addresses, as the port file has them.
    """

    grpc: str
    http: str
    process: subprocess.Popen[bytes] | ForkedServer
    log: Path
    addresses: dict[str, str] = dataclasses.field(default_factory=dict)

    @property
    def dm_env_rpc_target(self) -> str:
        """Address for agents of dm_env_rpc, of a server with that flag."""
        return self.addresses["dm_env_rpc"].removeprefix("grpc://")

    @property
    def grpc_target(self) -> str:
        return self.grpc.removeprefix("grpc://")

    def cpu_seconds(self) -> float:
        """Processor time used so far."""
        fields = Path(f"/proc/{self.process.pid}/stat").read_text().rpartition(")")[2].split()
        return (int(fields[11]) + int(fields[12])) / 100.0

    def metric(self, name: str) -> float:
        """Return the value of a metric without labels."""
        # reading certificates, which nothing needs here, would take ten times as long as the answer
        text = httpx.get(f"{self.http}/metrics", timeout=30.0, verify=self.http.startswith("https")).text
        found = re.search(rf"^{name} (\S+)$", text, re.MULTILINE)
        assert found, f"no metric {name} at {self.http}"
        return float(found[1])

    def stop(self, number: int = signal.SIGTERM) -> int:
        """Send a signal and return the exit status."""
        self.process.send_signal(number)
        return self.process.wait(STOP_SECONDS)


class _Starts:
    """How servers start: each by itself, or forked from a process that has imported them."""

    environment: dict[str, str] | None = None

    @functools.cached_property
    def source(self) -> ForkingProcess | None:
        return None if self.environment is None else ForkingProcess(self.environment)


_STARTS = _Starts()


def fork_servers() -> None:
    """From now on fork servers, which spares each of them half a second of processor time."""
    _STARTS.environment = dict(os.environ)


def _started(module: str, flags: tuple[str, ...], log: Path) -> subprocess.Popen[bytes] | ForkedServer:
    with log.open("wb") as output:
        source = _STARTS.source
        if source is not None and source.suits(module):
            return source.start(flags, log)
        command = [sys.executable, "-m", module, *flags]
        return subprocess.Popen(command, stdout=output, stderr=subprocess.STDOUT)


@contextlib.contextmanager
def running_server(*flags: str, module: str = "revolute_server") -> Iterator[ServerProcess]:
    """Start a server, wait until it is ready, and end it with the block.

    Args:
        flags: of the command line.
        module: what is run, with the server's command line.

    What it keeps goes into a file of its own, unless `--store` names another place.
    """
    with tempfile.TemporaryDirectory() as folder:
        port_file, log = Path(folder, "ports.json"), Path(folder, "log.txt")
        ports = ("--grpc-port", "0", "--http-port", "0", "--port-file", str(port_file))
        if "--store" not in flags:
            flags = (*flags, "--store", f"sqlite:///{folder}/store.db")
        process = _started(module, (*ports, *flags), log)
        try:
            addresses = _wait(process, port_file, log)
            yield ServerProcess(addresses.get("grpc", ""), addresses.get("http", ""), process, log, addresses)
        finally:
            if process.poll() is None:
                process.kill()
                process.wait()


def _wait(process: subprocess.Popen[bytes] | ForkedServer, port_file: Path, log: Path) -> dict[str, str]:
    deadline = time.monotonic() + START_SECONDS
    while time.monotonic() < deadline:
        if process.poll() is not None:
            raise RuntimeError(f"the server ended with status {process.returncode}: {log.read_text()}")
        if port_file.exists():
            return json.loads(port_file.read_text())
        time.sleep(0.02)
    raise RuntimeError(f"the server did not start within {START_SECONDS} s: {log.read_text()}")


def allow_no_more_threads(server: ServerProcess) -> None:
    """Leave the process less memory than the stack of a thread."""
    lines = Path(f"/proc/{server.process.pid}/status").read_text().splitlines()
    used = next(int(line.split()[1]) for line in lines if line.startswith("VmSize"))
    most = 1024 * used + 7 * 1024**2
    resource.prlimit(server.process.pid, resource.RLIMIT_AS, (most, resource.RLIM_INFINITY))

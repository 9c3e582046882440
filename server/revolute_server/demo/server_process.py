"""A server process for the demo: `python -m revolute_server` on free loopback ports during a `with` block."""

from __future__ import annotations

import json
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from types import TracebackType

from revolute.contract.errors import UnavailableError

START_SECONDS = 60.0  # importing the engine and binding two ports takes about one second
STOP_SECONDS = 15.0


class ServerProcess:
    """Starts the server at the start of a `with` block, and stops it at the end.

    Attributes:
        grpc_address: `grpc://host:port`.
        http_address: `http://host:port`.
    """

    def __init__(self, threads: int | None = None) -> None:
        self.grpc_address = ""
        self.http_address = ""
        self._threads = threads
        self._folder = tempfile.TemporaryDirectory(prefix="revolute-demo-")
        self._process: subprocess.Popen[bytes] | None = None

    def __enter__(self) -> ServerProcess:
        """Start the process and wait until it answers.

        Raises:
            UnavailableError: it ended or did not announce its ports in time; the text quotes its log.
        """
        ports = Path(self._folder.name) / "ports.json"
        log = Path(self._folder.name) / "log.txt"
        command = [sys.executable, "-m", "revolute_server", "--grpc-port", "0", "--http-port", "0"]
        command += ["--port-file", str(ports)]
        if self._threads is not None:
            command += ["--threads", str(self._threads)]
        with log.open("wb") as sink:
            self._process = subprocess.Popen(
                command, stdin=subprocess.DEVNULL, stdout=sink, stderr=subprocess.STDOUT
            )
        try:
            self._wait_for(ports, log)
        except BaseException:
            self._stop()
            raise
        addresses = json.loads(ports.read_text(encoding="utf-8"))
        self.grpc_address, self.http_address = addresses["grpc"], addresses["http"]
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._stop()

    def _wait_for(self, ports: Path, log: Path) -> None:
        """Wait until the server has written its port file, which it does when both listeners serve."""
        assert self._process is not None
        deadline = time.monotonic() + START_SECONDS
        while not ports.exists():
            ended = self._process.poll() is not None
            if ended or time.monotonic() > deadline:
                what = f"ended with status {self._process.returncode}" if ended else "did not start in time"
                tail = log.read_text(encoding="utf-8", errors="replace").strip().splitlines()[-1:]
                raise UnavailableError(f"server: {what}; its log ends with: {''.join(tail) or 'nothing'}")
            time.sleep(0.02)

    def _stop(self) -> None:
        """Stop the process and remove its folder."""
        if self._process is not None and self._process.poll() is None:
            self._process.terminate()
            try:
                self._process.wait(STOP_SECONDS)
            except subprocess.TimeoutExpired:
                self._process.kill()
                self._process.wait()
        self._folder.cleanup()

"""Asks a server for its health, and measures its memory, from a process of its own.

An attack keeps its own process busy: asked from there, health would wait for the attacker and not for the
server. Each question is asked on a new connection. At the same times a bare server of the same kind that
nobody attacks is asked, so that a machine with much to do can be told from a server that does not answer.
Memory is that of the server and of the processes that compile its models, without what files share.
"""

from __future__ import annotations

import contextlib
import dataclasses
import json
import os
import socket
import subprocess
import sys
import threading
import time
from pathlib import Path
from typing import Any

import grpc
import numpy as np

from testbed.server_process import ServerProcess

MIB = 1024**2

_PROGRAM = f"from {__name__} import main; main()"
_PAUSE = 0.02
_PATIENCE = 20.0


@dataclasses.dataclass
class Found:
    """What an attack did.

    Attributes:
        http_ms: times of /livez.
        grpc_ms: times of gRPC's health.
        bare_ms: times of gRPC's health of the bare server.
        peak: most bytes of the server and its processes.
        failures: questions for health without an answer.
    """

    http_ms: list[float] = dataclasses.field(default_factory=list)
    grpc_ms: list[float] = dataclasses.field(default_factory=list)
    bare_ms: list[float] = dataclasses.field(default_factory=list)
    peak: int = 0
    failures: list[str] = dataclasses.field(default_factory=list)

    def row(self) -> dict[str, Any]:
        """Return the medians and maxima."""
        row: dict[str, Any] = {"peak_mib": round(self.peak / MIB), "failures": len(self.failures)}
        for name in ("http_ms", "grpc_ms", "bare_ms"):
            values = getattr(self, name) or [float("nan")]
            row[name] = [round(float(np.median(values)), 1), round(max(values), 1)]
        return row


class Watch:
    """Watches a server while the block runs, and fills in the result at its end.

    Args:
        server: the server.
        bare: address of the bare server.
    """

    def __init__(self, server: ServerProcess, bare: str) -> None:
        http = server.http.partition("://")[2]
        self._words = (server.grpc_target, http, bare, str(server.process.pid))
        self._found = Found()

    def __enter__(self) -> Found:
        command = [sys.executable, "-c", _PROGRAM, *self._words]
        self._process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE)
        assert self._process.stdout is not None
        self._process.stdout.readline()
        return self._found

    def __exit__(self, *_exception: object) -> None:
        output, _ = self._process.communicate()
        vars(self._found).update(json.loads(output))


class _Questions:
    """Asks until told to stop.

    Args:
        target: address of gRPC.
        http: address of HTTP, as host:port.
        bare: address of the bare server.
        process: id of the server's process.
    """

    def __init__(self, target: str, http: str, bare: str, process: int) -> None:
        self.found = Found()
        self._questions = {
            "http_ms": lambda: _livez(http),
            "grpc_ms": lambda: _health(target),
            "bare_ms": lambda: _health(bare),
        }
        self._process = process
        self._end = threading.Event()
        self._threads = [threading.Thread(target=work) for work in (self._ask, self._weigh)]

    def start(self) -> None:
        """Begin."""
        for thread in self._threads:
            thread.start()

    def stop(self) -> Found:
        """End, and return what was found."""
        self._end.set()
        for thread in self._threads:
            thread.join()
        return self.found

    def _ask(self) -> None:
        while not self._end.wait(_PAUSE):
            for name, question in self._questions.items():
                began = time.perf_counter()
                try:
                    question()
                    getattr(self.found, name).append(1e3 * (time.perf_counter() - began))
                except Exception as error:
                    self.found.failures.append(f"{name}: {error!r}"[:200])

    def _weigh(self) -> None:
        while not self._end.wait(_PAUSE):
            self.found.peak = max(self.found.peak, memory(self._process))


def _livez(address: str) -> None:
    host, port = address.split(":")
    with socket.create_connection((host, int(port)), timeout=_PATIENCE) as client:
        client.sendall(b"GET /livez HTTP/1.1\r\nhost: localhost\r\nconnection: close\r\n\r\n")
        if not client.recv(4096).startswith(b"HTTP/1.1 200"):
            raise RuntimeError("not well")


def _health(target: str) -> None:
    with grpc.insecure_channel(target, (("grpc.use_local_subchannel_pool", 1),)) as channel:
        check: Any = channel.unary_unary("/grpc.health.v1.Health/Check")
        check(b"", timeout=10.0)


def memory(process: int) -> int:
    """Return the bytes of a process and its descendants that they do not share with files."""
    total = 0
    for path in (f"/proc/{process}", *(f"/proc/{child}" for child in _descendants(process))):
        with contextlib.suppress(OSError, ValueError, IndexError):
            words = Path(path, "statm").read_text().split()
            total += 4096 * (int(words[1]) - int(words[2]))
    return total


def _descendants(process: int) -> list[int]:
    found: list[int] = []
    with contextlib.suppress(OSError):
        for task in os.listdir(f"/proc/{process}/task"):
            for child in Path(f"/proc/{process}/task/{task}/children").read_text().split():
                found += [int(child), *_descendants(int(child))]
    return found


def main() -> None:
    """Watch the server that the arguments name until the input ends, then print a line of JSON."""
    target, http, bare, process = sys.argv[1:]
    questions = _Questions(target, http, bare, int(process))
    questions.start()
    print(flush=True)
    sys.stdin.read()
    print(json.dumps(dataclasses.asdict(questions.stop())))

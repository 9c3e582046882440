"""Forks servers from a process that has imported them already.

Starting Python and importing the server takes 0.6 s of processor time, and tests start hundreds of servers. A
forked one has its own arguments, environment, output and signals; it runs `__main__` of the package like
`python -m`.
"""

from __future__ import annotations

import contextlib
import importlib
import json
import os
import runpy
import select
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

MODULE = "revolute_server"
IMPORTED = ("revolute_server.cli", "revolute_server.app", "uvloop")
READ_AT_IMPORT = ("REVOLUTE_", "MUJOCO_", "OMP_", "OPENBLAS_", "PYTHON")
"""Beginnings of the names of variables that a process may read before a server is forked from it."""
_ROOT = Path(__file__).resolve().parents[1]


class ForkedServer:
    """A server that was forked: what tests use of `subprocess.Popen`."""

    def __init__(self, source: ForkingProcess, pid: int) -> None:
        self.pid = pid
        self._source = source

    @property
    def returncode(self) -> int | None:
        """The exit status, if the server is known to have ended."""
        return self._source.ended.get(self.pid)

    def poll(self) -> int | None:
        """Return the exit status, or nothing if the server runs."""
        self._source.read_ends(0.0)
        return self.returncode

    def wait(self, timeout: float | None = None) -> int:
        """Wait for the end and return the exit status."""
        until = None if timeout is None else time.monotonic() + timeout
        while (status := self.poll()) is None:
            if until is not None and time.monotonic() > until:
                raise subprocess.TimeoutExpired(f"server {self.pid}", timeout or 0.0)
            self._source.read_ends(0.1)
        return status

    def send_signal(self, number: int) -> None:
        """Send a signal, unless the server has ended."""
        if self.poll() is None:
            with contextlib.suppress(ProcessLookupError):
                os.kill(self.pid, number)

    def kill(self) -> None:
        """End the server at once."""
        self.send_signal(signal.SIGKILL)


class ForkingProcess:
    """A process that has imported the server.

    Attributes:
        ended: exit statuses of servers by process id.
    """

    def __init__(self, environment: Mapping[str, str]) -> None:
        self.ended: dict[int, int] = {}
        self._environment = _read_at_import(environment)
        self._lock = threading.Lock()
        self._process = subprocess.Popen(
            [sys.executable, "-m", __name__],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            cwd=_ROOT,
            env=environment,
        )
        self._unread = b""

    def suits(self, module: str) -> bool:
        """Return whether a server of this process would be as one that is started now."""
        return module == MODULE and _read_at_import(os.environ) == self._environment

    def start(self, flags: Sequence[str], log: Path) -> ForkedServer:
        """Fork a server that writes its output to a file."""
        assert self._process.stdin
        request = {"flags": list(flags), "log": str(log), "folder": str(Path.cwd()), "env": dict(os.environ)}
        with self._lock:
            self._process.stdin.write(json.dumps(request).encode() + b"\n")
            self._process.stdin.flush()
            while (pid := self._read_line(60.0)) is None:
                pass
        self.ended.pop(pid, None)
        return ForkedServer(self, pid)

    def read_ends(self, seconds: float) -> None:
        """Note which servers have ended; wait so long for the next."""
        with self._lock:
            while self._readable(seconds):
                self._read_line(seconds)
                seconds = 0.0

    def _readable(self, seconds: float) -> bool:
        assert self._process.stdout
        return b"\n" in self._unread or bool(select.select([self._process.stdout], [], [], seconds)[0])

    def _read_line(self, seconds: float) -> int | None:
        """Read a line: return the process id of a new server, or note the end of one."""
        assert self._process.stdout
        while b"\n" not in self._unread:
            if not self._readable(seconds):
                raise RuntimeError("the process that forks servers does not answer")
            piece = os.read(self._process.stdout.fileno(), 65536)
            if not piece:
                raise RuntimeError("the process that forks servers has ended")
            self._unread += piece
        line, _, self._unread = self._unread.partition(b"\n")
        pid, *status = map(int, line.split())
        if not status:
            return pid
        self.ended[pid] = status[0]
        return None


def _read_at_import(environment: Mapping[str, str]) -> Mapping[str, str]:
    return {name: value for name, value in environment.items() if name.startswith(READ_AT_IMPORT)}


def _next_server() -> dict[str, Any]:
    """Fork a server at each request and tell of its end; return the request in the new process."""
    woken, wake = os.pipe()
    os.set_blocking(wake, False)
    signal.set_wakeup_fd(wake, warn_on_full_buffer=False)
    signal.signal(signal.SIGCHLD, lambda *_: None)
    unread = b""
    while True:
        readable = select.select([0, woken], [], [])[0]
        if woken in readable:
            os.read(woken, 4096)
            with contextlib.suppress(ChildProcessError):
                while (ended := os.waitpid(-1, os.WNOHANG))[0]:
                    os.write(1, b"%d %d\n" % (ended[0], os.waitstatus_to_exitcode(ended[1])))
        if 0 not in readable:
            continue
        piece = os.read(0, 65536)
        if not piece:
            sys.exit()
        unread += piece
        while b"\n" in unread:
            line, _, unread = unread.partition(b"\n")
            pid = os.fork()
            if not pid:
                signal.set_wakeup_fd(-1)
                signal.signal(signal.SIGCHLD, signal.SIG_DFL)
                os.close(woken)
                os.close(wake)
                return json.loads(line)
            os.write(1, b"%d\n" % pid)


def _main() -> None:
    for name in IMPORTED:
        importlib.import_module(name)
    request = _next_server()
    os.chdir(request["folder"])
    os.environ.clear()
    os.environ.update(request["env"])
    files = ((os.devnull, os.O_RDONLY, (0,)), (request["log"], os.O_WRONLY | os.O_TRUNC, (1, 2)))
    for name, mode, targets in files:
        opened = os.open(name, mode)
        for target in targets:
            os.dup2(opened, target)
        os.close(opened)
    sys.argv = [MODULE, *request["flags"]]
    runpy.run_module(MODULE, run_name="__main__", alter_sys=True)


if __name__ == "__main__":
    _main()

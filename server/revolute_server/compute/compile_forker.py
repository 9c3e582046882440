"""A small process that forks the workers which compile models.

It has MuJoCo and the engine loaded and runs a single thread, so that forking is safe. A forked worker is
ready within milliseconds; a new interpreter would take a third of a second. To get a worker, the server sends
one byte and a socket over the control socket. For each worker that has ended, the forker writes
`<process id> <wait status>` and a line feed.

A worker lives as long as the server holds the other end of its socket: the forker keeps a copy of the
worker's end and kills the worker when the other end is closed. When the control socket is closed, the forker
and all workers end, however the server ended.
"""

from __future__ import annotations

import contextlib
import ctypes
import gc
import os
import resource
import select
import signal
import socket
import sys
import traceback

from . import compile_worker

_PR_SET_PDEATHSIG = 1


class Forker:
    """Forks workers, kills a worker when its socket is closed, and reports how workers ended.

    Args:
        control: socket to the server.
        nice: added to the nice value of workers.
    """

    def __init__(self, control: socket.socket, nice: int) -> None:
        self._control = control
        self._nice = nice
        self._workers: dict[int, socket.socket] = {}
        self._poll = select.poll()
        self._woken, self._wake = socket.socketpair()
        self._libc = ctypes.CDLL(None) if sys.platform == "linux" else None

    def run(self) -> None:
        """Work until the server closes the control socket."""
        self._wake.setblocking(False)
        signal.signal(signal.SIGCHLD, lambda *_: None)
        signal.set_wakeup_fd(self._wake.fileno())
        for readable in (self._control, self._woken):
            self._poll.register(readable, select.POLLIN)
        try:
            while True:
                ready = {descriptor for descriptor, _ in self._poll.poll()}
                # before forking: a new socket may get the number of a closed one
                for process, connection in self._workers.items():
                    if connection.fileno() in ready:
                        self._poll.unregister(connection)
                        os.kill(process, signal.SIGKILL)
                if self._woken.fileno() in ready:
                    self._woken.recv(4096)
                    self._reap()
                if self._control.fileno() in ready and not self._fork_wanted():
                    return
        except OSError:
            # the server has ended
            return
        finally:
            for process in self._workers:
                os.kill(process, signal.SIGKILL)

    def _fork_wanted(self) -> bool:
        """Fork a worker for each received socket; return whether the server still runs."""
        content, descriptors, _, _ = socket.recv_fds(self._control, 1, 1)
        for descriptor in descriptors:
            self._fork(socket.socket(fileno=descriptor))
        return bool(content)

    def _fork(self, connection: socket.socket) -> None:
        try:
            process = os.fork()
        except OSError as error:
            # closing the connection tells the server
            print(f"revolute: no process to compile a model: {error}", file=sys.stderr, flush=True)
            connection.close()
            return
        if process == 0:
            self._become_worker(connection)
        self._workers[process] = connection
        # no event mask: poll reports only that the other end was closed
        self._poll.register(connection, 0)

    def _become_worker(self, connection: socket.socket) -> None:
        """Serve in the forked process; never returns."""
        try:
            if self._libc is not None:
                self._libc.prctl(_PR_SET_PDEATHSIG, signal.SIGKILL)
            signal.set_wakeup_fd(-1)
            signal.signal(signal.SIGCHLD, signal.SIG_DFL)
            for other in (self._control, self._woken, self._wake, *self._workers.values()):
                other.close()
            with contextlib.suppress(OSError):
                os.nice(self._nice)
            _be_killed_first()
            compile_worker.serve(connection)
        except (ConnectionError, BrokenPipeError):
            pass
        except BaseException:
            traceback.print_exc()
        finally:
            os._exit(0)

    def _reap(self) -> None:
        """Report workers that have ended."""
        with contextlib.suppress(ChildProcessError):
            while True:
                process, status = os.waitpid(-1, os.WNOHANG)
                if process == 0:
                    return
                connection = self._workers.pop(process)
                with contextlib.suppress(KeyError):
                    self._poll.unregister(connection)
                self._control.sendall(b"%d %d\n" % (process, status))
                connection.close()


def _be_killed_first() -> None:
    """Have the system kill this process before the server when memory runs out; write no core file."""
    with contextlib.suppress(OSError), open("/proc/self/oom_score_adj", "w", encoding="ascii") as file:
        file.write("1000")
    with contextlib.suppress(OSError, ValueError):
        resource.setrlimit(resource.RLIMIT_CORE, (0, 0))


def main(control: int, nice: int) -> None:
    """Fork workers for the server at the other end of a socket.

    Args:
        control: file descriptor of the control socket.
        nice: added to the nice value of workers.
    """
    # only the server ends this process; these signals may be sent to the whole process group
    for number in (signal.SIGTERM, signal.SIGHUP):
        signal.signal(number, signal.SIG_IGN)
    compile_worker.warm_up()
    # a garbage collection would write to pages that are shared with the workers
    gc.collect()
    gc.freeze()
    Forker(socket.socket(fileno=control), nice).run()
    os._exit(0)

"""A small process that forks the workers which compile models.

It has loaded MuJoCo and the engine, and runs one thread only, so that it can fork: a worker is ready within
milliseconds, where a new interpreter takes a third of a second. The server sends one byte and a socket for
each worker that it wants, over the control socket; the forker writes `<process id> <wait status>` and a line
feed for each worker that has ended.

A worker lives as long as the server holds the other end of its socket: the forker holds a copy of the
worker's end, sees that the other one is closed, and kills. When the control socket is closed, the forker ends
and all workers with it; that is so however the server ended.
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
    """Forks workers, kills those whose socket is closed, and reports those that have ended.

    Args:
        control: socket to the server.
        nice: by how much workers give way to other processes.
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
                ready = {place for place, _ in self._poll.poll()}
                # first, since a socket that is closed may leave its number to a new one
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
            # the server has gone
            return
        finally:
            for process in self._workers:
                os.kill(process, signal.SIGKILL)

    def _fork_wanted(self) -> bool:
        """Fork a worker for each socket that has come; tell whether the server is still there."""
        content, places, _, _ = socket.recv_fds(self._control, 1, 1)
        for place in places:
            self._fork(socket.socket(fileno=place))
        return bool(content)

    def _fork(self, connection: socket.socket) -> None:
        try:
            process = os.fork()
        except OSError as error:
            # the server sees the end of the connection
            print(f"revolute: no process to compile a model: {error}", file=sys.stderr, flush=True)
            connection.close()
            return
        if process == 0:
            self._become_worker(connection)
        self._workers[process] = connection
        # nothing but the end of the other side
        self._poll.register(connection, 0)

    def _become_worker(self, connection: socket.socket) -> None:
        """Serve in the process that was just forked; never returns."""
        try:
            if self._libc is not None:
                self._libc.prctl(_PR_SET_PDEATHSIG, signal.SIGKILL)
            signal.set_wakeup_fd(-1)
            signal.signal(signal.SIGCHLD, signal.SIG_DFL)
            for other in (self._control, self._woken, self._wake, *self._workers.values()):
                other.close()
            with contextlib.suppress(OSError):
                os.nice(self._nice)
            _be_first_to_go()
            compile_worker.serve(connection)
        except (ConnectionError, BrokenPipeError):
            pass
        except BaseException:
            traceback.print_exc()
        finally:
            os._exit(0)

    def _reap(self) -> None:
        """Report the workers that have ended."""
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


def _be_first_to_go() -> None:
    """Have the system kill this process rather than the server when memory runs out; leave no core behind."""
    with contextlib.suppress(OSError), open("/proc/self/oom_score_adj", "w", encoding="ascii") as file:
        file.write("1000")
    with contextlib.suppress(OSError, ValueError):
        resource.setrlimit(resource.RLIMIT_CORE, (0, 0))


def main(control: int, nice: int) -> None:
    """Fork workers for the server at the other end of a socket.

    Args:
        control: file descriptor of the control socket.
        nice: by how much workers give way.
    """
    # the server decides when this ends, whoever else is sent such a signal
    for number in (signal.SIGTERM, signal.SIGHUP):
        signal.signal(number, signal.SIG_IGN)
    compile_worker.warm_up()
    # pages without garbage collection in them stay shared with the workers
    gc.collect()
    gc.freeze()
    Forker(socket.socket(fileno=control), nice).run()
    os._exit(0)

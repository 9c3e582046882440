"""The server's handles on the helper process that forks compile workers, and on each worker."""

from __future__ import annotations

import asyncio
import dataclasses
import os
import socket
import subprocess
import sys
from collections.abc import Mapping
from typing import Any

import numpy as np

from revolute.contract.errors import error_from
from revolute_engine import Model
from revolute_engine.model_document import from_document

from ..store.codec import decode, encode
from ..time_limit import within
from .compile_worker import COUNT, COUNTS, PROCESS_ID, anonymous_bytes
from .memory_budget import Reservation

_STATUS_SECONDS = 1.0
"""Time within which the helper reports how a worker ended."""

_MOST_REPORTS = 64
"""Number of ended workers whose status is kept until it is asked for."""

_START = (
    "import signal, sys; signal.signal(signal.SIGINT, signal.SIG_IGN); sys.path[:] = sys.argv[3:]; "
    "from revolute_server.compute.compile_forker import main; main(int(sys.argv[1]), int(sys.argv[2]))"
)


class CompilerFaultError(RuntimeError):
    """A worker raised an exception other than a RevoluteError; the text is its traceback."""


class WorkerEndedError(Exception):
    """The worker's end of the connection is closed."""


@dataclasses.dataclass(frozen=True)
class Compiled:
    """Answer of a worker.

    Attributes:
        document: the encoded document of the answer.
        binary: the compiled MuJoCo model, or the MJCF text if it was asked for; empty on failure.
    """

    document: bytearray
    binary: bytearray

    def error(self) -> Exception | None:
        """Return the error of the worker, e.g. a MemoryError or CompilerFaultError; None on success."""
        if self.binary:
            return None
        document = decode([self.document])
        if "no_memory" in document:
            return MemoryError()
        if "fault" in document:
            return CompilerFaultError(document["fault"])
        return error_from(**document["error"])

    def model(self, source_text: str, assets: Mapping[str, bytes]) -> Model:
        """Return the compiled model."""
        binary = np.frombuffer(self.binary, np.uint8)
        document = {**decode([self.document]), "mujoco_model": binary}
        return from_document(document, source_text, assets)

    def files(self) -> ModelFiles:
        """Return the model's MJCF text with its files."""
        return ModelFiles(self.binary.decode(), decode([self.document])["assets"])


@dataclasses.dataclass(frozen=True)
class ModelFiles:
    """A model as MJCF text, and the files that the text refers to, by the names in it."""

    mjcf: str
    assets: Mapping[str, bytes]


class Worker:
    """A process that compiles one model at a time.

    Attributes:
        process: its process id.
        ending: its wait status after it has ended; None if the helper has ended as well.
    """

    def __init__(self, helper: Helper, connection: socket.socket) -> None:
        self._loop = asyncio.get_running_loop()
        self._helper = helper
        self._connection = connection
        self.process = 0
        self.ending: int | None = None
        self._at_first = 0

    async def begin(self) -> None:
        """Wait until it is ready.

        Raises:
            WorkerEndedError: it could not start.
        """
        (self.process,) = PROCESS_ID.unpack(await self._read(PROCESS_ID.size))
        self._at_first = anonymous_bytes(self.process)

    @property
    def alive(self) -> bool:
        """Whether it waits for a request: its connection has nothing to read, not even an end of file."""
        try:
            self._connection.recv(1, socket.MSG_PEEK)
        except BlockingIOError:
            return True
        except OSError:
            pass
        return False

    @property
    def memory(self) -> int:
        """Bytes in use beyond those at its start; 0 where the system does not tell."""
        return max(0, anonymous_bytes(self.process) - self._at_first)

    async def compile(self, request: Mapping[str, Any], reservation: Reservation) -> Compiled:
        """Send a request, reserve the bytes of the answer, and return the answer.

        Raises:
            WorkerEndedError: the worker crashed or was killed.
            LimitError: the memory limit leaves no room for the answer.
        """
        parts = encode(request)
        count = sum(memoryview(part).nbytes for part in parts)
        for part in (COUNT.pack(count), *parts):
            await self._write(part)
        document, binary, copy = COUNTS.unpack(await self._read(COUNTS.size))
        reservation.grow(document + binary + copy)
        return Compiled(await self._read(document), await self._read(binary))

    async def gone(self) -> None:
        """Wait until the process has ended, and set `ending`."""
        self.ending = await self._helper.status(self.process)

    def end(self) -> None:
        """End the process at once: the helper kills it when the connection is closed."""
        self._connection.close()

    async def _write(self, content: Any) -> None:
        try:
            await self._loop.sock_sendall(self._connection, content)
        except OSError:
            raise WorkerEndedError from None

    async def _read(self, count: int) -> bytearray:
        content = bytearray(count)
        view = memoryview(content)
        while view:
            try:
                got = await self._loop.sock_recv_into(self._connection, view)
            except OSError:
                got = 0
            if not got:
                raise WorkerEndedError
            view = view[got:]
        return content


class Helper:
    """The process that forks workers."""

    def __init__(self, nice: int) -> None:
        self._control, theirs = socket.socketpair()
        with theirs:
            self._process = subprocess.Popen(
                [sys.executable, "-c", _START, str(theirs.fileno()), str(nice), *sys.path],
                pass_fds=[theirs.fileno()],
                stdin=subprocess.DEVNULL,
                stdout=subprocess.DEVNULL,
                # forking is unsafe with the threads that numpy would start
                env={**os.environ, "OPENBLAS_NUM_THREADS": "1", "OMP_NUM_THREADS": "1"},
            )
        self._control.setblocking(False)
        self._loop = asyncio.get_running_loop()
        self._loop.add_reader(self._control, self._read)
        self._text = b""
        self._ended: dict[int, asyncio.Future[int | None]] = {}
        self.alive = True

    def fork(self) -> Worker:
        """Start a worker.

        Raises:
            OSError: the helper has ended, or too many files are open.
        """
        ours, theirs = socket.socketpair()
        with theirs:
            try:
                socket.send_fds(self._control, [b"f"], [theirs.fileno()])
            except BaseException:
                ours.close()
                raise
        ours.setblocking(False)
        return Worker(self, ours)

    async def status(self, process: int) -> int | None:
        """Return the wait status of a worker that has ended; None if it is not reported in time."""
        if not (self.alive and process):
            return None
        future = self._ended.setdefault(process, self._loop.create_future())
        try:
            return await within(_STATUS_SECONDS, asyncio.shield(future))
        except asyncio.TimeoutError:
            return None
        finally:
            self._ended.pop(process, None)

    def end(self) -> None:
        """End the helper and all workers."""
        self.alive = False
        for future in self._ended.values():
            if not future.done():
                future.set_result(None)
        self._loop.remove_reader(self._control)
        self._control.close()
        self._process.kill()
        self._process.wait()

    def _read(self) -> None:
        """Read which workers have ended."""
        try:
            content = self._control.recv(4096)
        except BlockingIOError:
            return
        except OSError:
            content = b""
        if not content:
            self.end()
            return
        *lines, self._text = (self._text + content).split(b"\n")
        for line in lines:
            process, status = map(int, line.split())
            future = self._ended.setdefault(process, self._loop.create_future())
            if not future.done():
                future.set_result(status)
        # the status of workers that the server ended is never asked for
        for process in list(self._ended)[:-_MOST_REPORTS]:
            del self._ended[process]

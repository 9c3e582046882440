"""Compiles models in separate processes, which can be stopped and whose crash does not harm the server.

MuJoCo's compiler may take minutes or gigabytes for an untrusted file, or crash. So each compilation runs in a
worker (`compile_worker`) with a time limit and a memory limit. The worker is killed when its client
disconnects, when the client's deadline passes, and when the server stops. Its memory is measured while it
runs and counts towards `--memory`.

A helper process that has everything loaded forks the workers (`compile_forker`). A finished worker waits for
the next model, so that a small model costs one message each way.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
import os
import signal
import time
from collections.abc import AsyncIterator, Mapping
from typing import Any

from revolute.contract.errors import DeadlineError, LimitError, ModelError

from ..access.call import current_deadline
from ..observe.incidents import stopping
from ..observe.telemetry import Telemetry
from ..settings import Settings
from .compile_helper import Compiled, Helper, Worker, WorkerEndedError
from .memory_budget import MemoryBudget, Reservation

_log = logging.getLogger("revolute.server")

_LOOK_SECONDS = 0.02
"""Interval between two measurements of a worker's memory."""

_RETRY_SECONDS = 1.0
"""Time after which a refused call may be retried."""

_MIB = 1024**2

_IDLE_WORKERS = 2
_IDLE_BYTES = 16 * _MIB
"""Number of workers kept for the next model, and the memory that each may have beyond that at its start."""


class Compiler:
    """Compiles a bounded number of models at once; others wait, first come, first served.

    Args:
        settings: bounds on concurrent and waiting compilations, and limits of each.
        budget: counts the memory of workers.
        telemetry: receives the durations of compilations.
    """

    def __init__(self, settings: Settings, budget: MemoryBudget, telemetry: Telemetry) -> None:
        self._settings = settings
        self._budget = budget
        self._telemetry = telemetry
        self._places = asyncio.Semaphore(settings.compilers)
        self._waiting = 0
        self._helper: Helper | None = None
        self._idle: list[Worker] = []
        self._answers: set[asyncio.Future[Compiled]] = set()
        self._closed = False

    @property
    def running(self) -> int:
        """Number of running compilations."""
        return len(self._answers)

    def start(self) -> None:
        """Start the helper, so that the first model does not wait for it.

        Raises:
            LimitError: the system cannot start a process.
        """
        self._helper_alive()

    async def compile(self, request: Mapping[str, Any], label: str, reservation: Reservation) -> Compiled:
        """Compile a model in a separate process.

        Args:
            request: text (as bytes) or builtin, name, assets and options; see `compile_worker`.
            label: name of the model in messages.
            reservation: grows by the bytes of the model.

        Raises:
            LimitError: the compilation takes too long or too much memory, too many models wait, the client
                has too many calls in flight, or the system cannot start a process.
            DeadlineError: the client's deadline passed.
            ModelError: the compiler crashed.
            UnavailableError: the server is stopping.
        """
        with self._budget.quotas.call(lambda: _RETRY_SECONDS):
            return await self._compile(request, label, reservation)

    async def _compile(self, request: Mapping[str, Any], label: str, reservation: Reservation) -> Compiled:
        async with self._place():
            worker = await self._worker()
            try:
                return await self._compiled(worker, request, reservation)
            except WorkerEndedError:
                if worker.ending is None and not self._closed:
                    # the helper ended, and its workers with it: try once more
                    worker = await self._worker()
                    with contextlib.suppress(WorkerEndedError):
                        return await self._compiled(worker, request, reservation)
            raise self._crash(label, worker.ending)

    def close(self) -> None:
        """End all workers and the helper; running calls fail because the server is stopping."""
        self._closed = True
        for answer in list(self._answers):
            answer.cancel()
        for worker in self._idle:
            worker.end()
        self._idle.clear()
        if self._helper is not None and self._helper.alive:
            self._helper.end()

    @contextlib.asynccontextmanager
    async def _place(self) -> AsyncIterator[None]:
        """Wait until fewer than `compilers` compilations run, and count one for the length of the block."""
        settings = self._settings
        if self._places.locked() and self._waiting >= settings.queue:
            raise LimitError(
                f"queue: expected at most {settings.queue} waiting models, got one more while "
                f"{settings.compilers} compile; call again later, or start the server with a larger --queue "
                "or more --compilers",
                argument="queue",
                retry_after=_RETRY_SECONDS,
            )
        self._waiting += 1
        try:
            await self._places.acquire()
        finally:
            self._waiting -= 1
        try:
            if self._closed:
                raise stopping()
            yield
        finally:
            self._places.release()

    def _helper_alive(self) -> Helper:
        """Return the helper; restart it if it has ended."""
        if self._helper is None or not self._helper.alive:
            try:
                self._helper = Helper(self._settings.engine_nice)
            except OSError as error:
                raise _no_process(error) from error
        return self._helper

    async def _worker(self) -> Worker:
        """Return an idle worker, or a new one.

        Raises:
            LimitError: the system cannot start a process.
        """
        while self._idle:
            worker = self._idle.pop()
            if worker.alive:
                return worker
            worker.end()
        helper = self._helper_alive()
        try:
            worker = helper.fork()
        except OSError as error:
            raise _no_process(error) from error
        try:
            await worker.begin()
        except BaseException as error:
            worker.end()
            if isinstance(error, WorkerEndedError):
                raise stopping() if self._closed else _no_process("it ended at once") from None
            raise
        return worker

    def _put_back(self, worker: Worker) -> None:
        """Keep a worker for the next model if it is small."""
        if self._closed or len(self._idle) >= _IDLE_WORKERS or worker.memory > _IDLE_BYTES:
            worker.end()
        else:
            self._idle.append(worker)

    async def _compiled(
        self, worker: Worker, request: Mapping[str, Any], reservation: Reservation
    ) -> Compiled:
        """Compile on a worker; end the worker if that fails."""
        # charged to no client: the client did not ask for the memory of the process itself
        with self._budget.reserve("the compilation of a model").shared() as memory:
            try:
                with self._telemetry.measure("compile"):
                    compiled = await self._watched(worker, request, reservation, memory)
            except BaseException:
                worker.end()
                # its memory counts until it is free
                await worker.gone()
                raise
        self._put_back(worker)
        error = compiled.error()
        if error is not None:
            raise self._too_large() if isinstance(error, MemoryError) else error
        return compiled

    async def _watched(
        self, worker: Worker, request: Mapping[str, Any], reservation: Reservation, memory: Reservation
    ) -> Compiled:
        """Compile on a worker, and count its memory until it answers or exceeds a limit."""
        bound = min(self._settings.compile_memory, self._budget.limit)
        answer = asyncio.ensure_future(worker.compile({**request, "memory": bound}, reservation))
        self._answers.add(answer)
        deadline = current_deadline()
        until = time.monotonic() + self._settings.compile_time
        try:
            while True:
                await asyncio.wait((answer,), timeout=_LOOK_SECONDS)
                if answer.cancelled() and self._closed:
                    raise stopping()
                if answer.done():
                    return answer.result()
                self._count(worker, memory)
                if deadline is not None and time.monotonic() > deadline:
                    raise _deadline_passed()
                if time.monotonic() > until:
                    raise self._too_long()
        finally:
            self._answers.discard(answer)
            answer.cancel()

    def _count(self, worker: Worker, memory: Reservation) -> None:
        """Reserve the memory that a worker has allocated since the last measurement.

        Raises:
            LimitError: the worker uses too much memory.
        """
        used = worker.memory
        if used > self._settings.compile_memory:
            raise self._too_large()
        if used > memory.count:
            memory.grow(used + min(_MIB, self._budget.limit // 8) - memory.count)

    def _crash(self, label: str, status: int | None) -> Exception:
        """Return the error for a worker that ended during a compilation."""
        if self._closed:
            return stopping()
        how = "the end of its process" if status is None else _ending(status)
        _log.error("the compilation of %s met %s", label, how)
        if status is not None and os.WIFSIGNALED(status) and os.WTERMSIG(status) == signal.SIGKILL:
            # killed by the system, which was out of memory
            return self._too_large()
        return ModelError(
            f"{label}: expected a model that MuJoCo compiles, got {how}; simplify the model, or start the "
            f"server with more than {self._settings.flag('compile_memory')} if it is large"
        )

    def _too_large(self) -> LimitError:
        return LimitError(
            "compile_memory: expected a model that compiles in less memory, got one that needs more; "
            f"simplify it, or start the server with more than {self._settings.flag('compile_memory')} "
            "and --memory",
            argument="compile_memory",
        )

    def _too_long(self) -> LimitError:
        return LimitError(
            f"compile_time: expected a model that compiles in {self._settings.compile_time:g} s, got one "
            "that takes longer; simplify it, or start the server with more than "
            f"{self._settings.flag('compile_time')}",
            argument="compile_time",
        )


def _ending(status: int) -> str:
    """Describe how a process ended, by its wait status."""
    if not os.WIFSIGNALED(status):
        return f"an exit of its compiler with status {os.WEXITSTATUS(status)}"
    number = os.WTERMSIG(status)
    name = signal.Signals(number).name if number in list(signal.Signals) else str(number)
    return f"a crash of its compiler ({name})"


def _no_process(cause: object) -> LimitError:
    return LimitError(
        f"compilers: expected a process to compile the model in, got none ({cause}); call again later, or "
        "raise the system's limit of processes or open files",
        argument="compilers",
        retry_after=_RETRY_SECONDS,
    )


def _deadline_passed() -> DeadlineError:
    return DeadlineError(
        "timeout: expected the compiled model before the deadline, got none; connect with a larger timeout, "
        "or simplify the model",
        argument="timeout",
    )

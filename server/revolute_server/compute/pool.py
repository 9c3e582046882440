"""Runs engine calls on a bounded number of threads, away from the event loop.

The engine releases the GIL, so the loop goes on answering while every worker computes. Calls beyond the
workers wait in a bounded queue, in the order in which they came; calls beyond the queue are refused at once,
with a hint when to come again. Calls that may be computed together are gathered (see `batching`). A call
whose client has gone or whose deadline has passed before its turn is never started; one that runs is told to
stop through the cancel token, which the engine polls each step, as soon as nobody waits for any call of its
batch. A place is given back when the thread has really returned.
"""

from __future__ import annotations

import asyncio
import contextlib
import contextvars
import os
import sys
import threading
import time
from collections import deque
from collections.abc import Callable, Hashable, Sequence
from concurrent.futures import Future
from typing import Any, TypeVar

from revolute.contract.errors import CancelledError, DeadlineError, LimitError
from revolute_engine import CancelToken

from ..access.call import current_deadline
from ..observe.incidents import stopping
from ..observe.telemetry import Telemetry
from ..started_threads import started_executor
from .batching import Waiting, Work, alone
from .quotas import Quotas

Result = TypeVar("Result")

_SHORTEST_RETRY, _LONGEST_RETRY = 0.05, 30.0
"""Seconds after which a refused call may come again."""


class _Job:
    """One call that waits or runs."""

    def __init__(self, work: Work, future: asyncio.Future[Any], ready: float) -> None:
        self.work = work
        self.future = future
        self.deadline = current_deadline()
        self.context = contextvars.copy_context()
        self.submitted = time.time_ns()
        self.ready = ready
        self.batch: _Batch | None = None


class _Batch:
    """Calls that run as one."""

    def __init__(self, jobs: Sequence[_Job]) -> None:
        self.jobs = jobs
        self.key = jobs[0].work.key
        self.token = CancelToken()
        self.left = len(jobs)
        self.started = time.time_ns()
        for job in jobs:
            job.batch = self

    def run(self) -> Sequence[Any]:
        return self.jobs[0].work.run([job.work.item for job in self.jobs], self.token)

    def leave(self) -> None:
        """Note that nobody waits for one of the calls any more; when all have gone, the engine stops."""
        self.left -= 1
        if self.left == 0:
            self.token.cancel()


class EnginePool:
    """Bounded engine threads whose calls stop when their awaiters are cancelled.

    Args:
        workers: batches that run at once.
        queue: calls that may wait for a worker.
        batch_delay: seconds that a call waits for others at most.
        batch_size: environments of one batch.
        group: environments that fill the engine: calls that make up so many wait no longer, and batches are
            multiples of it where they can; None for `batch_size`.
        nice: by how much the engine's threads give way to the event loop (0 to 19), where the system has
            that per thread.
        quotas: bounds the calls of each client; None for no bound.
        telemetry: gets the time that calls wait and run.

    Raises:
        LimitError: the system does not start so many threads.
    """

    def __init__(
        self,
        workers: int,
        queue: int,
        *,
        batch_delay: float = 0.0,
        batch_size: int = 64,
        group: int | None = None,
        nice: int = 0,
        quotas: Quotas | None = None,
        telemetry: Telemetry | None = None,
    ) -> None:
        self.workers = workers
        self.queue = queue
        self.batch_size = batch_size
        self._group = min(group or batch_size, batch_size)
        self._waits = Waiting(batch_delay)
        self._quotas = quotas or Quotas()
        self._telemetry = telemetry or Telemetry()
        self._executor = started_executor(workers, "revolute-engine", _give_way, (nice,))
        self._waiting: deque[_Job] = deque()
        self._running: set[_Batch] = set()
        self._timer: asyncio.TimerHandle | None = None
        self._mean = 0.0
        self._closed = False

    @property
    def waiting(self) -> int:
        """Calls that wait for a worker."""
        return len(self._waiting)

    @property
    def running(self) -> int:
        """Calls that run, those counted that nobody waits for but whose thread has not returned yet."""
        return sum(len(batch.jobs) for batch in self._running)

    @property
    def busy(self) -> int:
        """Workers that compute."""
        return len(self._running)

    @property
    def occupied(self) -> int:
        """Calls that run or wait."""
        return self.waiting + self.running

    async def run(self, call: Callable[[CancelToken], Result], steps: int = 0) -> Result:
        """Run `call(token)`, which takes about so many steps, on a worker and return its result; see
        `run_work`."""
        return await self.run_work(alone(call, steps))

    async def run_work(self, work: Work) -> Any:
        """Run a call on a worker, perhaps together with others, and return its result.

        Raises:
            LimitError: the queue is full, or the client has too many calls under way.
            DeadlineError: the caller's deadline passed before its turn.
            UnavailableError: the server is stopping.
        """
        self.check_room()
        with self._quotas.call(self.retry_after):
            loop = asyncio.get_running_loop()
            job = _Job(work, loop.create_future(), loop.time() + self._waits.come(work.key))
            self._waiting.append(job)
            self._dispatch()
            try:
                return await job.future
            except asyncio.CancelledError:
                self._leave(job)
                raise

    def check_room(self) -> None:
        """Refuse a call for which there is no place.

        Raises:
            LimitError: the queue is full.
            UnavailableError: the server is stopping.
        """
        if self._closed:
            raise stopping()
        idle = self.workers - len(self._running)
        if len(self._waiting) >= self.queue + max(0, idle):
            raise LimitError(
                f"queue: expected at most {self.queue} waiting calls, got one more while {self.workers} run; "
                "call again later, or start the server with a larger --queue or more --workers",
                argument="queue",
                retry_after=self.retry_after(),
            )

    def retry_after(self) -> float:
        """Return in how many seconds a place is likely to be free."""
        seconds = self._mean * (1 + len(self._waiting) / self.workers)
        return min(max(seconds, _SHORTEST_RETRY), _LONGEST_RETRY)

    def close(self) -> None:
        """Refuse new calls, drop those that wait and stop those that run within one step."""
        self._closed = True
        for job in self._waiting:
            if not job.future.done():
                job.future.set_exception(stopping())
        self._waiting.clear()
        for batch in self._running:
            batch.token.cancel()
        self._executor.shutdown(wait=False, cancel_futures=True)

    def _dispatch(self) -> None:
        """Start what is ready as long as workers are idle."""
        loop = asyncio.get_running_loop()
        while len(self._running) < self.workers and not self._closed:
            first = self._next_ready(loop.time())
            if first is None:
                break
            batch = _Batch(self._gather(first))
            self._running.add(batch)
            if environments := sum(job.work.size for job in batch.jobs):
                self._telemetry.metrics.batch_environments.observe(environments)
            future: Future[Sequence[Any]] = self._submitted(batch)
            future.add_done_callback(
                lambda done, batch=batch: loop.call_soon_threadsafe(self._finish, batch, done)  # type: ignore[misc]
            )
        self._set_timer(loop)

    def _submitted(self, batch: _Batch) -> Future[Sequence[Any]]:
        """Give a batch to a thread; one that none takes fails, and its place is given back like any other."""
        try:
            return self._executor.submit(batch.run)
        except Exception as error:
            failed: Future[Sequence[Any]] = Future()
            failed.set_exception(error)
            return failed

    def _next_ready(self, now: float) -> _Job | None:
        """Return the first call that need not wait for others; drop those that are too late."""
        late = [job for job in self._waiting if job.deadline is not None and job.deadline <= time.monotonic()]
        for job in late:
            self._waiting.remove(job)
            self._waits.gone(job.work.key)
            if not job.future.done():
                job.future.set_exception(_too_late())
        sizes: dict[Hashable, int] = {}
        for job in self._waiting:
            key = job.work.key
            sizes[key] = sizes.get(key, 0) + job.work.size
            if sizes[key] >= self._group or self._waits.complete(key):
                return job
            if job.ready <= now:
                self._waits.given_up(key)
                return job
        return None

    def _gather(self, first: _Job) -> list[_Job]:
        """Take a call out of the queue, with all others that fit into its batch, oldest first; those that
        would begin a group and not fill it stay for the next batch."""
        if first.work.key is None:
            self._waiting.remove(first)
            return [first]
        jobs: list[_Job] = []
        size = whole = 0
        for job in self._waiting:
            if job.work.key == first.work.key and (not jobs or size + job.work.size <= self.batch_size):
                jobs.append(job)
                size += job.work.size
                if size % self._group == 0:
                    whole = len(jobs)
        jobs = jobs[: whole or len(jobs)]
        for job in jobs:
            self._waiting.remove(job)
        return jobs

    def _set_timer(self, loop: asyncio.AbstractEventLoop) -> None:
        """Come back when the next call has waited long enough for others."""
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
        if self._waiting and len(self._running) < self.workers and not self._closed:
            self._timer = loop.call_at(min(job.ready for job in self._waiting), self._dispatch)

    def _finish(self, batch: _Batch, done: Future[Sequence[Any]]) -> None:
        """Hand the results of a batch to its callers, and start what waits."""
        self._running.discard(batch)
        ended = time.time_ns()
        seconds = 1e-9 * (ended - batch.started)
        for job in batch.jobs:
            job.context.run(self._telemetry.record, "queue", job.submitted, batch.started)
            job.context.run(self._telemetry.record, "compute", batch.started, ended)
        self._mean += 0.2 * (seconds - self._mean)
        for _job in batch.jobs:
            self._waits.gone(batch.key, seconds if batch.left else None)
        self._deliver(batch, done)
        for job in batch.jobs:
            # a cycle would keep the arrays of the call until the garbage collector comes
            job.batch = None
        if not self._closed:
            self._dispatch()

    def _deliver(self, batch: _Batch, done: Future[Sequence[Any]]) -> None:
        failure: BaseException | None = CancelledError("cancelled") if done.cancelled() else done.exception()
        for place, job in enumerate(batch.jobs):
            if job.future.done():
                continue
            found = failure if failure is not None else done.result()[place]
            if self._closed and isinstance(found, CancelledError):
                found = stopping()
            if isinstance(found, BaseException):
                job.future.set_exception(found)
            else:
                job.future.set_result(found)

    def _leave(self, job: _Job) -> None:
        """Drop a call that nobody waits for any more."""
        if job.batch is not None:
            job.batch.leave()
        elif job in self._waiting:
            self._waiting.remove(job)
            self._waits.gone(job.work.key)


def _give_way(nice: int) -> None:
    """Lower the priority of this thread and of those that it starts; Linux has one for each thread."""
    if sys.platform == "linux":
        thread = threading.get_native_id()
        with contextlib.suppress(OSError):
            os.setpriority(os.PRIO_PROCESS, thread, os.getpriority(os.PRIO_PROCESS, thread) + nice)


def _too_late() -> DeadlineError:
    return DeadlineError(
        "timeout: expected a worker before the deadline, got none; "
        "connect with a larger timeout, or call again when the server has less to do",
        argument="timeout",
    )

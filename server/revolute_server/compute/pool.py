"""Runs engine calls on a bounded number of threads, away from the event loop.

The engine releases the GIL, so the loop keeps answering while all workers compute. When all workers are busy,
calls wait in a bounded queue, first come, first served. When the queue is full, a call is refused at once
with a time after which to retry. Calls that may be computed together are gathered (see `batching`). A waiting
call is dropped when its client disconnects or its deadline passes. A running batch is stopped through its
cancel token, which the engine polls each step, when no client waits for any of its calls. Its worker counts
as busy until the thread has returned.
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
from .batching import BatchDelay, Work, alone
from .quotas import Quotas

Result = TypeVar("Result")

_SHORTEST_RETRY, _LONGEST_RETRY = 0.05, 30.0
"""Bounds in s on the time after which a refused call may be retried."""


class _Job:
    """One call that waits or runs; `ready` is the loop time until which it waits for others."""

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
        self.awaited = len(jobs)
        self.started = time.time_ns()
        for job in jobs:
            job.batch = self

    def run(self) -> Sequence[Any]:
        return self.jobs[0].work.run([job.work.item for job in self.jobs], self.token)

    def abandon_one(self) -> None:
        """Note that the client of one call no longer waits; without clients the engine stops."""
        self.awaited -= 1
        if self.awaited == 0:
            self.token.cancel()


class EnginePool:
    """Bounded engine threads whose calls stop when their awaiters are cancelled.

    Args:
        workers: number of batches that run at once.
        queue: number of calls that may wait for a worker.
        batch_delay: longest time in s that a call waits for others.
        batch_size: largest number of environments in a batch.
        group: number of environments that fill the engine. A batch of this size starts at once, and batches
            are multiples of it where possible. None for `batch_size`.
        nice: added to the nice value of the engine's threads (0 to 19), on systems that have one per thread.
        quotas: bounds the calls of each client; None for no bound.
        telemetry: receives the times that calls wait and run.

    Raises:
        LimitError: the system cannot start this many threads.
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
        self._delay = BatchDelay(batch_delay)
        self._quotas = quotas or Quotas()
        self._telemetry = telemetry or Telemetry()
        self._executor = started_executor(workers, "revolute-engine", _lower_priority, (nice,))
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
        """Calls that run, including abandoned ones whose thread has not returned yet."""
        return sum(len(batch.jobs) for batch in self._running)

    @property
    def busy(self) -> int:
        """Workers that compute."""
        return len(self._running)

    async def run(self, call: Callable[[CancelToken], Result], steps: int = 0) -> Result:
        """Run `call(token)` on a worker and return its result; see `run_work`.

        Args:
            call: takes the cancel token.
            steps: approximate number of steps, summed over environments.
        """
        return await self.run_work(alone(call, steps))

    async def run_work(self, work: Work) -> Any:
        """Run a call on a worker, possibly in a batch with others, and return its result.

        Raises:
            LimitError: the queue is full, or the client has too many calls under way.
            DeadlineError: the caller's deadline passed before its turn.
            UnavailableError: the server is stopping.
        """
        self.check_room()
        with self._quotas.call(self.retry_after, work.steps):
            loop = asyncio.get_running_loop()
            job = _Job(work, loop.create_future(), loop.time() + self._delay.arrive(work.key))
            self._waiting.append(job)
            self._dispatch()
            try:
                return await job.future
            except asyncio.CancelledError:
                self._abandon(job)
                raise

    def check_room(self) -> None:
        """Refuse a call if the queue is full.

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
        """Return the time in s after which the queue is likely to have room."""
        seconds = self._mean * (1 + len(self._waiting) / self.workers)
        return min(max(seconds, _SHORTEST_RETRY), _LONGEST_RETRY)

    def close(self) -> None:
        """Refuse new calls, drop the waiting ones, and stop the running ones within one step."""
        self._closed = True
        for job in self._waiting:
            if not job.future.done():
                job.future.set_exception(stopping())
        self._waiting.clear()
        for batch in self._running:
            batch.token.cancel()
        self._executor.shutdown(wait=False, cancel_futures=True)

    def _dispatch(self) -> None:
        """Start ready batches while workers are idle."""
        loop = asyncio.get_running_loop()
        while len(self._running) < self.workers and not self._closed:
            first = self._next_ready(loop.time())
            if first is None:
                break
            batch = _Batch(self._gather(first))
            self._running.add(batch)
            if environments := sum(job.work.size for job in batch.jobs):
                self._telemetry.metrics.batch_environments.observe(environments)
            future: Future[Sequence[Any]] = self._submit(batch)
            future.add_done_callback(
                lambda done, batch=batch: loop.call_soon_threadsafe(self._finish, batch, done)  # type: ignore[misc]
            )
        self._set_timer(loop)

    def _submit(self, batch: _Batch) -> Future[Sequence[Any]]:
        """Hand a batch to a thread. If that fails, the future fails, so that the worker is freed as usual."""
        try:
            return self._executor.submit(batch.run)
        except Exception as error:
            failed: Future[Sequence[Any]] = Future()
            failed.set_exception(error)
            return failed

    def _next_ready(self, now: float) -> _Job | None:
        """Return the first call that need not wait for others; drop calls whose deadline has passed."""
        late = [job for job in self._waiting if job.deadline is not None and job.deadline <= time.monotonic()]
        for job in late:
            self._waiting.remove(job)
            self._delay.leave(job.work.key)
            if not job.future.done():
                job.future.set_exception(_deadline_passed())
        sizes: dict[Hashable, int] = {}
        for job in self._waiting:
            key = job.work.key
            sizes[key] = sizes.get(key, 0) + job.work.size
            if sizes[key] >= self._group or self._delay.is_complete(key):
                return job
            if job.ready <= now:
                self._delay.expire(key)
                return job
        return None

    def _gather(self, first: _Job) -> list[_Job]:
        """Take a call out of the queue, with the oldest others that fit into its batch.

        Calls beyond the last full group stay for the next batch.
        """
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
        """Dispatch again when the wait of the next call is over."""
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
        if self._waiting and len(self._running) < self.workers and not self._closed:
            self._timer = loop.call_at(min(job.ready for job in self._waiting), self._dispatch)

    def _finish(self, batch: _Batch, done: Future[Sequence[Any]]) -> None:
        """Hand the results of a batch to its callers, and start waiting calls."""
        self._running.discard(batch)
        ended = time.time_ns()
        seconds = 1e-9 * (ended - batch.started)
        for job in batch.jobs:
            job.context.run(self._telemetry.record, "queue", job.submitted, batch.started)
            job.context.run(self._telemetry.record, "compute", batch.started, ended)
        self._mean += 0.2 * (seconds - self._mean)
        for _job in batch.jobs:
            self._delay.leave(batch.key, seconds if batch.awaited else None)
        self._deliver(batch, done)
        for job in batch.jobs:
            # break the reference cycle: it would keep the arrays until the next garbage collection
            job.batch = None
        if not self._closed:
            self._dispatch()

    def _deliver(self, batch: _Batch, done: Future[Sequence[Any]]) -> None:
        failure: BaseException | None = CancelledError("cancelled") if done.cancelled() else done.exception()
        for index, job in enumerate(batch.jobs):
            if job.future.done():
                continue
            result = failure if failure is not None else done.result()[index]
            if self._closed and isinstance(result, CancelledError):
                result = stopping()
            if isinstance(result, BaseException):
                job.future.set_exception(result)
            else:
                job.future.set_result(result)

    def _abandon(self, job: _Job) -> None:
        """Drop a call whose client no longer waits."""
        if job.batch is not None:
            job.batch.abandon_one()
        elif job in self._waiting:
            self._waiting.remove(job)
            self._delay.leave(job.work.key)


def _lower_priority(nice: int) -> None:
    """Lower the priority of this thread and of the threads that it starts; Linux has one per thread."""
    if sys.platform == "linux":
        thread = threading.get_native_id()
        with contextlib.suppress(OSError):
            os.setpriority(os.PRIO_PROCESS, thread, os.getpriority(os.PRIO_PROCESS, thread) + nice)


def _deadline_passed() -> DeadlineError:
    return DeadlineError(
        "timeout: expected a worker before the deadline, got none; "
        "connect with a larger timeout, or call again when the server has less to do",
        argument="timeout",
    )

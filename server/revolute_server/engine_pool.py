"""Runs engine calls on a bounded number of threads, away from the event loop.

The engine releases the GIL, so the loop goes on answering while every worker computes. Calls beyond the
workers wait in a bounded queue; calls beyond the queue are refused at once. A call whose client has gone is
told to stop through its cancel token, which the engine polls each step; its place is given back when the
thread has really returned.
"""

from __future__ import annotations

import asyncio
import contextlib
import contextvars
import time
from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor
from typing import TypeVar

from revolute.errors import LimitError, UnavailableError
from revolute_engine import CancelToken

from .telemetry import Telemetry

Result = TypeVar("Result")


class EnginePool:
    """A bounded thread pool whose calls stop when their awaiter is cancelled."""

    def __init__(self, workers: int, queue: int, telemetry: Telemetry | None = None) -> None:
        self.workers = workers
        self.queue = queue
        self._telemetry = telemetry or Telemetry()
        self._executor = ThreadPoolExecutor(max_workers=workers, thread_name_prefix="revolute-engine")
        self._tokens: set[CancelToken] = set()
        self._closed = False

    @property
    def occupied(self) -> int:
        """Calls that run or wait."""
        return len(self._tokens)

    @property
    def waiting(self) -> int:
        """Calls that wait for a worker."""
        return max(0, self.occupied - self.workers)

    async def run(self, call: Callable[[CancelToken], Result]) -> Result:
        """Run `call(token)` on a worker and return its result.

        Raises:
            LimitError: all workers are busy and the queue is full.
            UnavailableError: the server is stopping.
        """
        if self._closed:
            raise UnavailableError(
                "server: expected a running server, got one that is stopping; call again later"
            )
        if self.occupied >= self.workers + self.queue:
            raise LimitError(
                f"queue: expected at most {self.queue} waiting calls, got one more while {self.workers} run; "
                "call again later, or start the server with a larger --queue or more --workers",
                argument="queue",
            )
        token = CancelToken()
        self._tokens.add(token)
        loop = asyncio.get_running_loop()
        future: Future[Result] = self._executor.submit(self._timed(call, loop), token)
        future.add_done_callback(lambda _: loop.call_soon_threadsafe(self._tokens.discard, token))
        try:
            return await asyncio.wrap_future(future)
        except asyncio.CancelledError:
            token.cancel()
            raise

    def _timed(
        self, call: Callable[[CancelToken], Result], loop: asyncio.AbstractEventLoop
    ) -> Callable[[CancelToken], Result]:
        """Return a call that reports, on the loop and within its caller's context, how long it waited and
        ran."""
        submitted, context = time.time_ns(), contextvars.copy_context()

        def report(started: int, ended: int) -> None:
            self._telemetry.record("queue", submitted, started)
            self._telemetry.record("compute", started, ended)

        def work(token: CancelToken) -> Result:
            started = time.time_ns()
            try:
                return call(token)
            finally:
                # a loop that has been closed wants no reports any more
                with contextlib.suppress(RuntimeError):
                    loop.call_soon_threadsafe(report, started, time.time_ns(), context=context)

        return work

    def close(self) -> None:
        """Refuse new calls, drop those that wait and stop those that run within one step."""
        self._closed = True
        for token in list(self._tokens):
            token.cancel()
        self._executor.shutdown(wait=False, cancel_futures=True)

"""Shutdown of the server: signals, and the grace time after the first one.

The first SIGTERM or SIGINT starts an orderly stop within `--grace`; the second one ends the process at once.
The handlers are Python's, not those of the event loop, so that they run even if a callback blocks the loop.
"""

from __future__ import annotations

import asyncio
import os
import signal
import sys
import time
from collections.abc import Awaitable, Callable
from types import FrameType
from typing import Any

_LAST_RESORT = 0.5
"""Seconds after the grace time after which the system kills the process if it still runs."""

_SHORTEST = 0.05
"""Seconds that each step of the stop gets at least."""


class Countdown:
    """A time limit for a stop in several steps.

    Args:
        seconds: time for all steps together.
    """

    def __init__(self, seconds: float) -> None:
        self._end = time.monotonic() + seconds
        self.exceeded = False

    def left(self, keep: float = 0.0) -> float:
        """Return the seconds that are left, minus `keep` for later steps."""
        return max(_SHORTEST, self._end - keep - time.monotonic())

    async def wait_for(self, work: Awaitable[Any], keep: float = 0.0) -> bool:
        """Await work until the time is over; return whether it is done.

        Unfinished work is cancelled, without waiting for the cancellation.
        """
        task = asyncio.ensure_future(work)
        await asyncio.wait((task,), timeout=self.left(keep))
        if task.done():
            task.result()
            return True
        task.cancel()
        return False

    async def finish(self, work: Awaitable[Any]) -> None:
        """Await work until the time is over; set `exceeded` if it is not done."""
        if not await self.wait_for(work):
            self.exceeded = True


def on_signals(grace: float, first: Callable[[], None], clean_up: Callable[[], None]) -> None:
    """Handle SIGTERM and SIGINT.

    Args:
        grace: seconds from the first signal to the end; half a second later SIGALRM kills the process.
        first: called by the event loop after the first signal.
        clean_up: called before the second signal ends the process.
    """
    loop = asyncio.get_running_loop()
    stopping = False

    def handle(_number: int, _frame: FrameType | None) -> None:
        nonlocal stopping
        if stopping:
            clean_up()
            exit_now()
        stopping = True
        if hasattr(signal, "setitimer"):
            signal.setitimer(signal.ITIMER_REAL, grace + _LAST_RESORT)
        loop.call_soon_threadsafe(first)

    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, handle)


def exit_now() -> None:
    """End the process with status 0, without waiting for its threads."""
    for stream in (sys.stdout, sys.stderr):
        stream.flush()
    os._exit(0)

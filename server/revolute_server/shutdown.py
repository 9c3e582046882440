"""The end of the server: signals, and the time that is left after the first one.

A first SIGTERM or SIGINT asks for an orderly end within `--grace`, a second one ends the process at once. The
handlers are Python's, not those of the event loop, so that they run while a callback keeps the loop busy.
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
"""Seconds after the grace time at which the system ends a process that has not ended itself."""

_SHORTEST = 0.05
"""Seconds that a step of the end gets in any case."""


class Countdown:
    """The time for an end in several steps.

    Args:
        seconds: for all steps together.
    """

    def __init__(self, seconds: float) -> None:
        self._end = time.monotonic() + seconds
        self.exceeded = False

    def left(self, keep: float = 0.0) -> float:
        """Return the seconds that are left, without those to keep for later steps."""
        return max(_SHORTEST, self._end - keep - time.monotonic())

    async def wait_for(self, work: Awaitable[Any], keep: float = 0.0) -> bool:
        """Await work while there is time; tell whether it is done.

        What is not done is cancelled, but nobody waits for it to heed that.
        """
        task = asyncio.ensure_future(work)
        await asyncio.wait((task,), timeout=self.left(keep))
        if task.done():
            task.result()
            return True
        task.cancel()
        return False

    async def finish(self, work: Awaitable[Any]) -> None:
        """Await work that should be done by the end, and note if it is not."""
        if not await self.wait_for(work):
            self.exceeded = True


def on_signals(grace: float, first: Callable[[], None], clean_up: Callable[[], None]) -> None:
    """Handle SIGTERM and SIGINT.

    Args:
        grace: seconds from the first signal to the end; half a second later the system ends the process
            (SIGALRM) if something keeps it from ending itself.
        first: called by the event loop after the first signal.
        clean_up: called before the process ends at the second one.
    """
    loop = asyncio.get_running_loop()
    came = False

    def handle(_number: int, _frame: FrameType | None) -> None:
        nonlocal came
        if came:
            clean_up()
            leave()
        came = True
        if hasattr(signal, "setitimer"):
            signal.setitimer(signal.ITIMER_REAL, grace + _LAST_RESORT)
        loop.call_soon_threadsafe(first)

    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, handle)


def leave() -> None:
    """End the process with status 0, whatever its threads do."""
    for stream in (sys.stdout, sys.stderr):
        stream.flush()
    os._exit(0)

"""The clock for expiry: when the system's clock is set forward, records do not expire all at once."""

from __future__ import annotations

import time
from collections.abc import Callable

FASTEST = 2.0
"""Largest number of seconds that this clock advances in one second while it catches up."""


class ExpiryClock:
    """Follows the system's clock: forward at most at the rate FASTEST, backward at once.

    Expiries are times of the system's clock, so that they stay valid after a restart and for other servers on
    the same store. If that clock is set forward by a day, all leases would end at once. With this clock a
    lease of an hour lasts at least half an hour, and its client renews it with any call in that time.

    Args:
        system: returns the system's time in s.
        monotonic: returns a time in s that is not affected by setting the clock.
    """

    def __init__(
        self, system: Callable[[], float] = time.time, monotonic: Callable[[], float] = time.monotonic
    ) -> None:
        self._system = system
        self._monotonic = monotonic
        self._now = system()
        self._ticks = monotonic()

    def now(self) -> float:
        """Return the time in s since 1970."""
        ticks = self._monotonic()
        furthest = self._now + FASTEST * (ticks - self._ticks)
        self._now, self._ticks = min(self._system(), furthest), ticks
        return self._now

"""The time by which expiry is judged: a clock that is set forward ends nothing at once."""

from __future__ import annotations

import time
from collections.abc import Callable

FASTEST = 2.0
"""Seconds that this clock advances in one, while it catches up."""


class ExpiryClock:
    """The system's time, but while it jumps forward no faster than FASTEST; it follows backward at once.

    Expiries are times of the system's clock, so that they hold for restarts and for other servers on the same
    store. When somebody sets that clock forward by a day, every lease would have ended. Here a lease of an
    hour still lasts half an hour or more, in which its client uses the session and so renews it.

    Args:
        system: the system's time in s.
        monotonic: seconds that pass, whoever sets the clock.
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

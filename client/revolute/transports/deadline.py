"""The time that is left of a call."""

from __future__ import annotations

import time

_LEAST = 1e-3
"""Seconds; what has no time left ends with its deadline all the same, and not before it has begun."""


class Deadline:
    """The end of a call that may be made of several.

    Args:
        seconds: that all may take from now on; None for no limit.
    """

    def __init__(self, seconds: float | None) -> None:
        self.seconds = seconds
        self._end = None if seconds is None else time.monotonic() + seconds

    def rest(self, most: float | None = None) -> float | None:
        """Return the seconds that are left, but no more than `most`; None for no limit."""
        if self._end is None:
            return most
        rest = max(_LEAST, self._end - time.monotonic())
        return rest if most is None else min(rest, most)

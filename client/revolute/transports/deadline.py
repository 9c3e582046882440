"""The remaining time of a call."""

from __future__ import annotations

import time

_LEAST = 1e-3
"""Smallest remaining time in s. After the deadline, a request still starts, and then times out by itself."""


class Deadline:
    """Time limit of a call, shared by all requests that it makes.

    Args:
        seconds: time limit from now in s; None for no limit.
    """

    def __init__(self, seconds: float | None) -> None:
        self.seconds = seconds
        self._end = None if seconds is None else time.monotonic() + seconds

    def remaining(self, most: float | None = None) -> float | None:
        """Return the remaining time in s, at most `most`; None for no limit."""
        if self._end is None:
            return most
        rest = max(_LEAST, self._end - time.monotonic())
        return rest if most is None else min(rest, most)

"""Attempts of one call share its time."""

from __future__ import annotations

import pytest

from revolute.transports import deadline
from revolute.transports.deadline import Deadline


def test_time_runs_out_once_for_all_attempts(monkeypatch: pytest.MonkeyPatch) -> None:
    now = 100.0
    monkeypatch.setattr(deadline.time, "monotonic", lambda: now)
    limit = Deadline(3.0)
    assert limit.seconds == limit.remaining() == 3.0
    assert limit.remaining(10.0) == 3.0 and limit.remaining(1.0) == 1.0
    now = 102.5
    assert limit.remaining() == limit.remaining(10.0) == 0.5
    now = 200.0
    # too little for anything, but no error of the library's own
    assert 0.0 < limit.remaining() <= 1e-3  # type: ignore[operator]
    assert limit.seconds == 3.0


def test_no_limit() -> None:
    assert Deadline(None).remaining() is None and Deadline(None).remaining(10.0) == 10.0

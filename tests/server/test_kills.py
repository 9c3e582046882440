"""What was acknowledged survives kill -9 in the middle of work, time and again, with the same gradient."""

from __future__ import annotations

from pathlib import Path

import pytest

from benchmarks.service.kills import kill_often
from testbed.long_form import repeats

KILLS = repeats(12, 50)
"""benchmarks/service/kills.py has a thousand."""


@pytest.mark.slow
def test_nothing_acknowledged_is_lost_or_altered(tmp_path: Path) -> None:
    report = kill_often(tmp_path / "store.db", KILLS, all_every=repeats(5, 20))
    assert report.wrong == []
    assert report.kills == KILLS
    # each kill met a client in the middle of work, most met both
    assert report.acknowledged > 2 * KILLS and report.sessions > KILLS
    assert report.idle < KILLS // 2

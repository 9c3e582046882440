"""Instruction counts: a regression is told from noise."""

from __future__ import annotations

from benchmarks.instructions.__main__ import regressions, report

BEFORE = {"forward": 1000, "backward": 3000}


def test_a_count_that_grew_is_a_regression() -> None:
    assert regressions({"forward": 1030, "backward": 3000}, BEFORE) == ["forward"]
    assert "| forward | 1000 | 1030 | +3.00 % |" in report({"forward": 1030}, BEFORE)


def test_fewer_instructions_little_more_and_new_cases_are_none() -> None:
    assert regressions({"forward": 1010, "backward": 2000, "jacobian": 10**6}, BEFORE) == []

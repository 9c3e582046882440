"""The service's benchmarks start, are found by the command that runs them all, and fail when a part fails."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from benchmarks.service import peers, run


def test_every_part_is_found_and_explains_itself() -> None:
    assert {"drain", "fuzz", "peers"} <= set(run.parts())
    assert set(run.SHORT) <= set(run.parts())
    for part in run.parts():
        found = run.run(part, ["--help"], 60.0)
        assert found["status"] == 0, found
        assert "usage:" in found["output"]


def test_results_of_a_part_are_written(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(run.SHORT, "fuzz", ["--messages", "300", "--cases", "0"])
    out = tmp_path / "service.json"
    assert run.main(["--parts", "fuzz", "--out", str(out)]) == 0
    (found,) = json.loads(out.read_text())["parts"].values()
    assert found["results"]["grpc"]["messages"] == 300
    assert "| fuzz --messages 300 --cases 0 | passed |" in out.with_suffix(".md").read_text()


def test_a_part_that_fails_or_takes_too_long_is_said_to(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(run.SHORT, "fuzz", ["--no-such-flag"])
    assert run.main(["--parts", "fuzz", "--out", str(tmp_path / "out.json")]) == 1
    assert "| failed, status 2 |" in (tmp_path / "out.md").read_text()
    monkeypatch.setitem(run.SHORT, "fuzz", ["--messages", "1000000", "--cases", "0"])
    assert run.main(["--parts", "fuzz", "--seconds", "3", "--out", str(tmp_path / "out.json")]) == 1
    assert "| out of time |" in (tmp_path / "out.md").read_text()


def test_the_table_of_peers_names_what_failed() -> None:
    results = {
        "a question": {
            "ours": {"p50_ms": 1.234, "p99_ms": 2.0, "calls": 3, "same bits": True},
            "theirs": {"failed": "TimeoutError: it took too long"},
        }
    }
    text = peers.table(results)
    assert "| a question | ours | 1.23 | 2 |  | yes |" in text
    assert "| a question | theirs | failed: TimeoutError: it took too long |" in text
    assert all(len(each) == 3 for each in peers.QUALITIES.values())

"""The comparison with peers: rows, reasons, and gradients that are checked against differences."""

from __future__ import annotations

from pathlib import Path

import pytest

from benchmarks.peers import compare
from benchmarks.peers.environment import Environment, Unavailable
from benchmarks.peers.scene import write_scene


def test_revolute_and_mujoco_report_times_and_small_errors(tmp_path: Path) -> None:
    write_scene(tmp_path, 5)
    for name in ("revolute", "mujoco"):
        rows = compare.run(name, compare.PEERS[name], str(tmp_path), steps=5, repeats=1)
        assert len(rows) >= 3 and all(str(row["peer"]).startswith(name) for row in rows), rows
        errors = [row["gradient_error"] for row in rows if "gradient_error" in row]
        assert errors and all(isinstance(error, float) and error < 1e-2 for error in errors), rows
        assert all(row["forward_us"] > 0 for row in rows)  # type: ignore[operator]


def test_a_peer_that_fails_is_a_row_with_its_reason(tmp_path: Path) -> None:
    rows = compare.run("mujoco", compare.PEERS["mujoco"], str(tmp_path), steps=5, repeats=1)  # no scene there
    assert len(rows) == 1 and "laikago.xml" in str(rows[0]["note"])


def test_a_peer_that_cannot_be_installed_is_a_row_with_its_reason(monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(_: Environment) -> Path:
        raise Unavailable("no wheel for this platform")

    monkeypatch.setattr(Environment, "python", refuse)
    rows = compare.run("brax", compare.PEERS["brax"], "", steps=5, repeats=1)
    assert rows == [{"peer": "brax", "what": "installation", "note": "no wheel for this platform"}]


def test_a_peer_that_takes_too_long_is_stopped(tmp_path: Path) -> None:
    write_scene(tmp_path, 100_000)
    slow = compare.Peer("mujoco-core", Environment("revolute"), seconds=1)
    rows = compare.run("mujoco", slow, str(tmp_path), steps=100_000, repeats=1)
    assert rows[-1]["note"] == "stopped after 1 s of processor time"

"""The benchmark runs and both engines simulate the same scene in it; its figures are not judged."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import numpy as np

from benchmarks.laikago import Scene
from benchmarks.measure import Timing, interleaved

ROOT = Path(__file__).resolve().parents[2]
HEIGHT_TOLERANCE = 5e-3  # metres; MuJoCo's contacts are soft, so it stands a few millimetres lower


def test_writes_results_and_table(tmp_path: Path) -> None:
    out = tmp_path / "bench.json"
    arguments = ["--repeats", "1", "--steps", "20", "--batches", "4", "--out", str(out)]
    command = [sys.executable, "-m", "benchmarks.run", *arguments]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=120, check=False)
    assert done.returncode == 0, done.stderr
    results = json.loads(out.read_text(encoding="utf-8"))["results"]
    assert "standing, batch of 4, backward" in results
    assert all(0 < row["fastest_us"] <= row["median_us"] <= row["slowest_us"] for row in results.values())
    assert out.with_suffix(".md").read_text(encoding="utf-8").strip() == done.stdout.strip()


def test_both_engines_stand_at_the_same_height() -> None:
    scene = Scene(steps=200)
    ours = scene.forward(1)().qpos[0, -1, 2]
    states, _ = scene.mujoco_forward()()
    theirs = states[0, -1, 3]  # after time and the base's x and y
    assert abs(ours - theirs) < HEIGHT_TOLERANCE


def test_without_contacts_both_engines_follow_one_path() -> None:
    scene = Scene(steps=20, contact=False)
    ours = scene.forward(1)().qpos[0, 1:]
    states, _ = scene.mujoco_forward()()
    np.testing.assert_allclose(ours, states[0, :, 1 : 1 + scene.model.nq], rtol=0, atol=1e-9)


def test_timing_is_the_median_of_interleaved_calls() -> None:
    order: list[str] = []
    calls = {"a": lambda: order.append("a"), "b": lambda: order.append("b")}
    timings = interleaved(calls, repeats=3)
    assert order == ["a", "b"] * 4
    assert timings["a"].repeats == 3
    assert Timing(2e-3, 1e-3, 3e-3, 5).per(1000)["median_us"] == 2.0

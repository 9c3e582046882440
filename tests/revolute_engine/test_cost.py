"""The note about models whose steps take long."""

from __future__ import annotations

import pytest

from revolute_engine import _cost, load_model

TWO_MESHES = """<mujoco><asset><mesh name="tetra" vertex="0 0 0 .1 0 0 0 .1 0 0 0 .1"/></asset><worldbody>
  <geom type="plane" size="5 5 1"/><body pos="0 0 1"><freejoint/><geom type="mesh" mesh="tetra"/></body>
  <body pos="0 0 2"><freejoint/><geom type="mesh" mesh="tetra"/></body>
  <body pos="0 0 3"><freejoint/><geom size=".1"/></body></worldbody></mujoco>"""
SPHERE = """<mujoco><worldbody><body><freejoint/><geom size=".1"/></body></worldbody></mujoco>"""


def test_a_slow_model_is_told(monkeypatch: pytest.MonkeyPatch) -> None:
    clock = iter(range(100))
    monkeypatch.setattr(_cost.time, "perf_counter", lambda: 0.0015 * next(clock))
    (note,) = load_model(TWO_MESHES).notes
    assert note.startswith(
        "a step from the zero pose takes about 1.5 ms here; 5 of 6 watched pairs of shapes"
    )
    assert load_model(SPHERE).notes == ["a step from the zero pose takes about 1.5 ms here"]


def test_the_fastest_of_a_few_trials_counts(monkeypatch: pytest.MonkeyPatch) -> None:
    times = iter([0.0, 5e-3, 1.0, 1.0 + 4e-3, 2.0, 2.0 + 1e-4])
    monkeypatch.setattr(_cost.time, "perf_counter", lambda: next(times))
    assert load_model(SPHERE).notes == []
    long = iter([0.0, 0.5])
    monkeypatch.setattr(_cost.time, "perf_counter", lambda: next(long))
    assert load_model(SPHERE).notes == ["a step from the zero pose takes about 500 ms here"]

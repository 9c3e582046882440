"""The page of robots: processes with limits, figures kept by engine, and no mark without an explanation."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from testbed.robot_catalogue import ROBOTS, Robot

from . import processes
from .page import Run, page
from .processes import Limits, Runs

ENOUGH = Limits(seconds=60, gigabytes=4)


def _robot(name: str) -> Robot:
    robot = next(robot for robot in ROBOTS if robot.name == name)
    if robot.file is None:
        pytest.skip(f"{robot.package} is not installed")
    return robot


@pytest.fixture
def pendulum() -> Robot:
    return _robot("gymnasium:inverted_pendulum")


def _measure(folder: Path, limits: Limits, robot: Robot, part: str = "alone") -> tuple[Runs, int]:
    """Measure a robot; also how many processes that took."""
    runs, made = Runs(folder, limits, jobs=2), []
    runs.measure(part, [robot], lambda *progress: made.append(progress))
    return runs, len(made)


def test_what_was_measured_is_not_measured_again(tmp_path: Path, pendulum: Robot) -> None:
    runs, made = _measure(tmp_path, ENOUGH, pendulum)
    figures = runs.figures(pendulum)
    assert made == 1 and figures["nv"] == 2 and len(figures["steps"]) == 2 and not figures.get("cut")
    again, made = _measure(tmp_path, ENOUGH, pendulum)
    assert made == 0 and again.figures(pendulum) == figures


def test_figures_of_another_engine_are_not_taken(
    tmp_path: Path, pendulum: Robot, monkeypatch: pytest.MonkeyPatch
) -> None:
    _measure(tmp_path, ENOUGH, pendulum)
    monkeypatch.setattr(processes, "engine_digest", lambda: "another")
    assert not Runs(tmp_path, ENOUGH, jobs=1).figures(pendulum)
    with pytest.raises(processes.EngineChangedError):
        _measure(tmp_path, ENOUGH, pendulum)


@pytest.mark.parametrize(
    ("limits", "by"), [(Limits(seconds=1e-3, gigabytes=4), "time"), (Limits(60, gigabytes=0.02), "memory")]
)
def test_a_robot_that_takes_too_much_is_cut_off(
    tmp_path: Path, pendulum: Robot, limits: Limits, by: str
) -> None:
    limits = Limits(min(limits.seconds, 60), limits.gigabytes)
    runs, _ = _measure(tmp_path, limits, pendulum, part="ground")
    assert runs.figures(pendulum)["cut"]["ground"]["by"] == by
    assert _measure(tmp_path, limits, pendulum, part="ground")[1] == 0
    wider, made = _measure(tmp_path, ENOUGH, pendulum, part="ground")
    assert made == 1 and not wider.figures(pendulum)["cut"] and "lying" in wider.figures(pendulum)


def test_every_mark_of_the_table_is_explained(pendulum: Robot) -> None:
    refused, odd, waiting = (_robot(f"gymnasium:{name}") for name in ("swimmer", "ant", "hopper"))
    full = {
        "nv": 2,
        "steps": [0.0, 1e-16],
        "long": 1e-15,
        "growth": 2.0,
        "pinocchio": None,
        "pairs": 7,
        "hull_pairs": 2,
        "air": {"inputs": [["qpos", "right", "r"], ["ctrl", "sensitive", "a|b"], ["qvel", "wrong", "w"]]},
        "standing": {"diverged": "at step 3"},
        "cut": {"ground": {"by": "time"}},
    }
    marked = {"nv": 6, "steps": [0.0], "lone": True, "mujoco_compiles": False, "refused_in_part": "why"}
    marked["cut"] = {"alone": {"by": "memory"}}
    text = page(
        Run("Engine: one.", "Packages: some.", Limits(7, 4)),
        [
            (pendulum, full),
            (odd, {**marked, "cut": {"alone": {"by": "memory"}}}),
            (waiting, {"pairs": 3}),
            (refused, {"refused": "no"}),
        ],
    )
    head, _, rest = text.partition("|---|---|---|---|---|---|---|---|---|---|---|\n")
    table, _, notes = rest.partition("\n\n")
    assert "1, 1 s, 1 w | 7 (2) | diverges | time |" in table
    for mark in re.findall(r"[^\x00-\x7f–]|\b(?:time|memory|diverges|refused|no turn|s|w)\b", table):
        assert f"`{mark}`" in head + notes or f"*{mark}*" in head, mark
    assert {"†", "¶", "‡"} <= set(table)
    assert "after 7 s of processor time" in head
    assert "| ctrl | sensitive | a\\|b |" in notes and "| all | diverges | at step 3 |" in notes

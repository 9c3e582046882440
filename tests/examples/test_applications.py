"""The scripts of examples/applications reach their goals in short forms, in process and on a server."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from testbed.server_process import ServerProcess

APPLICATIONS = Path(__file__).parents[2] / "examples/applications"
MODELS = ("mujoco", "hard")


def run(script: str, *options: str) -> tuple[list[list[str]], str]:
    """Run a script; return the cells of its tables' rows, without headers, and its warnings."""
    command = [sys.executable, str(APPLICATIONS / script), *options]
    done = subprocess.run(command, capture_output=True, text=True, timeout=280, check=False)
    assert done.returncode == 0, done.stderr
    lines = [line for line in done.stdout.splitlines() if line.startswith("|")]
    rows = [[cell.strip() for cell in line.strip("|").split("|")] for line in lines]
    return [row for row in rows if not row[0].startswith(("---", "case", "input"))], done.stderr


def check_goals(rows: list[list[str]], most: int) -> None:
    """The gradient reaches the goal with both contact models, within a number of iterations."""
    gradient = [row for row in rows if row[1] == "gradient"]
    assert all(any(model in row[0] for row in gradient) for model in MODELS)
    for row in gradient:
        assert row[4] == "yes" and 1 <= int(row[2]) <= most, row


@pytest.mark.parametrize("setting", ["released", "gravity"])
def test_the_arm_throws_the_ball_to_the_target(setting: str) -> None:
    rows, _ = run("throw.py", "--setting", setting, "--seed", "7", "--generations", "2")
    check_goals(rows, 20)
    assert [row[2] for row in rows if row[1] == "CMA-ES"] == ["2", "2"]


def test_a_throw_is_the_same_on_a_server(server: ServerProcess) -> None:
    options = ("--setting", "gravity", "--generations", "0")
    remote, _ = run("throw.py", *options, "--address", server.grpc)
    local, _ = run("throw.py", *options)
    assert [row[:-1] for row in local] == [row[:-1] for row in remote] and len(local) == 2


def test_the_club_hits_the_ball_to_the_target() -> None:
    rows, _ = run("golf.py", "--target", "0", "-2.5", "-1", "--seed", "3", "--generations", "0")
    check_goals(rows, 30)


def test_the_friction_that_stops_the_car_is_that_of_the_closed_form() -> None:
    rows, _ = run("racecar.py", "--wheels", "sphere", "--target", "0.8", "--generations", "60")
    check_goals(rows, 10)
    assert all(row[4] == "yes" for row in rows) and len(rows) == 6
    fall, g = np.sqrt(2 * 0.5 / 9.8), 9.8
    for row in rows:
        if row[1] == "gradient":
            mu = float(row[0].split("mu = ")[1])
            stop = fall + (1 - mu * g * fall) ** 2 / (2 * mu * g)
            # a step of 1 ms, and mu is printed with four decimals
            assert stop == pytest.approx(0.8, abs=3e-3)


def test_laikago_hops() -> None:
    rows, _ = run("hop.py", "--target", "0.7", "--seed", "5", "--generations", "0")
    check_goals(rows, 10)


def test_a_robot_is_identified_and_an_input_without_influence_is_named() -> None:
    rows, warned = run(
        "identify.py", "--samples", "15", "--starts", "1", "--seed", "4", "--contact-model", "hard",
        "--inputs", "chassis mass,servo gain,torsional friction",
    )  # fmt: skip
    assert rows[0][1] == "gradient" and rows[0][4] == "yes"
    found = {row[0]: row for row in rows[1:]}
    for name in ("chassis mass", "servo gain"):
        assert abs(float(found[name][5])) < 4, found[name]
        assert float(found[name][3].split()[0]) < 5  # percent
    assert "torsional friction has no influence" in warned
    assert "chassis mass has no influence" not in warned


def test_plans_follow_the_reference_better_than_standing_still() -> None:
    rows, _ = run("mpc.py", "--seconds", "0.4", "--rows", "8")
    assert len(rows) == 4
    for plan, without in zip(rows[::2], rows[1::2], strict=True):
        assert plan[1] == "iLQR" and float(plan[2]) < 0.7 * float(without[2])

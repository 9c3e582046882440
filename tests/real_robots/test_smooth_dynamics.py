"""Every installed robot of the catalogue that loads moves as in MuJoCo, constraints off."""

from __future__ import annotations

import pytest

from testbed.robot_catalogue import Robot, installed

from .conftest import reason_not_to_run
from .mujoco_reference import is_lone_free_body
from .smooth_dynamics import compare_steps, compare_trajectories, smooth_models

# one step from a random state, relative to the largest entry; observed below 2e-11
STEP_TOLERANCE = 1e-10

# 1000 steps, relative to the largest entry ever; observed below 1e-8
TRAJECTORY_TOLERANCE = 1e-6

# MuJoCo's own trajectory amplifies a perturbation by less than this; beyond it rounding errors alone would
# reach the tolerance, and the catalogue must give the robot a shorter time step
GROWTH_LIMIT = 1e8

ENOUGH = 25
TEST_EXTRA = {"gymnasium", "pybullet"}
"""Packages with robots that the test extra installs."""


@pytest.mark.parametrize("integrator", ["euler", "implicitfast"])
def test_a_step_is_mujocos(robot: Robot, integrator: str) -> None:
    _skip_gyroscopic(robot, integrator)
    assert compare_steps(robot, integrator).state < STEP_TOLERANCE


@pytest.mark.parametrize("integrator", ["euler", "implicitfast"])
def test_a_thousand_steps_are_mujocos(robot: Robot, integrator: str) -> None:
    _skip_gyroscopic(robot, integrator)
    figures = compare_trajectories(robot, integrator)
    assert figures.growth < GROWTH_LIMIT
    assert figures.error < TRAJECTORY_TOLERANCE


def _skip_gyroscopic(robot: Robot, integrator: str) -> None:
    option = smooth_models(robot, integrator)[1].opt
    if integrator == "implicitfast" and (option.density or option.viscosity):
        pytest.skip("the loader refuses a medium with this integrator")
    if integrator == "implicitfast" and is_lone_free_body(smooth_models(robot, integrator)[1]):
        pytest.skip("MuJoCo adds gyroscopic derivatives for a body that is alone and free")


def test_enough_robots_run() -> None:
    robots = installed()
    if not {robot.package for robot in robots} >= TEST_EXTRA:
        pytest.skip(f"needs {' and '.join(sorted(TEST_EXTRA))}")
    running = 0
    for robot in robots:
        running += not reason_not_to_run(robot)
        if running == ENOUGH:
            return
    pytest.fail(f"expected {ENOUGH} robots that load, got {running}")

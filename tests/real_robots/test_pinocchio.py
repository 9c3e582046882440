"""Inertia, forward dynamics and their derivatives of every URDF equal Pinocchio's."""

from __future__ import annotations

import pytest

from testbed.robot_catalogue import Robot

pinocchio_reference = pytest.importorskip(
    "tests.real_robots.pinocchio_reference", reason="needs Pinocchio (pin)", exc_type=ImportError
)

# relative to the largest entry; observed below 1e-12
VALUE_TOLERANCE = 1e-10

# derivatives of accelerations as large as 1e5, of light links; observed below 1e-10
DERIVATIVE_TOLERANCE = 1e-9


def test_dynamics_and_derivatives_are_pinocchios(robot: Robot) -> None:
    if not robot.is_urdf:
        pytest.skip("Pinocchio's reader of MJCF differs from MuJoCo's")
    try:
        figures = pinocchio_reference.compare(robot)
    except pinocchio_reference.UnreadableError as error:
        pytest.skip(f"Pinocchio refuses it: {error}")
    assert figures.acceleration < VALUE_TOLERANCE
    assert figures.inertia < VALUE_TOLERANCE
    assert figures.by_qpos < DERIVATIVE_TOLERANCE
    assert figures.by_qvel < DERIVATIVE_TOLERANCE

"""Gradients of every robot's trajectory agree with differences, in the air and standing on the ground."""

from __future__ import annotations

import pytest

from revolute.contract.errors import ModelError
from testbed.robot_catalogue import Robot
from testbed.robot_starts import on_the_ground, standing_start

from .gradients import (
    INPUTS,
    DirectionalDerivative,
    derivatives,
    free_start,
)

# against central differences, relative to the gradient; observed below 1e-7 in the air
TOLERANCE = 1e-5

# backward against forward derivative; observed below 1e-10
DOT_TOLERANCE = 1e-8

# a kink or a missing plateau this many times larger than the tolerance explains a difference
SPREADS = 10

# gradients by the start positions beyond this come from a contact solve that amplifies perturbations more
# than differences can resolve
SENSITIVE = 1e5


def test_in_the_air(robot: Robot) -> None:
    model = robot.load(contact=False)
    for name, found in derivatives(model, free_start(model)).items():
        assert found.mismatch < DOT_TOLERANCE, name
        assert found.error < TOLERANCE, name


def test_standing_on_the_ground(robot: Robot) -> None:
    try:
        model = on_the_ground(robot)
    except ModelError as error:
        pytest.skip(f"refused with contacts: {error}")
    found = derivatives(model, standing_start(model), (*INPUTS, "body_mass"))
    for name, derivative in found.items():
        assert derivative.mismatch < DOT_TOLERANCE, name
        if found["qpos"].scale < SENSITIVE:
            assert derivative.error < _allowed(derivative), name


def _allowed(derivative: DirectionalDerivative) -> float:
    """Return the error that differences leave open where the derivative has two sides nearby."""
    return max(TOLERANCE, SPREADS * (derivative.kink + derivative.noise))

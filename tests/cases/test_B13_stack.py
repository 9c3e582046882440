"""Case B13: a heavy box on a light box."""

import numpy as np
import pytest

from revolute_engine import Engine, load_model
from tests.cases.case_files import case_file, expected

STACK = case_file("B13", "stack.xml").read_text()
G, H, STEPS = 9.81, 1e-3, 2000
MEAN = 500
"""Steps over which forces are averaged: unconverged sweeps let the boxes rock by microns."""


def _rest(ratio: int, iterations: int) -> tuple[np.ndarray, np.ndarray]:
    """Return the heights after 2 s and the mean forces between the boxes and on the floor."""
    model = load_model(STACK.replace('mass="100"', f'mass="{ratio}"'), iterations=iterations)
    rollout = Engine(threads=1).rollout(model, model.qpos0, model.qvel0, np.zeros((STEPS, 0)))
    upwards = rollout.qvel[:, [2, 8]]
    low, top = np.array([1, ratio]) * ((upwards[-1] - upwards[-1 - MEAN]) / (MEAN * H) + G)
    return rollout.qpos[-1, [2, 9]], np.array([top, low + top])


@pytest.mark.parametrize(
    ("ratio", "iterations"),
    [
        *((1, 50), (10, 50), (100, 50), (1000, 1000)),
        pytest.param(
            *(1000, 50),
            marks=pytest.mark.xfail(reason="50 sweeps do not converge at this ratio, and no status says so"),
        ),
    ],
)
def test_boxes_rest_on_each_other(ratio: int, iterations: int) -> None:
    heights, forces = _rest(ratio, iterations)
    assert np.abs(heights - expected("B13")["z"]).max() < 2e-3
    assert np.abs(forces / (G * np.array([ratio, ratio + 1])) - 1).max() < 0.01


def test_forces_of_the_case() -> None:
    numbers = expected("B13")
    _, forces = _rest(100, 50)
    assert np.abs(forces / [numbers["F_between"], numbers["F_floor"]] - 1).max() < 0.01

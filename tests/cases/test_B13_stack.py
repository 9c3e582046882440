"""Case B13: a heavy box on a light box."""

import numpy as np
import pytest

from revolute_engine import Engine, load_model
from tests.cases.case_files import case_file, expected

STACK = case_file("B13", "stack.xml").read_text()
G, H, STEPS = 9.81, 1e-3, 2000
MEAN = 500
"""Steps over which forces are averaged: unconverged sweeps let the boxes rock by microns."""


def _rest(ratio: int, **options: object) -> tuple[np.ndarray, np.ndarray]:
    """Return the heights after 2 s and the mean forces between the boxes and on the floor."""
    model = load_model(STACK.replace('mass="100"', f'mass="{ratio}"'), contact_model="hard", **options)
    rollout = Engine(threads=1).rollout(model, model.qpos0, model.qvel0, np.zeros((STEPS, 0)))
    upwards = rollout.qvel[:, [2, 8]]
    low, top = np.array([1, ratio]) * ((upwards[-1] - upwards[-1 - MEAN]) / (MEAN * H) + G)
    return rollout.qpos[-1, [2, 9]], np.array([top, low + top])


@pytest.mark.parametrize(
    ("ratio", "options", "sink"),
    [
        (1, {}, 2e-3),
        (10, {}, 2e-3),
        (100, {}, 2e-3),
        # 50 sweeps leave a speed of 0.2 m/s, which the repair of depth balances
        (1000, {}, 4e-3),
        (1000, {"iterations": 1000}, 2e-3),
        (1000, {"solver": "exact"}, 1e-9),
    ],
    ids=str,
)
def test_boxes_rest_on_each_other(ratio: int, options: dict[str, object], sink: float) -> None:
    heights, forces = _rest(ratio, **options)
    assert np.abs(heights - expected("B13")["z"]).max() < sink
    assert np.abs(forces / (G * np.array([ratio, ratio + 1])) - 1).max() < 0.01


def test_forces_of_the_case() -> None:
    numbers = expected("B13")
    _, forces = _rest(100)
    assert np.abs(forces / [numbers["F_between"], numbers["F_floor"]] - 1).max() < 0.01

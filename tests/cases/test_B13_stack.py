"""Case B13: a heavy box on a light box."""

import numpy as np
import pytest

from revolute_engine import Engine, load_model
from testbed.case_files import case_file, expected

STACK = case_file("B13", "stack.xml").read_text()
G, H, STEPS = 9.81, 1e-3, 2000
HARD = {"contact_model": "hard"}
MEAN = 500
"""Steps over which forces are averaged: unconverged sweeps let the boxes rock by microns."""


def _rest(ratio: int, **options: object) -> tuple[np.ndarray, np.ndarray, bool]:
    """Return the heights after 2 s, the mean forces between boxes and on the floor, and if all settled."""
    model = load_model(STACK.replace('mass="100"', f'mass="{ratio}"'), **options)
    rollout = Engine(threads=1).rollout(model, model.qpos0, model.qvel0, np.zeros((STEPS, 0)))
    upwards = rollout.qvel[:, [2, 8]]
    low, top = np.array([1, ratio]) * ((upwards[-1] - upwards[-1 - MEAN]) / (MEAN * H) + G)
    return rollout.qpos[-1, [2, 9]], np.array([top, low + top]), rollout.unsettled_step < 0


@pytest.mark.parametrize(
    ("ratio", "options", "sink", "settles"),
    [
        (1, HARD, 2e-3, True),
        (10, HARD, 2e-3, True),
        (100, HARD, 2e-3, False),
        # 50 sweeps leave a speed of 0.2 m/s, which the repair of depth balances
        (1000, HARD, 4e-3, False),
        (1000, {**HARD, "iterations": 1000}, 2e-3, False),
        (1000, {**HARD, "solver": "exact"}, 1e-9, True),
        (1, {}, 2e-3, True),
        (10, {}, 2e-3, True),
        (100, {}, 2e-3, True),
        # the file's contacts are as soft as this: MuJoCo's boxes sink alike
        (1000, {}, 16e-3, True),
    ],
    ids=str,
)
def test_boxes_rest_on_each_other(ratio: int, options: dict[str, object], sink: float, settles: bool) -> None:
    heights, forces, settled = _rest(ratio, **options)
    # never a silent overlap
    assert settled == settles
    assert np.abs(heights - expected("B13")["z"]).max() < sink
    assert np.abs(forces / (G * np.array([ratio, ratio + 1])) - 1).max() < 0.01


@pytest.mark.parametrize("options", [HARD, {}], ids=str)
def test_forces_of_the_case(options: dict[str, object]) -> None:
    numbers = expected("B13")
    _, forces, _ = _rest(100, **options)
    assert np.abs(forces / [numbers["F_between"], numbers["F_floor"]] - 1).max() < 0.01

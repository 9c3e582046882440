"""Case B13: a heavy box on a light box."""

import numpy as np
import pytest

from revolute_engine import Engine, load_model
from tests.cases.case_files import case_file, expected
from tests.cases.final_state import constraint_force

STACK = case_file("B13", "stack.xml").read_text()
G = 9.81


@pytest.mark.parametrize("ratio", [1, 10, 100, 1000])
def test_boxes_rest_on_each_other(ratio: int) -> None:
    """At the ratio 1000 as well: there is no silent overlap for a status to tell of."""
    numbers = expected("B13")
    text = STACK.replace('mass="100"', f'mass="{ratio}"')
    model, free = load_model(text), load_model(text, contact=False)
    rollout = Engine(threads=1).rollout(model, model.qpos0, model.qvel0, np.zeros((2000, 0)))
    assert np.abs(rollout.qpos[-1, [2, 9]] - numbers["z"]).max() < 2e-3
    masses = np.array([1.0, ratio])
    low, top = masses * constraint_force(model, free, rollout.qpos[-1], rollout.qvel[-1], [])[[2, 8]]
    assert abs(top / (ratio * G) - 1) < 0.01
    assert abs((low + top) / ((ratio + 1) * G) - 1) < 0.01
    if ratio == 100:
        assert abs(top / numbers["F_between"] - 1) < 0.01
        assert abs((low + top) / numbers["F_floor"] - 1) < 0.01

"""Case A01: the gradient of an exchange of speed between two equal balls.

Graded: the answer is the closed form, with and without restitution; place and time of an impact within
its step move smoothly with the inputs (docs/gradients.md, Impacts).
"""

import numpy as np
import pytest

from revolute_engine import Engine, Model, load_model
from testbed.case_files import case_file, expected
from testbed.final_state import final_gradient

START_OF_BALL_2 = 0.7
EPSILON = 1e-7
"""Of the central difference; the balls meet far from the ends of a step, in terms of this."""


def _final_place(model: Model, inputs: np.ndarray) -> float:
    """Return the world place of ball 2 after 1 s from (x1, x2, v1, v2)."""
    rollout = Engine(threads=1).rollout(model, inputs[:2], inputs[2:], np.zeros((1000, 0)))
    return START_OF_BALL_2 + float(rollout.qpos[-1, 1])


@pytest.mark.parametrize("restitution", [1.0, 0.0])
def test_place_and_gradient_of_the_struck_ball(restitution: float) -> None:
    numbers = expected("A01")
    closed_form = numbers[f"e{restitution:.0f}"]
    model, engine = (
        load_model(case_file("A01", "two_balls.xml"), restitution=restitution, contact_model="hard"),
        Engine(threads=1),
    )
    inputs = np.array([0.0, 0.0, *numbers["v0"]])
    rollout = engine.rollout(model, inputs[:2], inputs[2:], np.zeros((1000, 0)))
    place = START_OF_BALL_2 + rollout.qpos[-1, 1]
    assert abs(place - closed_form["xf2"]) < 2 * numbers["h"] * numbers["v0"][0]

    gradient = final_gradient(engine, model, rollout, qpos=1)
    exact = np.concatenate([gradient.qpos, gradient.qvel])
    difference = [
        (_final_place(model, inputs + step) - _final_place(model, inputs - step)) / (2 * EPSILON)
        for step in EPSILON * np.eye(4)
    ]
    assert np.abs(exact - difference).max() < 1e-5
    # the case asks for 2 %; without acceleration the scheme has no error
    assert np.abs(exact - closed_form["grad"]).max() < 1e-9
    assert np.abs(exact - closed_form["frozen"]).max() > 0.2

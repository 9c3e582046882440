"""Case A03: no NaN when a body just touches or just leaves.

Graded: where the ball touches without speed (d, e) it stays on the floor, v' = 0, and so do its
derivatives.
"""

import numpy as np
import pytest

from revolute_engine import Engine, load_model
from testbed.case_files import case_file, expected

SOLVER = 1e-6
"""Of the case: an iterative solver, and a penetration of 1e-9 m that is given back within one step."""


def _jacobian(gap: float, speed: float) -> tuple[np.ndarray, np.ndarray]:
    """Return the next (z, v) and their derivatives by (z, v), rows first."""
    model, engine = load_model(case_file("A03", "touch.xml"), contact_model="hard"), Engine(threads=1)
    rollout = engine.rollout(model, [gap], [speed], np.zeros((1, 0)))
    bars = np.zeros((2, 2, 2, 1))
    bars[0, 0, 1] = bars[1, 1, 1] = 1
    gradient = engine.backward(model, rollout, *bars)
    jacobian = np.hstack([gradient.qpos, gradient.qvel])
    assert np.abs(engine.jacobian(model, [gap], [speed], np.zeros(0)).A - jacobian).max() < 1e-12
    return np.array([rollout.qpos[1, 0], rollout.qvel[1, 0]]), jacobian


def test_a_ball_that_leaves_is_free() -> None:
    numbers = expected("A03")
    after, jacobian = _jacobian(*numbers["states"]["a"])
    assert abs(after[1] - numbers["v_a"]) < 1e-9
    assert abs(after[0] - numbers["h"] * numbers["v_a"]) < 1e-9
    assert np.abs(jacobian - [[1, numbers["h"]], [0, 1]]).max() < 1e-9


@pytest.mark.parametrize("name", ["b", "c", "d", "e"])
def test_a_ball_on_the_floor_stops(name: str) -> None:
    numbers = expected("A03")
    after, jacobian = _jacobian(*numbers["states"][name])
    assert abs(after[1]) < SOLVER
    assert np.isfinite(jacobian).all()
    assert abs(jacobian[1, 1]) < SOLVER and abs(jacobian[0, 1]) < SOLVER
    # the floor gives the ball back its place: z' = 0 whatever z, v' = -z/h
    assert abs(jacobian[0, 0]) < SOLVER
    assert jacobian[1, 0] == pytest.approx(-1 / numbers["h"])


def test_a_rollout_through_a_touch_has_a_finite_gradient() -> None:
    numbers = expected("A03")
    model, engine = load_model(case_file("A03", "touch.xml"), contact_model="hard"), Engine(threads=1)
    rollout = engine.rollout(model, [0.05], [-0.5], np.zeros((200, 0)))
    touching = np.abs(rollout.qpos[:, 0]) < 1e-8
    assert touching[-1] and not touching[:10].any()
    # and through state c itself
    resting = engine.rollout(model, [numbers["states"]["c"][0]], [0.0], np.zeros((200, 0)))
    for trajectory in (rollout, resting):
        gradient = engine.backward(model, trajectory, np.ones((201, 1)), np.ones((201, 1)))
        assert np.isfinite(gradient.qpos).all() and np.isfinite(gradient.qvel).all()

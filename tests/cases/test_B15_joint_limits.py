"""Case B15: joint limits hold, push with the right torque and add no energy."""

import numpy as np
import pytest

from revolute_engine import Engine, load_model
from testbed.case_files import case_file, expected
from testbed.final_state import constraint_force

INERTIA, MASS, LENGTH, G, H = 0.51, 2.0, 0.5, 9.81, 1e-3
RANGES = {"stop.xml": 0.3, "stop_narrow.xml": 0.001}


@pytest.mark.parametrize("name", RANGES)
@pytest.mark.parametrize("speed", [0.0, -50.0])
@pytest.mark.parametrize("restitution", [0.0, 0.5])
def test_a_falling_arm_stops_at_its_limit(name: str, speed: float, restitution: float) -> None:
    limit = RANGES[name]
    model = load_model(case_file("B15", name), restitution=restitution, contact_model="hard")
    rollout = Engine(threads=1).rollout(model, [limit], [speed], np.zeros((3000, 0)))
    angle, velocity = rollout.qpos[:, 0], rollout.qvel[:, 0]
    assert np.isfinite(angle).all() and abs(angle).max() < limit + 1e-9
    assert abs(angle[-1] + limit) < 1e-9 and abs(velocity[-1]) < 1e-9
    energy = 0.5 * INERTIA * velocity**2 + MASS * G * LENGTH * np.sin(angle)
    # in free motion the scheme is exact to second order in the step: that much, and no more, may be gained
    fall = np.abs(velocity[:-1]).max() * H
    per_step = MASS * G * LENGTH * (0.5 * fall**2 + H**2 * G / INERTIA)
    assert np.diff(energy).max() < per_step
    # a stop only takes
    at_stop = np.abs(np.abs(angle[1:]) - limit) < 1e-9
    assert np.diff(energy)[at_stop].max() < 1e-12


def test_torque_of_the_stop_and_of_the_free_arm() -> None:
    numbers = expected("B15")
    model = load_model(case_file("B15", "stop.xml"), contact_model="hard")
    free = load_model(case_file("B15", "stop.xml"), limits=False, contact_model="hard")
    torque = INERTIA * constraint_force(model, free, [numbers["rest"]], [0.0], [])[0]
    assert abs(torque / numbers["torque"] - 1) < 0.005
    # the hinge turns about -y: falling is negative
    fall = Engine(threads=1).rollout(model, [0.0], [0.0], np.zeros((1, 0))).qvel[1, 0] / H
    assert abs(fall + numbers["acc0"]) < 1e-9

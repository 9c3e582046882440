"""Case C08: gear, control range and force range of motors."""

import numpy as np
import pytest

from revolute_engine import Engine, load_model
from testbed.case_files import case_file, expected


@pytest.mark.parametrize(("control", "key"), [(2.0, "u2"), (0.4, "u0.4")])
def test_torques_and_their_derivatives(control: float, key: str) -> None:
    numbers = expected("C08")
    model, engine = load_model(case_file("C08", "motors.xml")), Engine(threads=1)
    rollout = engine.rollout(model, model.qpos0, model.qvel0, np.full((1, 4), control))
    # moments of inertia are 1: torques are accelerations
    assert np.abs(rollout.qvel[1] / model.timestep - numbers[key]).max() < 1e-12
    bars = np.zeros((4, 2, 4))
    bars[:, 1] = np.eye(4)
    gradient = engine.backward(model, rollout, None, bars)
    assert np.abs(gradient.ctrl[:, 0] / model.timestep - np.diag(numbers[f"d_{key}"])).max() < 1e-12

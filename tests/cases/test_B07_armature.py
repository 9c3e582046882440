"""Case B07: armature counts once, on the diagonal, and not through the gear."""

import numpy as np

from revolute_engine import Engine, load_model
from testbed.case_files import case_file, expected


def test_accelerations_mass_matrix_and_inverse_dynamics() -> None:
    numbers = expected("B07")
    model, engine = load_model(case_file("B07", "armature.xml")), Engine(threads=1)
    rollout = engine.rollout(model, [0.0, 0.0], [0.0, 0.0], [[0.1, 0.0]])
    acceleration = rollout.qvel[1] / model.timestep
    assert np.abs(acceleration - numbers["qacc"]).max() < 1e-9

    # the response to each joint's torque is a column of the inverse mass matrix: d v+ / d ctrl = h M^-1 gear
    bars = np.zeros((2, 2, 2))
    bars[:, 1] = np.eye(2)
    response = engine.backward(model, rollout, None, bars).ctrl[:, 0] / (model.timestep * np.array([3, 1]))
    mass = np.linalg.inv(response)
    assert np.abs(mass - numbers["M"]).max() < 1e-12
    # inverse dynamics gives the torque back
    assert np.abs(mass @ acceleration - [0.3, 0]).max() < 1e-9

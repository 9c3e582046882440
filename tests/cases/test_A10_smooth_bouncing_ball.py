"""Case A10: a smooth bouncing ball does not start to spin, and its gradient does not explode."""

import numpy as np
import pytest

from revolute_engine import Engine, load_model
from testbed.case_files import case_file, expected
from testbed.final_state import final_gradient


@pytest.mark.parametrize("restitution", [0.6, 0.0])
def test_no_spin_and_an_exact_way_along_the_floor(restitution: float) -> None:
    numbers = expected("A10")
    model, engine = (
        load_model(case_file("A10", "ball_offset.xml"), restitution=restitution, contact_model="hard"),
        Engine(threads=1),
    )
    start = [numbers["vx"], 0, 0, 0, 0, 0]
    rollout = engine.rollout(model, model.qpos0, start, np.zeros((numbers["N"], 0)))
    rises = (rollout.qvel[:-1, 2] < 0) & (rollout.qvel[1:, 2] > 0)
    assert rises.sum() >= 2 or restitution == 0
    assert np.abs(rollout.qvel[:, 3:]).max() < 1e-9
    assert np.abs(rollout.qpos[:, 3:] - model.qpos0[3:]).max() < 1e-9
    seconds = numbers["N"] * numbers["h"]
    assert abs(rollout.qpos[-1, 0] - (model.qpos0[0] + numbers["vx"] * seconds)) < 1e-9
    assert abs(rollout.qvel[-1, 0] - numbers["vx"]) < 1e-9

    by_x = final_gradient(engine, model, rollout, qpos=0)
    # without rotation the body's origin and the mass centre move alike
    assert abs(by_x.qvel[0] - numbers["dx_dvx0"]) < 1e-7
    assert abs(by_x.qpos[0] - numbers["dx_dx0"]) < 1e-7
    assert abs(by_x.qpos[2] - numbers["dx_dz0"]) < 1e-7
    for entry in range(model.nq):
        gradient = final_gradient(engine, model, rollout, qpos=entry)
        assert np.abs(gradient.qpos).max() < 1e3 and np.abs(gradient.qvel).max() < 1e3

"""Case B19: a continuous joint across pi and many turns: one angle, one velocity, not wrapped."""

import numpy as np
import pytest

from revolute_engine import Engine, load_model
from testbed.case_files import case_file, expected
from testbed.final_state import final_gradient

H, STEPS = 0.01, 20


@pytest.mark.parametrize("turns", [0, 10])
def test_the_angle_counts_on_and_the_motion_is_the_same(turns: int) -> None:
    numbers = expected("B19")
    model, engine = load_model(case_file("B19", "cont.urdf"), timestep=H), Engine(threads=1)
    assert (model.nq, model.nv) == (2, 2)
    start = np.array(numbers["q0"])
    first = engine.rollout(model, start, numbers["v0"], np.zeros((STEPS, model.nu)))
    turned = start + np.array([2 * np.pi * turns, 0])
    rollout = engine.rollout(model, turned, numbers["v0"], np.zeros((STEPS, model.nu)))
    angle = rollout.qpos[-1, 0]
    assert abs(angle - (numbers["q1_20"] + 2 * np.pi * turns)) < 1e-9
    # the case gives eight digits
    assert np.abs(np.array([np.cos(angle), np.sin(angle)]) - numbers["cos_sin"]).max() < 1e-8
    assert np.abs(rollout.qvel - first.qvel).max() < 1e-9
    assert abs(final_gradient(engine, model, rollout, qpos=0).qpos[0] - 1) < 1e-12


def test_accelerations_do_not_know_the_turns() -> None:
    model, engine = load_model(case_file("B19", "cont.urdf"), timestep=H), Engine(threads=1)
    accelerations = []
    for turns in (0, 1, -7, 100):
        # a tilted arm that moves, so that both joints accelerate
        qpos = [3.1 + 2 * np.pi * turns, 0.4 + 2 * np.pi * turns]
        rollout = engine.rollout(model, qpos, [1.0, -2.0], [[0.3, 0.1]])
        accelerations.append((rollout.qvel[1] - rollout.qvel[0]) / H)
    assert np.abs(accelerations[0]).min() > 0.1
    assert np.abs(np.array(accelerations) - accelerations[0]).max() < 1e-9

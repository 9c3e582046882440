"""Case C16: URDF joints of type floating and planar."""

import numpy as np

from revolute_engine import Engine, load_model
from tests.cases.case_files import case_file, expected

H, STEPS = 1e-3, 500


def test_a_floating_joint_is_free_and_starts_at_its_origin() -> None:
    numbers = expected("C16")
    model = load_model(case_file("C16", "floating.urdf"), timestep=H)
    assert model.nv == numbers["nv"]["floating"]
    assert {"base", "b"} < set(model.body_names)
    assert model.joint_names == ["free"]
    start = np.array(model.qpos0)
    assert np.abs(start - [0, 0, 1, np.cos(0.25), 0, 0, np.sin(0.25)]).max() < 1e-12
    rollout = Engine(threads=1).rollout(model, start, model.qvel0, np.zeros((STEPS, model.nu)))
    assert abs(rollout.qpos[-1, 2] - numbers["z_500"]) < 1e-12
    assert np.abs(np.delete(rollout.qpos[-1] - start, 2)).max() < 1e-12


def test_a_planar_joint_slides_and_turns() -> None:
    model, engine = load_model(case_file("C16", "planar.urdf"), timestep=H), Engine(threads=1)
    assert model.nv == expected("C16")["nv"]["planar"] and model.joint_types == ["slide", "slide", "hinge"]
    assert np.abs(model.arrays["body_pos"][model.body_names.index("b")] - [0.2, 0, 0.1]).max() == 0
    still = engine.rollout(model, model.qpos0, model.qvel0, np.zeros((STEPS, 3)))
    assert np.abs(still.qpos).max() < 1e-12
    # a force of 1 N along x, a turn about z whatever the angle
    for turn in (0.0, 0.7):
        pushed = engine.rollout(model, [0.0, 0.0, turn], model.qvel0, [[1.0, 0.0, 0.1]])
        assert np.abs(pushed.qvel[1] / H - [1, 0, 1]).max() < 1e-12

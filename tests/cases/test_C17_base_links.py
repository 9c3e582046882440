"""Case C17: base links keep their names and collision shapes, and count when floating."""

import numpy as np

from revolute_engine import Engine, load_model
from testbed.case_files import case_file, expected

PENDULUM = case_file("C17", "pend_base.urdf")


def test_a_ball_rests_on_a_floor_that_is_fixed_to_the_base() -> None:
    model = load_model(case_file("C17", "floor.urdf"), timestep=1e-3)
    rollout = Engine(threads=1).rollout(model, model.qpos0, model.qvel0, np.zeros((2000, model.nu)))
    # the joint's origin is 0.5 m above the base
    assert abs(0.5 + rollout.qpos[-1, 0] - expected("C17")["ball_z"]) < 1e-3
    for name in ("base_link", "floor"):
        body = model.body_names.index(name)
        assert model.arrays["body_pos"][body].tolist() == [0, 0, 0]
        assert model.arrays["body_quat"][body].tolist() == [1, 0, 0, 0]


def test_a_fixed_base_does_not_count() -> None:
    model = load_model(PENDULUM)
    assert model.nv == 1 and model.body_names[1:] == ["trunk", "rod"]
    rollout = Engine(threads=1).rollout(model, [0.0], [0.0], np.zeros((1, model.nu)))
    assert abs(abs(rollout.qvel[1, 0] / model.timestep) - expected("C17")["acc_fixed_abs"]) < 1e-9


def test_a_floating_base_falls_with_its_pendulum() -> None:
    model = load_model(PENDULUM, base="free")
    assert model.nv == 7 and model.body_names[1:] == ["trunk", "rod"]
    assert model.body_mass.sum() == 3
    assert np.array_equal(model.qpos0[:7], [0, 0, 0, 1, 0, 0, 0])
    rollout = Engine(threads=1).rollout(model, model.qpos0, model.qvel0, np.zeros((1, model.nu)))
    acceleration = rollout.qvel[1] / model.timestep
    falls, turns = expected("C17")["acc_floating"]
    assert np.abs(acceleration - [0, 0, falls, 0, 0, 0, turns]).max() < 1e-9

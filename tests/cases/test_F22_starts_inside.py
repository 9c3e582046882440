"""Case F22: what starts inside of the floor or beyond a limit is not thrown out."""

import numpy as np
import pytest

from revolute_engine import Engine, load_model
from testbed.case_files import case_file, expected, with_option
from testbed.final_state import final_gradient

NUMBERS = expected("F22")
STEPS = ("0.005", "0.002", "0.001")


@pytest.mark.parametrize("shape", ["ball", "box"])
@pytest.mark.parametrize("timestep", STEPS)
@pytest.mark.parametrize("number", range(3))
def test_it_rises_as_in_mujoco(shape: str, timestep: str, number: int) -> None:
    text = with_option(case_file("F22", f"{shape}.xml").read_text(), timestep=timestep)
    model, engine = load_model(text, contact_model="mujoco"), Engine(threads=1)
    qpos, depth = model.qpos0.copy(), NUMBERS["depth"][number]
    qpos[2] -= depth
    rollout = engine.rollout(model, qpos, model.qvel0, np.zeros((round(1.2 / float(timestep)), 0)))
    rise = rollout.qpos[:, 2].max() - 0.1
    theirs = NUMBERS["mujoco"]["rise"][shape][timestep][number]
    assert rise == pytest.approx(theirs, rel=1e-3, abs=2e-6)
    assert rise <= depth + 1e-6
    fastest = np.abs(rollout.qvel[:, 2]).max()
    assert fastest == pytest.approx(NUMBERS["mujoco"]["v_max"][shape][timestep][number], rel=1e-3)
    assert np.isfinite(final_gradient(engine, model, rollout, qpos=2, wrt=["qpos"]).qpos).all()


@pytest.mark.parametrize("timestep", STEPS)
def test_a_hinge_beyond_its_limit_comes_back(timestep: str) -> None:
    text = with_option(case_file("F22", "hinge.xml").read_text(), timestep=timestep)
    model = load_model(text, contact_model="mujoco")
    rollout = Engine(threads=1).rollout(model, [1.05], [0.0], np.zeros((round(1 / float(timestep)), 0)))
    fastest = np.abs(rollout.qvel).max()
    assert fastest == pytest.approx(NUMBERS["mujoco"]["hinge"][timestep], rel=1e-3)


@pytest.mark.parametrize("shape", ["ball", "box"])
@pytest.mark.parametrize("number", range(3))
def test_the_hard_model_throws_nothing_out(shape: str, number: int) -> None:
    depth, fastest = NUMBERS["depth"][number], []
    for timestep in STEPS:
        text = with_option(case_file("F22", f"{shape}.xml").read_text(), timestep=timestep)
        model, engine = load_model(text, contact_model="hard"), Engine(threads=1)
        qpos = model.qpos0.copy()
        qpos[2] -= depth
        rollout = engine.rollout(model, qpos, model.qvel0, np.zeros((round(1.2 / float(timestep)), 0)))
        assert rollout.qpos[:, 2].max() - 0.1 <= depth + 1e-6
        assert abs(rollout.qpos[-1, 2] - 0.1) < 1e-6
        fastest.append(np.abs(rollout.qvel[:, 2]).max())
        assert np.isfinite(final_gradient(engine, model, rollout, qpos=2, wrt=["qpos"]).qpos).all()
    assert fastest[2] <= 1.2 * fastest[0]


@pytest.mark.parametrize("timestep", STEPS)
def test_the_hard_models_hinge_comes_back(timestep: str) -> None:
    text = with_option(case_file("F22", "hinge.xml").read_text(), timestep=timestep)
    model = load_model(text, contact_model="hard")
    rollout = Engine(threads=1).rollout(model, [1.05], [0.0], np.zeros((round(1 / float(timestep)), 0)))
    assert np.abs(rollout.qvel).max() < 0.51 < NUMBERS["coulomb"]["hinge_speed_at_most"]
    assert rollout.qpos[-1, 0] < 1.0

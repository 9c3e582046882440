"""Case B16: a loop that a connect equality closes is honoured, and so is its gradient.

The soft closure of contact_model="mujoco" is MuJoCo's: as loose as the file asks. Cranks of a tenth of a gram
carry a coupler of a kilogram, so the default solref holds it badly, and a stiff one holds it.
"""

import mujoco
import numpy as np
import pytest

from revolute_engine import Engine, Model, Rollout, check_gradient, load_model
from testbed.case_files import case_file, expected

LINKAGE = case_file("B16", "fourbar.xml").read_text()
STIFF = LINKAGE.replace('anchor="0.5 0 0"', 'anchor="0.5 0 0" solref="0.002 1" solimp="0.9999 0.9999 0.001"')
START = {"c1": 0.1, "c2": 0.1, "cp": -0.1}
MODELS = {
    "mujoco, stiff": (STIFF, {"contact_model": "mujoco"}),
    "hard, sweeps": (LINKAGE, {"contact_model": "hard"}),
    "hard, exact": (LINKAGE, {"contact_model": "hard", "solver": "exact"}),
}


def _start(model: Model) -> np.ndarray:
    return np.array([START[name] for name in model.joint_names])


def _swing(model: Model, steps: int) -> Rollout:
    return Engine(threads=1).rollout(model, _start(model), model.qvel0, np.zeros((steps, 0)))


def _angles(model: Model, rollout: Rollout) -> dict[str, np.ndarray]:
    return {name: rollout.qpos[:, model.joint_names.index(name)] for name in START}


@pytest.mark.parametrize("name", MODELS)
def test_the_linkage_swings_as_a_parallelogram(name: str) -> None:
    text, options = MODELS[name]
    model = load_model(text, **options)
    rollout = _swing(model, 2100)
    angle = _angles(model, rollout)
    speed = rollout.qvel[:, model.joint_names.index("c1")]
    (top,) = np.flatnonzero((speed[:-1] > 0) & (speed[1:] <= 0))
    period = (top + speed[top] / (speed[top] - speed[top + 1])) * model.timestep
    assert period == pytest.approx(expected("B16")["period"], rel=1e-4 if name == "hard, exact" else 0.01)
    assert np.abs(angle["c1"] - angle["c2"]).max() < 2e-3
    coupler = angle["c1"] + angle["cp"]
    ends = [
        np.stack([0.5 * np.cos(coupler) - np.sin(angle["c1"]), -0.5 * np.sin(coupler) - np.cos(angle["c1"])]),
        np.stack([0.5 - np.sin(angle["c2"]), -np.cos(angle["c2"])]),
    ]
    assert np.linalg.norm(ends[0] - ends[1], axis=0).max() < 1.1e-3
    # sweeps hold the loop, but say that they do not settle between a gram and a kilogram
    assert (rollout.unsettled_step >= 0) == (name == "hard, sweeps")


@pytest.mark.parametrize("text", [LINKAGE, STIFF], ids=["as the file is", "stiff"])
def test_by_default_it_moves_as_in_mujoco(text: str) -> None:
    model = load_model(text)
    rollout, theirs = _swing(model, 300), model.mujoco_model
    theirs.opt.tolerance = 0
    data = mujoco.MjData(theirs)
    data.qpos[:] = _start(model)
    mujoco.mj_step(theirs, data, 300)
    assert np.abs(rollout.qpos[-1] - data.qpos).max() < 1e-9


@pytest.mark.parametrize("name", MODELS)
def test_the_gradient_is_that_of_the_closed_loop(name: str) -> None:
    text, options = MODELS[name]
    model = load_model(text, **options)
    report = check_gradient(
        Engine(threads=1), model, _start(model), model.qvel0, np.zeros((50, 0)), wrt=["qpos", "gravity"]
    )
    assert report.passed
    assert {check.verdict for check in report.inputs} <= {"right", "right step by step"}, report.to_text()

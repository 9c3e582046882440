"""Case B11: a block on a slope sticks without creep and slides with the right acceleration.

That is so with contact_model="hard". The default model creeps as MuJoCo does: by its soft friction.
"""

import mujoco
import numpy as np
import pytest

from revolute_engine import Engine, Model, load_model
from testbed.case_files import case_file, expected
from testbed.final_state import constraint_force

BLOCK = case_file("B11", "slope.xml").read_text()
BOX = '<geom type="box" size="0.2 0.2 0.1" mass="1" friction="0.5 0 0"/>'
FEET = '<inertial pos="0 0 0" mass="1" diaginertia="0.0167 0.0167 0.0267"/>' + "".join(
    f'<geom type="sphere" size="0.02" pos="{x} {y} -0.08" mass="0" friction="0.5 0 0"/>'
    for x in (-0.18, 0.18)
    for y in (-0.18, 0.18)
)
SHAPES = {"box": BOX, "four feet": FEET, "eight feet": FEET + FEET[FEET.index("<geom") :]}
SLOPE = np.radians(20)
NORMAL = np.array([np.sin(SLOPE), 0, np.cos(SLOPE)])
DOWNHILL = np.array([np.cos(SLOPE), 0, -np.sin(SLOPE)])


def _text(shape: str, friction: float) -> str:
    assert BOX in BLOCK
    return BLOCK.replace(BOX, SHAPES[shape]).replace('friction="0.5 0 0"', f'friction="{friction} 0 0"')


def _model(shape: str, friction: float, **options: bool) -> Model:
    return load_model(_text(shape, friction), contact_model="hard", **options)


@pytest.mark.parametrize("shape", SHAPES)
def test_below_the_slip_angle_it_does_not_creep(shape: str) -> None:
    model = _model(shape, 0.5)
    rollout = Engine(threads=1).rollout(model, model.qpos0, model.qvel0, np.zeros((10_000, 0)))
    assert np.linalg.norm(rollout.qpos[:, :3] - rollout.qpos[0, :3], axis=1).max() < 1e-4


@pytest.mark.parametrize("shape", SHAPES)
def test_above_the_slip_angle_it_slides_as_coulomb_says(shape: str) -> None:
    acceleration = expected("B11")["a_slip"]
    model = _model(shape, 0.3)
    rollout = Engine(threads=1).rollout(model, model.qpos0, model.qvel0, np.zeros((1000, 0)))
    assert abs(rollout.qvel[-1, :3] @ DOWNHILL / acceleration - 1) < 0.005
    way = (rollout.qpos[-1, :3] - rollout.qpos[0, :3]) @ DOWNHILL
    assert abs(way / (acceleration / 2) - 1) < 0.005
    assert abs((rollout.qpos[-1, :3] - rollout.qpos[0, :3]) @ NORMAL) < 1e-4


@pytest.mark.parametrize("friction", [0.5, 0.3])
def test_the_normal_forces_carry_the_block(friction: float) -> None:
    model, free = _model("box", friction), _model("box", friction, contact=False)
    rollout = Engine(threads=1).rollout(model, model.qpos0, model.qvel0, np.zeros((500, 0)))
    force = constraint_force(model, free, rollout.qpos[-1], rollout.qvel[-1], [])[:3] @ NORMAL
    assert abs(force / expected("B11")["normal"] - 1) < 0.005


@pytest.mark.parametrize("friction", [0.5, 0.3])
@pytest.mark.parametrize("shape", SHAPES)
def test_by_default_it_creeps_and_slides_as_in_mujoco(shape: str, friction: float) -> None:
    model = load_model(_text(shape, friction))
    rollout = Engine(threads=1).rollout(model, model.qpos0, model.qvel0, np.zeros((1000, 0)))
    theirs = model.mujoco_model
    theirs.opt.tolerance = 0
    data = mujoco.MjData(theirs)
    data.qpos[:] = model.qpos0
    mujoco.mj_step(theirs, data, 1000)
    assert np.abs(rollout.qpos[-1] - data.qpos).max() < 1e-12
    way = (rollout.qpos[-1, :3] - rollout.qpos[0, :3]) @ DOWNHILL
    if friction == 0.3:
        assert abs(way / (expected("B11")["a_slip"] / 2) - 1) < 0.005
    else:
        # some tenth of a millimetre a second
        assert 1e-4 < way < 2e-3

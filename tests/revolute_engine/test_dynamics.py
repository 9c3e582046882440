"""Smooth dynamics against MuJoCo's Euler step: contacts, limits and dry friction off."""

from pathlib import Path
from typing import Any

import mujoco
import numpy as np
import pytest

from revolute_engine import Engine, load_model
from tests.robots import THREE_TREES, gymnasium_ant, laikago_urdf

# one step on real robots, relative to the largest entry; observed below 1e-12
STEP_TOLERANCE = 1e-10

JOINT = """<mujoco>
  <compiler angle="radian"/>
  <option timestep="0.004" gravity="1 2 -9.81"/>
  <worldbody>
    <body pos="0.1 0.2 0.3" quat="0.9 0.1 -0.3 0.2">
      {joint}
      <inertial pos="0.05 -0.1 0.2" quat="0.8 0.3 0.1 -0.2" mass="0.8" diaginertia="0.02 0.03 0.04"/>
      <body pos="0.2 0 0.1" quat="0.6 0.1 0.7 0">
        <joint type="hinge" axis="1 1 0" pos="0 0.05 0"/>
        <inertial pos="0 0.1 0" mass="0.3" diaginertia="0.001 0.002 0.002"/>
      </body>
    </body>
  </worldbody>
</mujoco>"""

JOINTS = {
    "free": "<freejoint/>",
    "free damped": '<joint type="free" damping="0.3" armature="0.1"/>',
    "ball": '<joint type="ball" pos="0.1 -0.2 0.3"/>',
    "ball spring": '<joint type="ball" stiffness="4" damping="0.2" armature="0.05"/>',
    "hinge": '<joint type="hinge" axis="1 -2 0.5" pos="0.1 0 0.2" ref="0.4"/>',
    "hinge spring": '<joint type="hinge" axis="0 1 0" stiffness="3" springref="0.7" damping="0.3" '
    'armature="0.1"/>',
    "slide": '<joint type="slide" axis="0.3 0 1" ref="-0.2"/>',
    "slide spring": '<joint type="slide" axis="1 0 0" stiffness="20" springref="0.1" damping="2" '
    'armature="0.4"/>',
    "slides and hinges": '<joint type="slide" axis="1 0 0"/><joint type="slide" axis="0 1 0"/>'
    '<joint type="hinge" axis="0 0 1" pos="0.1 0 0"/><joint type="hinge" axis="0 1 0" pos="0 0.2 0"/>',
    "slide and ball": '<joint type="slide" axis="0 0 1" damping="0.1"/>'
    '<joint type="ball" pos="0 0 0.1" stiffness="1"/>',
}


def _largest_step_error(source: str | Path, seed: int, **options: Any) -> float:
    """Return the largest relative difference of one step over trajectories from a random state.

    Both contact models have their own dynamics: the articulated-body algorithm, and the mass matrix.
    """
    return max(_step_error(source, seed, contact_model=name, **options) for name in ("hard", "mujoco"))


def _step_error(source: str | Path, seed: int, contact_model: str, steps: int = 50, **options: Any) -> float:
    """Return the largest relative difference of one step over a trajectory from a random state."""
    options = {"contact": False, "limits": False, "dry_friction": False, **options}
    model = load_model(source, contact_model=contact_model, **options)
    theirs = model.mujoco_model
    if contact_model == "hard" and theirs.opt.integrator != int(mujoco.mjtIntegrator.mjINT_IMPLICITFAST):
        theirs.opt.integrator = int(mujoco.mjtIntegrator.mjINT_EULER)
    theirs.opt.disableflags |= int(mujoco.mjtDisableBit.mjDSBL_CONSTRAINT)
    theirs.opt.timestep = model.timestep
    data = mujoco.MjData(theirs)
    random = np.random.default_rng(seed)
    qpos = model.qpos0 + 0.3 * random.normal(size=model.nq)
    mujoco.mj_normalizeQuat(theirs, qpos)
    ctrl = random.normal(size=(steps, model.nu))
    rollout = Engine(threads=1).rollout(model, qpos, random.normal(size=model.nv), ctrl)
    assert rollout.status == 0
    largest = 0.0
    for step in range(steps):
        data.qpos[:], data.qvel[:], data.ctrl[:] = rollout.qpos[step], rollout.qvel[step], ctrl[step]
        mujoco.mj_step(theirs, data)
        for ours, expected in ((rollout.qpos[step + 1], data.qpos), (rollout.qvel[step + 1], data.qvel)):
            largest = max(largest, float(np.abs(ours - expected).max() / np.abs(expected).max()))
    return largest


@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize("name", JOINTS)
def test_every_joint_moves_as_in_mujoco(name: str, seed: int) -> None:
    assert _largest_step_error(JOINT.format(joint=JOINTS[name]), seed) < STEP_TOLERANCE


@pytest.mark.parametrize("seed", range(3))
def test_three_trees_with_every_actuator_move_as_in_mujoco(seed: int) -> None:
    assert _largest_step_error(THREE_TREES, seed) < STEP_TOLERANCE


@pytest.mark.parametrize("seed", range(3))
def test_implicitfast_moves_as_in_mujoco(seed: int) -> None:
    text = THREE_TREES.replace("<option ", '<option integrator="implicitfast" ')
    assert load_model(text).arrays["integrator"] == 1
    assert _largest_step_error(text, seed) < STEP_TOLERANCE


def test_implicitfast_differs_from_euler() -> None:
    """The drives' velocity gains count: the comparison above would see a step by Euler."""
    other = load_model(THREE_TREES.replace("<option ", '<option integrator="implicitfast" '), contact=False)
    model = load_model(THREE_TREES, contact=False)
    qvel, ctrl = np.ones(model.nv), np.ones((1, model.nu))
    ends = [Engine(threads=1).rollout(each, model.qpos0, qvel, ctrl).qvel[-1] for each in (model, other)]
    assert np.abs(ends[0] - ends[1]).max() > 1e-3


@pytest.mark.parametrize("name", ["laikago", "laikago_torque", "ant", "cartpole", "pendulum1", "pendulum7"])
def test_built_in_models_move_as_in_mujoco(name: str) -> None:
    assert _largest_step_error(name, seed=4) < STEP_TOLERANCE


def test_real_robots_move_as_in_mujoco() -> None:
    assert _largest_step_error(laikago_urdf(), seed=5, base="free", timestep=1e-3) < STEP_TOLERANCE
    assert _largest_step_error(laikago_urdf(), seed=5) < STEP_TOLERANCE
    assert _largest_step_error(gymnasium_ant(), seed=6) < STEP_TOLERANCE


@pytest.mark.parametrize("flag", ["gravity", "spring", "damper", "clampctrl", "actuation"])
def test_disabled_parts_are_missing_as_in_mujoco(flag: str) -> None:
    text = THREE_TREES.replace('-9.81"/>', f'-9.81"><flag {flag}="disable"/></option>')
    assert f'{flag}="disable"' in text
    assert _largest_step_error(text, seed=7) < STEP_TOLERANCE


@pytest.mark.parametrize("integrator", ["Euler", "implicitfast", "implicit", "RK4"])
def test_without_springs_and_dampers_there_is_no_passive_force(integrator: str) -> None:
    flags = '<flag spring="disable" damper="disable"/>'
    option = f'<option integrator="{integrator}" density="90" viscosity="0.1" wind="1 2 3" '
    text = THREE_TREES.replace("<option ", option).replace('-9.81"/>', f'-9.81">{flags}</option>')
    text = text.replace('<body name="arm"', '<body name="arm" gravcomp="0.4"')
    assert flags in text and "gravcomp" in text
    assert _step_error(text, 7, "mujoco") < STEP_TOLERANCE


def test_quaternions_of_any_length_are_directions() -> None:
    model = load_model(THREE_TREES, contact=False)
    ctrl = np.zeros((5, model.nu))
    qpos = np.array(model.qpos0)
    scaled = qpos.copy()
    scaled[3:7] *= 3.7
    one, other = (Engine(threads=1).rollout(model, start, model.qvel0, ctrl) for start in (qpos, scaled))
    assert np.allclose(one.qpos[1:], other.qpos[1:], rtol=1e-13, atol=1e-13)


def test_a_free_brick_keeps_its_linear_momentum() -> None:
    text = (
        '<mujoco><option timestep="0.001" gravity="0 0 0"/><worldbody><body><freejoint/>'
        '<inertial pos="0 0 0" mass="2" diaginertia="1 2 3"/></body></worldbody></mujoco>'
    )
    model = load_model(text)
    qvel = np.array([0.3, -0.2, 0.1, 1.0, 2.0, -1.5])
    rollout = Engine(threads=1).rollout(model, model.qpos0, qvel, np.zeros((10_000, 0)))
    assert np.abs(rollout.qvel[:, :3] - qvel[:3]).max() < 1e-12
    assert np.abs(rollout.qpos[-1, :3] - 10 * qvel[:3]).max() < 1e-12

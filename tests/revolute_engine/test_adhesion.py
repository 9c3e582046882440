"""Adhesion: actuators that pull a body towards what it touches, as in MuJoCo."""

from __future__ import annotations

import mujoco
import numpy as np
import pytest

from revolute.contract.errors import ModelError
from revolute_engine import Model, load_model

from .mujoco_scenes import CONES, INTEGRATORS, reference
from .mujoco_steps import check_gradient_of_step, check_jacobian, check_packs, check_step, mujoco_step
from .test_mujoco_contact import DIFFERENCES, FORWARD, STEP

TEXT = """<mujoco><option timestep=".002" cone="{cone}" integrator="{integrator}"/><worldbody>
<geom type="plane" size="2 2 1" euler="5 8 0" margin=".02" gap=".03"/>
<body name="box" pos="0 0 .1"><freejoint/><geom type="box" size=".1 .12 .1" mass="1"/>
  <body name="arm" pos=".1 0 0"><joint name="elbow" axis="0 1 .2" damping=".1"/>
    <geom type="capsule" fromto=".03 0 0 .2 0 -.04" size=".04" mass=".3"/></body></body>
<body name="ball" pos="0 .35 .1"><freejoint/><geom name="ball" size=".1" mass="1"/></body>
<body name="rider" pos="0 .36 .3"><freejoint/><geom size=".1" mass=".5" margin=".01" gap=".02"/></body>
<body name="far" pos="0 -1 3"><freejoint/><geom size=".1" mass="1"/></body></worldbody>
<actuator><adhesion name="stick" body="box" ctrlrange="0 30" gain="2"/>
<adhesion body="ball" ctrlrange="0 9"/><adhesion body="far" ctrlrange="0 9"/>
<motor joint="elbow"/><adhesion body="arm" ctrlrange="0 9"/>
<adhesion body="rider" ctrlrange="0 9"/></actuator></mujoco>"""


def loaded(cone: str, integrator: str) -> tuple[mujoco.MjModel, Model]:
    text = TEXT.format(cone=cone, integrator=integrator)
    return reference(text), load_model(text, contact_model="mujoco", warn=False)


def states(theirs: mujoco.MjModel) -> list[tuple[np.ndarray, ...]]:
    """Return states with contacts that act, and some that lie in a gap."""
    random, data, found, gaps = np.random.default_rng(1), mujoco.MjData(theirs), [], 0
    for step in range(60):
        data.ctrl[:] = random.uniform(0, 9, size=theirs.nu)
        mujoco.mj_step(theirs, data)
        if step % 15 == 14:
            mujoco.mj_forward(theirs, data)
            gaps += int(sum(contact.exclude == 1 for contact in data.contact[: data.ncon]))
            qvel = data.qvel + 0.2 * random.normal(size=theirs.nv)
            found.append((data.qpos.copy(), qvel, data.ctrl.copy()))
    assert gaps > 0
    return found


@pytest.mark.parametrize("cone", CONES)
@pytest.mark.parametrize("integrator", INTEGRATORS)
def test_a_step_is_mujocos(cone: str, integrator: str) -> None:
    theirs, model = loaded(cone, integrator)
    for qpos, qvel, ctrl in states(theirs):
        found = check_step(theirs, model, (qpos, qvel, ctrl), STEP)
        without = mujoco_step(theirs, qpos, qvel, np.zeros(theirs.nu))[1]
        assert np.abs(without - found.qvel[1]).max() > 1e-4


@pytest.mark.parametrize("integrator", INTEGRATORS)
def test_the_gradient_is_that_of_mujocos_step(integrator: str) -> None:
    theirs, model = loaded("elliptic", integrator)
    gradient = check_gradient_of_step(theirs, model, states(theirs)[2], DIFFERENCES, qpos=1e-6)
    assert np.abs(gradient.ctrl[0, :2]).min() > 0 and gradient.ctrl[0, 2] == 0


def test_packs_and_forward_derivatives_agree() -> None:
    theirs, model = loaded("pyramidal", "implicitfast")
    qpos, qvel, ctrl = (np.stack(each) for each in zip(*states(theirs), strict=True))
    check_packs(theirs, model, (qpos, qvel), np.repeat(ctrl[:, None], 3, axis=1), FORWARD)


def test_the_jacobian_of_a_step_is_that_of_its_derivatives() -> None:
    theirs, model = loaded("elliptic", "implicit")
    check_jacobian(model, states(theirs)[1])


def test_the_hard_contact_model_refuses_adhesion_by_name() -> None:
    with pytest.raises(
        ModelError, match="actuator 'stick': adhesion in contact_model=\"hard\" is not supported"
    ):
        load_model(TEXT.format(cone="elliptic", integrator="Euler"), contact_model="hard")


def test_an_actuator_of_adhesion_has_a_name() -> None:
    text = b"""<mujoco><worldbody><geom type="plane" size="1 1 1"/>
    <body name="pad" pos="0 0 0.1"><freejoint/><geom size="0.1"/></body></worldbody>
    <actuator><adhesion body="pad" ctrlrange="0 1"/></actuator></mujoco>"""
    assert list(load_model(text).actuator_names) == ["pad"]

"""Sensors of tendons and actuators, energies, and the armature of spatial tendons."""

from __future__ import annotations

import mujoco
import numpy as np
import pytest

from revolute_engine import load_model
from revolute_engine.gradient_check import check_gradient

from .sensor_checks import (
    ENGINE,
    compare_with_differences,
    compare_with_mujoco,
    data_at,
    reference,
    state_of,
)

EQUAL, SMOOTH, STEP = 1e-9, 1e-8, 1e-10
"""Forces of limits, which MuJoCo solves less closely; gradients without contacts; accelerations of a step."""

ACTUATORS = ("m0", "p0", "mt", "pt", "mu", "act", "site", "ball", "free")
OF_ACTUATORS = "".join(
    f'<actuator{what} actuator="{name}"/>' for name in ACTUATORS for what in ("pos", "vel", "frc")
)
OF_TENDONS = "".join(
    f'<tendon{what} tendon="{name}"/>'
    for name in ("wrapped", "fixed", "split")
    for what in ("pos", "vel", "actuatorfrc")
) + "".join(
    f'<tendonlimit{what} tendon="{name}"/>' for name in ("wrapped", "fixed") for what in ("pos", "vel", "frc")
)
BODIES = """<site name="w" pos="0.3 0 1.2"/>
  <body name="a" pos="0 0 1">
    <joint name="j0" axis="0 1 0" stiffness="3" springref="10" armature=".1" actuatorfrcrange="-.8 .8"/>
    <geom type="capsule" size=".03" fromto="0 0 0 .3 0 0"/><site name="sa" pos=".1 0 .06"/>
    <geom name="drum" type="cylinder" size=".05 .2" pos=".15 0 0" zaxis="0 1 0" group="3"/>
    <site name="side" pos=".15 0 .1"/>
    <body pos=".3 0 0" gravcomp=".5">
      <joint name="j1" axis="0 1 .2" actuatorgravcomp="true" actuatorfrcrange="-2 2"/>
      <geom type="capsule" size=".03" fromto="0 0 0 .3 0 0"/><site name="sb" pos=".1 .02 .02"/></body>
    <body pos=".3 0 0"><joint axis="1 1 .2"/><geom type="capsule" size=".03" fromto="0 0 0 .3 0 .1"/>
      <site name="se" pos=".1 .02 .02"/></body></body>
  <body pos=".3 1 0"><freejoint name="j2"/><geom type="capsule" size=".03" fromto="0 0 0 .3 0 .2"/>
    <site name="sc" pos=".1 .02 .1"/></body>
  <body pos=".3 2 0"><joint type="ball" name="j3" damping=".1" stiffness="2"/>
    <geom type="capsule" size=".03" fromto="0 0 0 .3 0 .2"/><site name="sd" pos=".1 .02 .1"/></body>"""
TENDONS = """<spatial name="wrapped" range=".1 .2" limited="true" stiffness="5" springlength=".1 .2">
    <site site="w"/><geom geom="drum" sidesite="side"/><site site="sb"/></spatial>
  <fixed name="fixed" range="-.5 -.1" limited="true" armature=".2" margin=".05">
    <joint joint="j0" coef="1"/><joint joint="j1" coef=".5"/></fixed>
  <spatial name="split" armature=".4" stiffness="3" actuatorfrcrange="-.5 .5"><site site="sa"/>
    <site site="sc"/><pulley divisor="2"/><site site="sd"/><site site="sb"/></spatial>
  <spatial name="chain" armature=".3"><site site="w"/><site site="sa"/><site site="sb"/></spatial>
  <spatial name="branches" armature=".3"><site site="se"/><site site="sb"/></spatial>"""
DRIVES = """<motor name="m0" joint="j0" gear="2"/><position name="p0" joint="j1" kp="3" kv=".3"/>
  <motor name="mt" tendon="split" gear="3"/><position name="pt" tendon="split" kp="4"/>
  <muscle name="mu" tendon="chain" lengthrange=".2 .8"/>
  <general name="act" joint="j1" dyntype="filter" dynprm=".1" gainprm="2"/>
  <motor name="site" site="sc" gear="1 2 0 .1 0 .3"/><motor name="ball" joint="j3" gear="1 .2 .3"/>
  <motor name="free" joint="j2" gear="1 .2 .3 .1 .2 .3"/>"""
SENSORS = f"""{OF_TENDONS}{OF_ACTUATORS}<jointactuatorfrc joint="j0"/><jointactuatorfrc joint="j1"/>
  <e_potential/><e_kinetic/><framelinacc objtype="site" objname="se"/><force site="sb"/>"""


def scene(integrator: str = "Euler") -> str:
    return f"""<mujoco><default><geom contype="0" conaffinity="0"/></default>
      <option timestep="0.003" integrator="{integrator}"/><worldbody>{BODIES}</worldbody>
      <tendon>{TENDONS}</tendon><actuator>{DRIVES}</actuator><sensor>{SENSORS}</sensor></mujoco>"""


def test_readings_are_mujocos() -> None:
    compare_with_mujoco(scene(), EQUAL, seeds=range(4))


def test_cotangents_are_the_derivative() -> None:
    text = scene()
    model, theirs = load_model(text, contact_model="mujoco"), reference(text)
    of_drives = ("actuator_gear", "actuator_gainprm", "actuator_biasprm")
    of_joints = ("body_mass", "gravity", "dof_armature", "jnt_stiffness", "qpos_spring")
    for seed in (0, 1):
        start = state_of(data_at(theirs, seed))
        compare_with_differences(model, start, 1e-7, step=2e-4, parameters=(*of_drives, *of_joints))


@pytest.mark.parametrize("integrator", ["Euler", "implicitfast", "implicit", "RK4"])
def test_spatial_tendons_have_mujocos_inertia(integrator: str) -> None:
    text = scene(integrator)
    model, theirs = load_model(text, contact_model="mujoco"), reference(text)
    for seed in range(3):
        data = data_at(theirs, seed)
        start = state_of(data)
        mujoco.mj_step(theirs, data)
        found = ENGINE.rollout(model, start["qpos"], start["qvel"], start["ctrl"][None]).qvel[-1][: theirs.nv]
        before = start["qvel"][: theirs.nv]
        scale = np.abs(data.qvel - before).max()
        np.testing.assert_allclose(found - before, data.qvel - before, rtol=0, atol=STEP * scale)


def test_gradients_through_steps_with_inertia_of_tendons() -> None:
    theirs = reference(scene())
    start = state_of(data_at(theirs, 2))
    for integrator in ("Euler", "implicitfast", "implicit", "RK4"):
        model = load_model(scene(integrator), contact_model="mujoco", limits=False)
        report = check_gradient(ENGINE, model, start["qpos"], start["qvel"], np.tile(start["ctrl"], (3, 1)))
        assert report.passed, report

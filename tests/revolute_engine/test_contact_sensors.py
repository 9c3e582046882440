"""Sensors of contacts, and with hard contact the sensors of forces and accelerations."""

from __future__ import annotations

import mujoco
import numpy as np
import pytest

from revolute_engine import Model, load_model

from .sensor_checks import (
    ENGINE,
    compare_with_differences,
    compare_with_mujoco,
    data_at,
    readings,
    reference,
    state_of,
)

SOLVED = {"elliptic": 1e-6, "pyramidal": 1e-8}
"""MuJoCo's solver stops a little early, with elliptic cones earlier."""

ALL, NET = (
    "found force torque dist pos normal tangent linvel angvel",
    "found force torque dist pos normal tangent",
)
SENSORS = "".join(
    f"<contact {attributes}/>"
    for attributes in (
        f'geom1="ga" data="{ALL}" num="3"',
        f'geom2="ga" data="{ALL}" num="2"',
        f'geom1="floor" geom2="ga" data="{ALL}"',
        'body1="b" data="found force dist pos" num="12"',
        f'body1="b" data="{ALL}" num="3"',
        f'body1="b" data="{ALL}" num="3" reduce="mindist"',
        f'body1="b" data="{ALL}" num="3" reduce="maxforce"',
        f'body1="b" data="{NET}" reduce="netforce"',
        f'body2="b" data="{NET}" reduce="netforce" num="2"',
        'site="half" body2="b" data="found force normal" num="2"',
        f'site="half" data="{NET}" reduce="netforce"',
        f'body1="a" body2="b" data="{NET}" reduce="netforce"',
        f'subtree1="b" data="{NET}" reduce="netforce"',
        f'subtree2="b" data="{NET}" reduce="netforce" cutoff="2"',
        'subtree1="world" data="found"',
        'data="found dist pos" num="20"',
        'data="found dist pos" num="20" cutoff=".1"',
    )
)
BODIES = """<geom name="floor" type="plane" size="2 2 .1" friction="1.2 .01 .0002"/>
  <body name="a" pos="0 0 .195"><freejoint/><geom name="ga" size=".2" condim="6"/></body>
  <body name="b" pos=".3 0 .195"><freejoint/><geom name="gb" size=".2 .1 .2" type="box" condim="4"/>
    <site name="half" pos="0.1 0 0" type="box" size=".11 .3 .3"/>
    <body pos=".3 0 0"><joint axis="0 1 0"/><geom size=".1 .1" type="capsule" condim="3"/></body></body>
  <body name="c" pos=".3 0 .59"><freejoint/><geom size=".2 .1 .2" type="box" condim="1"/></body>"""


def scene(cone: str) -> str:
    return f"""<mujoco><option cone="{cone}"/><worldbody>{BODIES}</worldbody>
      <sensor>{SENSORS}</sensor></mujoco>"""


def nearby(model: mujoco.MjModel, data: mujoco.MjData, random: np.random.Generator) -> None:
    mujoco.mj_integratePos(model, data.qpos, 0.004 * random.normal(size=model.nv), 1.0)
    data.qvel[:] = 0.1 * random.normal(size=model.nv)


@pytest.mark.parametrize("cone", ["elliptic", "pyramidal"])
def test_readings_are_mujocos(cone: str) -> None:
    compare_with_mujoco(scene(cone), SOLVED[cone], seeds=range(5), place=nearby)


def test_cotangents_are_the_derivative() -> None:
    text = scene("elliptic")
    model, theirs = load_model(text, contact_model="mujoco"), reference(text)
    for seed in range(3):
        start = state_of(data_at(theirs, seed, nearby))
        names = ("body_mass", "geom_friction", "gravity", "geom_solref")
        compare_with_differences(model, start, 1e-6, step=1e-6, parameters=names)


# --- hard contact ---

OF_FORCES = """<accelerometer site="foot"/><framelinacc objtype="body" objname="thigh"/>
  <frameangacc objtype="body" objname="shin"/><force site="hip"/><torque site="hip"/><force site="knee"/>
  <torque site="knee"/><touch name="touch" site="foot"/><jointlimitfrc name="limit" joint="knee"/>
  <jointactuatorfrc joint="hip"/>
  <contact name="foot" body2="shin" data="found force dist pos normal linvel" num="2"/>
  <contact name="all" subtree2="trunk" data="found force torque pos" reduce="netforce"/>"""


def legged(gap: float = 0.0, more: str = "") -> str:
    """Return a trunk on a leg that stands `gap` above the floor."""
    return f"""<mujoco><option timestep="0.002"/><default><default class="no">
      <geom contype="0" conaffinity="0"/></default></default><worldbody>
      <geom name="floor" type="plane" size="5 5 1" friction=".9"/>
      <body name="trunk" pos="0 0 {0.85 + gap}"><freejoint/>
        <geom type="box" size=".2 .1 .1" mass="5" class="no"/>
        <body name="thigh" pos="0 0 -.1"><joint name="hip" axis="0 1 .1" damping=".3"/><site name="hip"/>
          <geom type="capsule" size=".05" fromto="0 0 0 .1 0 -.35" class="no"/>
          <body name="shin" pos=".1 0 -.35">
            <joint name="knee" axis="0 1 0" range="-60 60" limited="true"/><site name="knee"/>
            <geom type="capsule" size=".05" fromto="0 0 0 -.1 0 -.35"/>
            <site name="foot" pos="-.1 0 -.35" size=".1"/></body></body></body></worldbody>
      <actuator><motor joint="hip"/><motor joint="knee"/></actuator>
      <sensor>{OF_FORCES}{more}</sensor></mujoco>"""


def reading(model: Model, values: np.ndarray, name: str) -> np.ndarray:
    """Return the numbers of one sensor."""
    sensor = model.mujoco_model.sensor(name)
    return values[int(sensor.adr[0]) : int(sensor.adr[0] + sensor.dim[0])]


def standing(seed: int = 0, knee: float = 0.0) -> dict[str, np.ndarray]:
    random = np.random.default_rng(seed)
    theirs = mujoco.MjModel.from_xml_string(legged())
    data = mujoco.MjData(theirs)
    mujoco.mj_integratePos(theirs, data.qpos, 0.1 * random.normal(size=theirs.nv), 1.0)
    data.qpos[8] = knee
    mujoco.mj_forward(theirs, data)
    lowest = data.site("foot").xpos[2] - 0.05
    data.qpos[2] -= lowest + 1e-5
    data.qvel[:] = 0.02 * random.normal(size=theirs.nv)
    data.qvel[2] -= 0.05
    data.ctrl[:] = 5 * random.normal(size=2)
    return state_of(data)


def test_hard_contact_in_flight_has_mujocos_accelerations() -> None:
    text = legged(1.0)
    model, theirs = load_model(text, contact_model="hard"), reference(text)
    theirs.dof_damping[:] = 0
    undamped = load_model(text.replace('damping=".3"', ""), contact_model="hard")
    data = data_at(theirs, 3)
    np.testing.assert_allclose(readings(undamped, state_of(data)), data.sensordata, rtol=1e-9, atol=1e-9)
    assert np.abs(readings(model, state_of(data)) - data.sensordata).max() < 1.0


def test_forces_of_hard_contact_move_the_robot() -> None:
    model = load_model(legged(0.0, '<subtreelinvel name="all of it" body="trunk"/>'), contact_model="hard")
    start = standing()
    found = readings(model, start)
    after = ENGINE.rollout(model, start["qpos"], start["qvel"], start["ctrl"][None])
    end = readings(model, {**start, "qpos": after.qpos[-1], "qvel": after.qvel[-1]})
    change = reading(model, end, "all of it") - reading(model, found, "all of it")
    mass = float(model.mujoco_model.body_subtreemass[0])
    net = reading(model, found, "all")[1:4]
    # the velocity of the mass centre belongs to the configuration at the end of the step
    np.testing.assert_allclose(net, mass * (change / model.timestep + [0, 0, 9.81]), rtol=0.02, atol=0.5)
    assert net[2] > 30
    touch, foot = reading(model, found, "touch")[0], reading(model, found, "foot")
    assert foot[0] == 1
    np.testing.assert_allclose([touch, foot[1]], net[2], rtol=1e-12)


@pytest.mark.parametrize("solver", ["pgs", "exact"])
@pytest.mark.parametrize("knee", [0.2, 1.05], ids=["free knee", "knee at its limit"])
def test_cotangents_of_hard_forces_are_the_derivative(solver: str, knee: float) -> None:
    model = load_model(legged(), contact_model="hard", solver=solver)
    start = standing(1, knee)
    found = readings(model, start)
    assert reading(model, found, "touch")[0] > 1
    assert (reading(model, found, "limit")[0] > 1) == (knee > 1)
    compare_with_differences(
        model, start, 1e-6, step=1e-6, parameters=("body_mass", "gravity", "geom_friction", "dof_damping")
    )


def test_an_impact_gives_its_impulse_over_the_step() -> None:
    text = """<mujoco><option timestep="0.01"/><worldbody><geom type="plane" size="1 1 1"/>
      <body pos="0 0 0.11"><freejoint/><geom size="0.1" mass="2"/><site name="s" size=".2"/></body>
      </worldbody><sensor><touch site="s"/><accelerometer site="s"/></sensor></mujoco>"""
    model = load_model(text, contact_model="hard")
    start = {"qpos": model.qpos0, "qvel": np.array([0, 0, -3.0, 0, 0, 0]), "ctrl": np.zeros(0)}
    found = readings(model, start)
    velocity = ENGINE.rollout(model, start["qpos"], start["qvel"], np.zeros((1, 0))).qvel[-1][2]
    assert found[0] == pytest.approx(2 * ((velocity + 3) / 0.01 + 9.81), rel=1e-9)
    assert found[3] == pytest.approx((velocity + 3) / 0.01 + 9.81, rel=1e-9)
    compare_with_differences(model, start, 1e-6, step=1e-6, parameters=("body_mass",))

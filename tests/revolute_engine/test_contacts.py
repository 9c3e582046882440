"""Contacts through the public interface: laws that hold whatever the solver does."""

import mujoco
import numpy as np
import pytest

from revolute_engine import Engine, Model, Rollout, load_model

SPHERES = """<mujoco>
  <option timestep="0.001" gravity="0 0 0"/>
  <default><geom friction="0.6 0 0"/></default>
  <worldbody>
    <body pos="-0.3 0.02 0.05"><freejoint/>
      <inertial pos="0 0 0" mass="1.2" diaginertia="0.004 0.004 0.004"/><geom size="0.1"/></body>
    <body pos="0.3 -0.03 0"><freejoint/>
      <inertial pos="0 0 0" mass="0.7" diaginertia="0.002 0.002 0.002"/><geom size="0.12"/></body>
  </worldbody>
</mujoco>"""


def _momenta(model: Model, rollout: Rollout) -> tuple[np.ndarray, np.ndarray]:
    """Return linear and angular momentum of free bodies about the origin, per step."""
    linear, angular = np.zeros((rollout.steps + 1, 3)), np.zeros((rollout.steps + 1, 3))
    turn = np.zeros(9)
    for body in range(1, model.nbody):
        start, dof = 7 * (body - 1), 6 * (body - 1)
        mass, inertia = model.body_mass[body], model.arrays["body_inertia"][body]
        for step in range(rollout.steps + 1):
            qpos, qvel = rollout.qpos[step, start : start + 7], rollout.qvel[step, dof : dof + 6]
            mujoco.mju_quat2Mat(turn, qpos[3:])
            momentum = mass * qvel[:3]
            linear[step] += momentum
            angular[step] += np.cross(qpos[:3], momentum) + turn.reshape(3, 3) @ (inertia * qvel[3:])
    return linear, angular


@pytest.mark.parametrize("restitution", [0.0, 0.7])
def test_two_spheres_that_collide_with_friction_keep_their_momenta(restitution: float) -> None:
    model = load_model(SPHERES, restitution=restitution, contact_model="hard")
    qvel = np.array([1.0, 0.1, 0, 3, -5, 8, -1.5, 0, 0.2, -7, 2, 4])
    rollout = Engine(threads=1).rollout(model, model.qpos0, qvel, np.zeros((400, 0)))
    # they did touch, and friction changed their spin
    assert np.abs(rollout.qvel[-1] - qvel)[[0, 6]].min() > 0.5
    assert np.abs(rollout.qvel[-1] - qvel)[[3, 9]].min() > 0.01
    for momentum in _momenta(model, rollout):
        assert np.abs(momentum - momentum[0]).max() < 1e-12


@pytest.mark.parametrize("restitution", [0.0, 0.5, 1.0])
def test_a_ball_bounces_with_its_coefficient(restitution: float) -> None:
    text = (
        '<mujoco><option timestep="0.0005"/><worldbody><geom type="plane" size="0 0 1"/><body pos="0 0 0.3">'
        '<joint type="slide" axis="0 0 1"/><geom size="0.1" mass="1"/></body></worldbody></mujoco>'
    )
    model = load_model(text, restitution=restitution, contact_model="hard")
    rollout = Engine(threads=1).rollout(model, model.qpos0, [-1.0], np.zeros((400, 0)))
    speed = rollout.qvel[:, 0]
    hit = int(np.argmin(speed))
    assert speed[hit + 1 :].max() == pytest.approx(-restitution * speed[hit], rel=0.02, abs=1e-6)
    # never through the floor: approaching contacts are rows before they touch
    assert (0.3 + rollout.qpos[:, 0]).min() > 0.1 - 1e-6


@pytest.mark.parametrize(("slope", "friction"), [(0.2, 0.5), (0.4, 0.2)])
def test_a_box_sticks_or_slides_down_a_slope_as_coulomb_says(slope: float, friction: float) -> None:
    text = (
        f'<mujoco><option timestep="0.001" gravity="{9.81 * np.sin(slope)} 0 {-9.81 * np.cos(slope)}"/>'
        f'<worldbody><geom type="plane" size="0 0 1" friction="{friction} 0 0"/>'
        '<body pos="0 0 0.1"><freejoint/>'
        f'<geom type="box" size="0.2 0.2 0.1" mass="2" friction="{friction} 0 0"/></body>'
        "</worldbody></mujoco>"
    )
    model = load_model(text, contact_model="hard")
    rollout = Engine(threads=1).rollout(model, model.qpos0, model.qvel0, np.zeros((500, 0)))
    acceleration = 9.81 * (np.sin(slope) - friction * np.cos(slope))
    expected = max(0.0, acceleration) * 0.5
    assert rollout.qvel[-1, 0] == pytest.approx(expected, rel=1e-3, abs=1e-4)


def test_without_contact_shapes_pass_through() -> None:
    model = load_model(SPHERES, contact=False, contact_model="hard")
    qvel = np.array([1.0, 0, 0, 0, 0, 0, -1, 0, 0, 0, 0, 0])
    rollout = Engine(threads=1).rollout(model, model.qpos0, qvel, np.zeros((400, 0)))
    assert np.array_equal(rollout.qvel[-1], qvel)


def test_torsional_and_rolling_friction_bound_the_moment_by_the_normal_force() -> None:
    """Two coefficients combine to the larger; the pair of a plane and a box has four such contacts."""
    text = (
        '<mujoco><option timestep="0.001"/><worldbody><geom type="plane" size="0 0 1" friction="0 0.001 0"/>'
        '<body pos="0 0 0.1"><freejoint/><geom type="box" size="0.1 0.1 0.1" mass="2" condim="4"'
        ' friction="0 0.003 0"/></body></worldbody></mujoco>'
    )
    model = load_model(text, contact_model="hard")
    rollout = Engine(threads=1).rollout(model, model.qpos0, [0, 0, 0, 0, 0, 2.0], np.zeros((100, 0)))
    inertia = model.arrays["body_inertia"][1, 2]
    lost = 0.003 * 2 * 9.81 / inertia * 0.1
    assert rollout.qvel[-1, 5] == pytest.approx(2 - lost, rel=1e-6)


STUCK = 5e-8
"""rad/s: rounding of a block of five friction rows of which all but two move nothing of their own."""
ROLLER = """<mujoco><option timestep="0.002"/><default><geom friction="0.5 0.02 0.02"/></default>
<worldbody><geom type="plane" size="0 0 1"/><body pos="0 0 0.2"><joint type="slide" axis="0 0 1"/>
<joint name="roll" axis="{tilt} 1 0"/><geom size="0.2" mass="1" condim="{condim}"/></body></worldbody>
<actuator><motor joint="roll"/></actuator></mujoco>"""


@pytest.mark.parametrize("tilt", [1e-6, 3e-5, 1e-3])
@pytest.mark.parametrize("solver", ["pgs", "exact"])
@pytest.mark.parametrize("condim", [3, 4, 6])
def test_friction_in_directions_that_move_the_same_joint(condim: int, solver: str, tilt: float) -> None:
    # a wheel on a fixed axle turns by either direction of friction, by one of them hardly at all
    straight, tilted = (
        load_model(ROLLER.format(tilt=angle, condim=condim), contact_model="hard", solver=solver)
        for angle in (0.0, tilt)
    )
    engine = Engine(threads=1)
    for torque, holds in ((0.5, True), (2.0, False)):  # friction holds up to 0.98 N m
        ctrl = np.full((20, 1), torque)
        ends = [
            engine.rollout(each, each.qpos0, np.zeros(2), ctrl).qvel[-1, 1] for each in (straight, tilted)
        ]
        assert ends[1] == pytest.approx(ends[0], abs=STUCK + 2 * tilt**2 * abs(ends[0]))
        assert (abs(ends[0]) < STUCK) == holds
    rollout = engine.rollout(tilted, tilted.qpos0, [0.0, 0.1], np.full((20, 1), 2.0))
    bar = np.zeros(rollout.qvel.shape)
    bar[-1, 1] = 1.0
    backward = engine.backward(tilted, rollout, None, bar, wrt=["ctrl"]).ctrl[:, 0].sum()
    forward = engine.jvp(tilted, rollout, ctrl_tan=np.ones((20, 1))).qvel[-1, 1]
    assert backward == pytest.approx(forward, rel=1e-9)
    assert backward > 0.1

"""Links that a deep contact holds still, and the links beyond them.

A file's floor often goes through a robot that is bolted down. Then contacts push where the joints cannot give
way, with forces that have no bounds. The other joints must not feel that.
"""

from __future__ import annotations

import numpy as np
import pytest

from revolute_engine import Engine, check_gradient, load_model

ENGINE = Engine(threads=1)

# the centre of mass is on the axis, so that MuJoCo's softness of the base's contacts is next to nothing
FINGER = """<body pos="{x} 0 0.02"><inertial pos="0 0 0" mass="0.1" diaginertia="1e-4 1e-4 1e-4"/>
  <joint axis="1 0 0.3" damping="3"/><geom type="box" size="0.03 0.02 0.05"/>
  <body pos="0.05 0 0"><joint axis="0 1 0" damping="3" frictionloss="5"/>
    <geom type="box" size="0.03 0.01 0.01" pos="0.03 0 0" mass="0.05"/>
    <body pos="0.06 0 0"><joint axis="0 1 0" damping="3" frictionloss="5"/>
      <geom type="box" size="0.02 0.01 0.01" pos="0.02 0 0" mass="0.02"/></body></body></body>"""
FINGERS = (
    '<mujoco><option timestep="0.002"/><worldbody><geom type="plane" size="1 1 1"/>'
    f"{FINGER.format(x=0)}{FINGER.format(x=1)}</worldbody></mujoco>"
)

HAND = """<mujoco><option timestep="0.002"/><worldbody><geom type="plane" size="1 1 1"/>
  <body pos="0 0 0.02"><joint axis="{tilt} 0 1" damping="0.01"/>
    <geom type="box" size="0.03 0.02 0.05" mass="0.1"/>
    <body pos="0.05 0 0"><joint axis="0 1 0" damping="0.01"/>
      <geom type="box" size="0.03 0.01 0.01" pos="0.03 0 0" mass="0.05"/></body></body>
</worldbody></mujoco>"""

BOX = """<mujoco><option timestep="0.002"/><worldbody><geom type="plane" size="1 1 1"/>
  <body pos="0 0 0.1"><freejoint/><geom type="box" size="0.1 0.07 0.1" mass="1"/></body>
</worldbody></mujoco>"""


def test_newtons_method_converges_beside_huge_forces() -> None:
    model = load_model(FINGERS, warn=False)
    random = np.random.default_rng(0)
    for _ in range(40):
        qpos, qvel = 0.7 * random.normal(size=6), 3 * random.normal(size=6)
        one = ENGINE.rollout(model, qpos, qvel, np.zeros((1, 0)))
        # nothing couples the fingers
        qvel[3:] += 1e-3
        other = ENGINE.rollout(model, qpos, qvel, np.zeros((1, 0)))
        assert np.abs(one.qvel[1, :3] - other.qvel[1, :3]).max() < 1e-10
        assert one.unsettled_step == other.unsettled_step == -1


@pytest.mark.parametrize("solver", ["pgs", "exact"])
@pytest.mark.parametrize("tilt", [0, 1e-9, 1e-7, 1e-5, 1e-3, 0.1])
def test_a_depth_is_not_given_back_by_turning_about_an_upright_axis(tilt: float, solver: str) -> None:
    model = load_model(HAND.format(tilt=tilt), contact_model="hard", solver=solver, warn=False)
    found = ENGINE.rollout(model, np.array([0.3, 0.1]), np.array([0.5, -1.0]), np.zeros((50, 0)))
    assert np.abs(found.qvel).max() < 2 and found.residual is not None and found.residual < 1e-3
    weights, direction = np.zeros((51, 2)), np.array([0.3, 0.7])
    weights[1] = 1.0, -0.5
    backward = ENGINE.backward(model, found, None, weights, wrt=["qvel"])["qvel"] @ direction
    forward = weights[1] @ ENGINE.jvp(model, found, qvel_tan=direction).qvel[1]
    # friction in two directions on a link that moves in one is solved to 1e-7 (friction_block.hpp (6))
    assert backward == pytest.approx(forward, rel=1e-6, abs=1e-12)


def test_a_deep_contact_that_nothing_can_move_has_a_derivative() -> None:
    # the point of contact is on the axis
    text = """<mujoco><option timestep="0.002"/><worldbody><geom type="plane" size="1 1 1"/>
      <body pos="0 0 0.09"><joint axis="0 0 1"/><geom size="0.1" mass="1"/></body></worldbody></mujoco>"""
    model = load_model(text, contact_model="hard", warn=False)
    found = ENGINE.rollout(model, np.zeros(1), np.ones(1), np.zeros((5, 0)))
    gradient = ENGINE.backward(model, found, None, np.ones((6, 1)), wrt=["qvel", "body_mass"])
    assert gradient["qvel"] == pytest.approx(6) and not gradient["body_mass"].any()


@pytest.mark.parametrize("depth", [5e-5, 1e-3, 4e-3, 0.02])
def test_the_gradient_of_a_box_that_gives_back_its_depth(depth: float) -> None:
    # the softness of the contacts begins at 4e-5 m and is constant from 5.6e-3 m on
    model = load_model(BOX, contact_model="hard", warn=False)
    qpos = np.array([0, 0, 0.1 - depth, 1, 1e-4, 3e-4, 2e-4])
    qvel = np.array([0.3, 0.1, 0, 0.2, 0.1, 0.3])
    report = check_gradient(ENGINE, model, qpos, qvel, steps=3, wrt=["qpos", "qvel", "body_mass"])
    assert {check.verdict for check in report.inputs} <= {"right", "right step by step"}, report

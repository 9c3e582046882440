"""Arrows: contact forces carry the weight, and the descent direction lowers the loss."""

from __future__ import annotations

import numpy as np
import pytest

import revolute
from revolute.render import contact_arrows, gradient_arrows, motion_of
from revolute.render.arrows import checked_gradient

RESTING = """
<mujoco>
  <option timestep="0.002"/>
  <worldbody>
    <geom type="plane" size="0 0 1"/>
    <body pos="0 0 0.1"><freejoint/><geom type="box" size="0.2 0.2 0.1"/></body>
  </worldbody>
</mujoco>
"""
RADIUS = 0.5


BALL_ON_A_BOX = """
<mujoco>
  <option timestep="0.002"/>
  <worldbody>
    <geom type="box" size="1 1 0.1" pos="0 0 -0.1"/>
    <body pos="0 0 0.1"><freejoint/><geom size="0.1"/></body>
  </worldbody>
</mujoco>
"""


BALL_ON_A_TABLE = """
<mujoco>
  <option timestep="0.002"/>
  <worldbody>
    <body mocap="true" pos="0 0 -0.1"><geom type="box" size="1 1 0.1"/></body>
    <body pos="0 0 0.1"><freejoint/><geom size="0.1"/></body>
  </worldbody>
</mujoco>
"""


@pytest.mark.parametrize("contact_model", ["hard", "mujoco"])
@pytest.mark.parametrize(("scene", "points"), [(RESTING, 4), (BALL_ON_A_BOX, 1), (BALL_ON_A_TABLE, 1)])
def test_contact_forces_carry_the_weight(
    simulator: revolute.Simulator, contact_model: str, scene: str, points: int
) -> None:
    model = simulator.load_model(scene, contact_model=contact_model)
    qpos = np.tile(model.qpos0, (2, 1))
    qpos[0, 2] += 1.0  # another environment flies
    trajectory = simulator.rollout(model, qpos, model.qvel0, np.zeros((2, 250, 0)))
    start, end = contact_arrows(motion_of(trajectory, 1), [0, 250], RADIUS)
    assert len(end.ends) == points
    # weight has length RADIUS; it still settles a little
    push = (end.ends[:, 1] - end.ends[:, 0]).sum(axis=0)
    np.testing.assert_allclose(push, [0, 0, RADIUS], atol=0.02 * RADIUS)
    assert len(start.ends) <= points
    (flying,) = contact_arrows(motion_of(trajectory, 0), [10], RADIUS)
    assert len(flying.ends) == 0


def test_the_arrows_point_where_the_loss_falls(in_process: revolute.Simulator) -> None:
    model = in_process.load_model("cartpole")
    loss = revolute.Term("qpos", index=[0], target=1.0)  # the cart has to go to the right
    start = (model.qpos0, model.qvel0)
    ctrl = np.zeros((40, model.nu))
    trajectory = in_process.rollout(model, *start, ctrl)
    _, gradient = in_process.value_and_gradient(model, *start, ctrl, loss)
    motion = motion_of(trajectory)
    ends = gradient_arrows(motion, checked_gradient(motion, gradient), 0, RADIUS).ends
    pushes = ends[:, 1] - ends[:, 0]
    # of the control, and of the start of the cart; each is the largest of its kind
    assert len(pushes) == 2
    assert (pushes[:, 0] > 0).all()
    np.testing.assert_allclose(pushes[:, 1:], 0, atol=1e-12)
    np.testing.assert_allclose(np.linalg.norm(pushes, axis=1), RADIUS)
    assert len(gradient_arrows(motion, gradient, 1, RADIUS).ends) == 1
    assert len(gradient_arrows(motion, gradient, 40, RADIUS).ends) == 0


def test_held_controls_have_one_arrow_per_step(in_process: revolute.Simulator) -> None:
    model = in_process.load_model("cartpole")
    trajectory = in_process.rollout(model, model.qpos0, model.qvel0, np.ones((4, 1)), hold=5)
    gradient = trajectory.backward(np.ones_like(trajectory.qpos), wrt=["ctrl"])
    found = checked_gradient(motion_of(trajectory), gradient)["ctrl"]
    np.testing.assert_array_equal(found, np.repeat(gradient.ctrl, 5, axis=0))

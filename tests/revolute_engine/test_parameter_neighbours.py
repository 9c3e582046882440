"""A pack of environments with different parameters: each gets what it gets alone, bit for bit."""

from __future__ import annotations

import numpy as np

from revolute_engine import Engine, load_model

ARM = """<mujoco><option timestep="0.01"/><worldbody>
  <body><joint axis="0 1 0" damping="0.1"/><geom type="capsule" fromto="0 0 0 0.3 0 0" size="0.03"/>
    <body pos="0.3 0 0"><joint axis="0 1 0" limited="true" range="-20 20"/>
      <geom type="capsule" fromto="0 0 0 0.3 0 0" size="0.03"/></body></body>
</worldbody></mujoco>"""


def test_an_environment_without_dry_friction_does_not_see_that_of_its_neighbours() -> None:
    """Frictionloss of exactly zero makes no row alone, but one in a pack where a neighbour has friction."""
    model, engine = load_model(ARM), Engine(threads=1)
    random = np.random.default_rng(0)
    qpos, qvel = random.uniform(-0.5, 0.5, (8, 2)), random.normal(size=(8, 2))
    loss = random.uniform(0.0, 0.5, (8, 2)) * (random.uniform(size=(8, 2)) < 0.5)
    assert np.any(loss == 0) and np.any(loss > 0)
    ctrl, qvel_bar, wrt = np.zeros((8, 20, 0)), random.normal(size=(8, 21, 2)), ["dof_frictionloss", "qvel"]
    together = engine.rollout(model, qpos, qvel, ctrl, params={"dof_frictionloss": loss})
    gradient = engine.backward(model, together, qvel_bar=qvel_bar, wrt=wrt)
    for b in range(8):
        alone = engine.rollout(model, qpos[b], qvel[b], ctrl[b], params={"dof_frictionloss": loss[b]})
        np.testing.assert_array_equal(together.qpos[b], alone.qpos)
        np.testing.assert_array_equal(together.qvel[b], alone.qvel)
        own = engine.backward(model, alone, qvel_bar=qvel_bar[b], wrt=wrt)
        for name in wrt:
            np.testing.assert_array_equal(gradient[name][b], own[name], err_msg=f"{name} of environment {b}")

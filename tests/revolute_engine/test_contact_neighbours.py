"""A pack of environments with contact areas of different sizes."""

from __future__ import annotations

import numpy as np

from revolute_engine import Engine, load_model

STACK = """<mujoco><option timestep="0.01"/><worldbody><geom type="plane" size="1 1 1"/>
  <body pos="0 0 0.1"><freejoint/><geom type="box" size="0.1 0.1 0.1"/></body>
  <body pos="0 0 0.3"><freejoint/><geom type="box" size="0.1 0.1 0.1"/></body>
</worldbody></mujoco>"""


def test_an_environment_that_blows_up_does_not_see_its_neighbours() -> None:
    """Slots of a contact area that it does not use are out of reach at any speed."""
    model, engine = load_model(STACK), Engine(threads=1)
    qpos, qvel = np.tile(model.qpos0, (2, 1)), np.zeros((2, 12))
    qpos[1, 7:] = [0.15, 0.15, 0.29, 0.9, 0.3, 0.2, 0.1]
    qvel[1, 6:] = [3e5, 2e11, -3e11, 1e6, 2e6, 1e5]
    ctrl = np.zeros((2, 3, 0))
    together = engine.rollout(model, qpos, qvel, ctrl)
    for b in range(2):
        alone = engine.rollout(model, qpos[b], qvel[b], ctrl[b])
        np.testing.assert_array_equal(together.qpos[b], alone.qpos)
        np.testing.assert_array_equal(together.qvel[b], alone.qvel)

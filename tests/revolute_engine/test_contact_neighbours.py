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


MARBLES = """<mujoco><option timestep="0.01"/><worldbody><geom type="plane" size="1 1 1"/>
  <body name="a"><freejoint/><geom size="0.1"/></body>
  <body name="b"><freejoint/><geom size="0.1"/></body>
  <body name="c"><freejoint/><geom size="0.1"/></body>
</worldbody></mujoco>"""


def test_islands_that_join_in_a_neighbour_leave_the_sums_over_islands_as_they_are() -> None:
    """Marbles a, b, c bounce on the ground; in every second environment a and c touch, so that their rows are
    solved together. What all contacts share, like restitution, is summed in one order in all environments.
    """
    model, engine, batch = load_model(MARBLES, contact_model="hard"), Engine(threads=1), 8
    random = np.random.default_rng(3)
    qpos, qvel = np.tile(model.qpos0, (batch, 1)), random.normal(size=(batch, model.nv))
    for b in range(batch):
        for marble, x in enumerate([0.0, 1.0, 0.19 if b % 2 else 2.0]):
            qpos[b, 7 * marble : 7 * marble + 3] = [x, 0.01 * random.normal(), 0.1 + 0.01 * random.random()]
            qvel[b, 6 * marble + 2] = -1 - random.random()
    ctrl = np.zeros((batch, 3, 0))
    params = {
        "restitution": random.uniform(0.3, 0.9, batch),
        "gravity": random.normal(size=(batch, 3)) - [0, 0, 10],
        "geom_friction": random.uniform(0.2, 1, (batch, 4, 3)),
    }
    wrt = ("restitution", "gravity", "geom_friction", "qpos", "qvel")
    together = engine.rollout(model, qpos, qvel, ctrl, params=params)
    bars = random.normal(size=together.qpos.shape), random.normal(size=together.qvel.shape)
    gradient = engine.backward(model, together, *bars, wrt=wrt)
    for b in range(batch):
        own = {name: value[b] for name, value in params.items()}
        alone = engine.rollout(model, qpos[b], qvel[b], ctrl[b], params=own)
        np.testing.assert_array_equal(together.qvel[b], alone.qvel)
        gradient_alone = engine.backward(model, alone, bars[0][b], bars[1][b], wrt=wrt)
        assert gradient_alone.restitution != 0
        for name in wrt:
            np.testing.assert_array_equal(gradient[name][b], gradient_alone[name], err_msg=f"{name} of {b}")

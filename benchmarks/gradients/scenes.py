"""The scenes of the figures: Laikago standing, with feedback and without, sliding; a block, two balls."""

from __future__ import annotations

import numpy as np

from benchmarks.laikago import START, SWEEPS, controls
from revolute_engine import Engine, Model, load_model

from .differences import Array, Start

SETTLING = 500
STIFFNESS, DAMPING = 220.0, 4.0  # the position actuators of the built-in model


def standing(steps: int, sweeps: int = SWEEPS) -> tuple[Model, Start]:
    """Return Laikago on four toes, held by position actuators: the feedback is part of the step."""
    model = load_model("laikago", iterations=sweeps)
    return model, Start(START.copy(), np.zeros(model.nv), controls(steps), {})


def settled(steps: int) -> tuple[Model, Start]:
    """Return the standing robot after a second: its toes rest on the floor."""
    model, start = standing(SETTLING + steps)
    rollout = Engine(threads=1).rollout(model, start.qpos, start.qvel, start.ctrl[:SETTLING])
    return model, Start(rollout.qpos[-1].copy(), rollout.qvel[-1].copy(), start.ctrl[SETTLING:], {})


def open_loop(steps: int) -> tuple[Model, Start]:
    """Return the same motion from a recording of the joint torques: nothing corrects a disturbance."""
    model, start = standing(steps)
    rollout = Engine(threads=1).rollout(model, start.qpos, start.qvel, start.ctrl)
    torques = STIFFNESS * (start.ctrl - rollout.qpos[:-1, 7:]) - DAMPING * rollout.qvel[:-1, 6:]
    return load_model("laikago_torque"), Start(start.qpos, start.qvel, torques, {})


def sliding(steps: int) -> tuple[Model, Start]:
    """Return the robot with a push of 1.1 m/s, on a floor with little friction."""
    model, start = standing(steps)
    qvel = start.qvel.copy()
    qvel[:2] = 1.0, 0.4
    friction = np.full(model.ngeom, 0.2)
    friction[model.geom_names.index("floor")] = 0.3  # distinct coefficients: the larger of two counts
    return model, Start(
        start.qpos, qvel, start.ctrl, {"geom_friction": friction, "body_mass": model.body_mass}
    )


BLOCK = """
<mujoco>
  <option timestep="0.001"/>
  <worldbody>
    <geom name="floor" type="plane" size="10 10 1"/>
    <body name="block" pos="0 0 0.1">
      <joint name="x" type="slide" axis="1 0 0"/>
      <joint name="z" type="slide" axis="0 0 1"/>
      <geom name="block" type="box" size="0.1 0.1 0.1" mass="2"/>
    </body>
  </worldbody>
  <actuator><motor joint="x"/></actuator>
</mujoco>
"""
"""A block of 2 kg on rails along x and z, pushed along x by the control."""

TWO_BALLS = """
<mujoco>
  <option timestep="0.001" gravity="0 0 0"/>
  <worldbody>
    <body pos="0 0 0"><joint type="slide" axis="1 0 0"/><geom type="sphere" size="0.1" mass="1"/></body>
    <body pos="0.7 0 0"><joint type="slide" axis="1 0 0"/><geom type="sphere" size="0.1" mass="1"/></body>
  </worldbody>
</mujoco>
"""
"""Two equal balls on one line, 0.5 m apart."""

DROP = """
<mujoco>
  <option timestep="0.001"/>
  <worldbody>
    <geom type="plane" size="10 10 1"/>
    <body pos="0 0 0.1"><joint type="slide" axis="0 0 1"/><geom type="sphere" size="0.1" mass="1"/></body>
  </worldbody>
</mujoco>
"""
"""A ball above a floor; its position is the gap."""


def final_gradient(
    model: Model, qpos: Array, qvel: Array, steps: int, entry: int
) -> tuple[float, Array, Array]:
    """Return one entry of the last qpos, and its gradient by the start's qpos and qvel."""
    engine = Engine(threads=1)
    rollout = engine.rollout(model, qpos, qvel, np.zeros((steps, model.nu)))
    bar = np.zeros_like(rollout.qpos)
    bar[-1, entry] = 1.0
    gradient = engine.backward(model, rollout, bar, wrt=("qpos", "qvel"))
    return float(rollout.qpos[-1, entry]), gradient.qpos, gradient.qvel

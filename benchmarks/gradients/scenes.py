"""The scenes of the figures: Laikago standing (with and without feedback) and sliding, a block, balls."""

from __future__ import annotations

import numpy as np

from benchmarks.laikago import START, SWEEPS, controls
from revolute_engine import Engine, Model, load_model
from revolute_engine.parameters import default_parameter, parameters_of

from .differences import Array, Start

SETTLING = 500
STIFFNESS, DAMPING = 220.0, 4.0  # the position actuators of the built-in model


def standing(steps: int, sweeps: int = SWEEPS, friction: float | None = None) -> tuple[Model, Start]:
    """Return Laikago standing on four toes, held by position actuators, whose feedback is part of the step.

    Args:
        steps: length of the rollout.
        sweeps: number of solver sweeps.
        friction: sliding coefficient of every shape; by default the model's, 0.8.
    """
    model = load_model("laikago", contact_model="hard", iterations=sweeps)
    params = {} if friction is None else {"geom_friction": np.full((model.ngeom, 3), friction)}
    return model, Start(START.copy(), np.zeros(model.nv), controls(steps), params)


def settled(steps: int) -> tuple[Model, Start]:
    """Return the standing robot after 1 s, with its toes resting on the floor."""
    model, start = standing(SETTLING + steps)
    rollout = Engine(threads=1).rollout(model, start.qpos, start.qvel, start.ctrl[:SETTLING])
    return model, Start(rollout.qpos[-1].copy(), rollout.qvel[-1].copy(), start.ctrl[SETTLING:], {})


def open_loop(steps: int) -> tuple[Model, Start]:
    """Return the settled robot's motion with recorded joint torques, i.e. without feedback.

    A landing would not be the same: position actuators act from the state at which the step meets the ground.
    """
    model, start = settled(steps)
    rollout = Engine(threads=1).rollout(model, start.qpos, start.qvel, start.ctrl)
    torques = STIFFNESS * (start.ctrl - rollout.qpos[:-1, 7:]) - DAMPING * rollout.qvel[:-1, 6:]
    return load_model("laikago_torque", contact_model="hard"), Start(start.qpos, start.qvel, torques, {})


def sliding(steps: int) -> tuple[Model, Start]:
    """Return the robot thrown down and sideways on a slippery floor, with all parameters above zero."""
    model, start = standing(steps)
    qvel = start.qvel.copy()
    qvel[:3] = 1.0, 0.4, -0.5
    friction = np.full((model.ngeom, 3), 0.2)
    friction[model.geom_names.index("floor")] = 0.3  # distinct coefficients: the larger of two counts
    params = {name: default_parameter(model, name) for name in parameters_of(model)}
    params |= {
        "geom_friction": friction,
        "dof_damping": np.full(model.nv, 0.1),
        "dof_armature": np.full(model.nv, 0.01),
        "dof_frictionloss": np.r_[np.zeros(6), np.full(model.nv - 6, 0.2)],
        "jnt_stiffness": np.r_[0.0, np.full(model.njnt - 1, 5.0)],
        "qpos_spring": np.r_[START[:7], np.full(model.nq - 7, 0.1)],
        "restitution": np.array(0.3),
    }
    del params["jnt_range"]  # no joint has limits
    return model, Start(start.qpos, qvel, start.ctrl, params)


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

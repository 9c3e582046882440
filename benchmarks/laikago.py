"""Laikago standing on four toes, in revolute and in MuJoCo from the same MJCF.

Joint targets through position actuators, h = 2 ms, 50 sweeps; MuJoCo with its defaults (Newton, pyramidal
cones, Euler). Both start from the same state and follow the same controls.
"""

from __future__ import annotations

import copy
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import mujoco
import numpy as np
from mujoco import rollout as mujoco_rollout

import revolute_engine

TIMESTEP = 2e-3
SWEEPS = 50
POSE = np.tile([0.0, 0.1, -0.8], 4)
START = np.concatenate([[0, 0, 0.458476, 1, 0, 0, 0], POSE])


def controls(steps: int) -> np.ndarray:
    """Return the joint targets, [steps, 12]: the pose with a small sway."""
    time = np.arange(steps)[:, None]
    return POSE + 0.01 * np.sin(0.05 * time + np.arange(12))


@dataclass
class Scene:
    """One scene in both engines.

    Args:
        steps: length of every rollout.
        contact: False takes contacts, limits and dry friction out of both.
    """

    steps: int
    contact: bool = True

    def __post_init__(self) -> None:
        self.model = revolute_engine.load_model(
            "laikago",
            timestep=TIMESTEP,
            iterations=SWEEPS,
            contact=self.contact,
            limits=self.contact,
            dry_friction=self.contact,
        )
        self.engine = revolute_engine.Engine(threads=1)

    def forward(self, batch: int) -> Callable[[], Any]:
        """Return a call that rolls out `batch` environments for all steps on one thread."""
        ctrl = np.tile(controls(self.steps), (batch, 1, 1))
        qvel = np.zeros(self.model.nv)
        return lambda: self.engine.rollout(self.model, START, qvel, ctrl)

    def backward(self, batch: int) -> Callable[[], Any]:
        """Return a call that pulls back d |final base position|^2 through such a rollout."""
        rollout = self.forward(batch)()
        qpos_bar = np.zeros_like(rollout.qpos)
        qpos_bar[:, -1, :3] = 2 * rollout.qpos[:, -1, :3]
        return lambda: self.engine.backward(self.model, rollout, qpos_bar, None)

    def mujoco_model(self) -> mujoco.MjModel:
        """Return MuJoCo's model of the same MJCF, with its default solver."""
        model = copy.copy(self.model.mujoco_model)
        model.opt.timestep = TIMESTEP
        if not self.contact:
            off = mujoco.mjtDisableBit
            model.opt.disableflags |= off.mjDSBL_CONTACT | off.mjDSBL_LIMIT | off.mjDSBL_FRICTIONLOSS
        return model

    def mujoco_forward(self) -> Callable[[], Any]:
        """Return a call of `steps` times mj_step, looped in C by mujoco.rollout, on one thread."""
        model = self.mujoco_model()
        data = mujoco.MjData(model)
        data.qpos[:] = START
        start = np.empty(mujoco.mj_stateSize(model, mujoco.mjtState.mjSTATE_FULLPHYSICS))
        mujoco.mj_getState(model, data, start, mujoco.mjtState.mjSTATE_FULLPHYSICS)
        ctrl = controls(self.steps)[None]
        return lambda: mujoco_rollout.rollout(model, data, start[None], ctrl)

    def mujoco_transition(self, calls: int) -> Callable[[], Any]:
        """Return `calls` times mjd_transitionFD (one-sided): the Jacobian a chain of steps would need."""
        model = self.mujoco_model()
        data = mujoco.MjData(model)
        data.qpos[:] = START
        data.ctrl[:] = POSE
        mujoco.mj_step(model, data, 100)
        by_state = np.empty((2 * model.nv + model.na,) * 2)
        by_ctrl = np.empty((2 * model.nv + model.na, model.nu))

        def differentiate() -> None:
            for _ in range(calls):
                mujoco.mjd_transitionFD(model, data, 1e-6, False, by_state, by_ctrl, None, None)

        return differentiate

"""Laikagos standing on four toes, in revolute and in MuJoCo from the same MJCF.

Joint targets through position actuators, h = 2 ms, hard contact with 50 sweeps; MuJoCo with its defaults
(Newton, pyramidal cones, Euler). Both start from the same state and follow the same controls.
"""

from __future__ import annotations

import copy
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import mujoco
import numpy as np
from mujoco import rollout as mujoco_rollout

import revolute_engine

TIMESTEP = 2e-3
SWEEPS = 50
POSE = np.tile([0.0, 0.1, -0.8], 4)
START = np.concatenate([[0, 0, 0.458476, 1, 0, 0, 0], POSE])


MODEL_FILE = Path(revolute_engine.__file__).parent / "models" / "laikago.xml"
SPACING = 2.0  # metres between robots of one scene, which stand in two columns


def controls(steps: int) -> np.ndarray:
    """Return the joint targets [steps, 12]: the standing pose with a small sway."""
    time = np.arange(steps)[:, None]
    return POSE + 0.01 * np.sin(0.05 * time + np.arange(12))


def places(robots: int) -> np.ndarray:
    """Return where the robots of a scene stand, [robots, 2]."""
    return SPACING * np.array([[i // 2, i % 2] for i in range(robots)], dtype=float)


def scene_xml(robots: int) -> str:
    """Return MJCF of the built-in robot standing `robots` times on one floor."""
    scene = mujoco.MjSpec.from_file(str(MODEL_FILE))
    for key in list(scene.keys):
        scene.delete(key)
    for i in range(1, robots):
        robot = mujoco.MjSpec.from_file(str(MODEL_FILE))
        for extra in [*robot.keys, *robot.worldbody.geoms, *robot.worldbody.lights]:
            robot.delete(extra)
        frame = scene.worldbody.add_frame(pos=[*places(robots)[i], 0.0])
        scene.attach(robot, prefix=f"robot{i}_", frame=frame)
    scene.compile()
    return scene.to_xml()


@dataclass
class Scene:
    """One scene in both engines.

    Args:
        steps: length of every rollout.
        contact: False turns off contacts, limits and dry friction in both.
        robots: number of robots in the scene.
        threads: threads of revolute; MuJoCo always gets one.
        checkpoints: which states of a rollout are kept.
    """

    steps: int
    contact: bool = True
    robots: int = 1
    threads: int = 1
    checkpoints: str = "every"

    def __post_init__(self) -> None:
        self.model = revolute_engine.load_model(
            "laikago" if self.robots == 1 else scene_xml(self.robots),
            timestep=TIMESTEP,
            contact_model="hard",
            iterations=SWEEPS,
            contact=self.contact,
            limits=self.contact,
            dry_friction=self.contact,
        )
        self.engine = revolute_engine.Engine(threads=self.threads)
        self.start = np.tile(START, self.robots)
        for i, place in enumerate(places(self.robots)):
            self.start[19 * i : 19 * i + 2] = place

    def controls(self, batch: int = 1) -> np.ndarray:
        """Return the joint targets of all robots, [batch, steps, nu]."""
        return np.tile(controls(self.steps), (batch, 1, self.robots))

    def forward(self, batch: int) -> Callable[[], Any]:
        """Return a call that rolls out `batch` environments for all steps."""
        ctrl = self.controls(batch)
        qvel = np.zeros(self.model.nv)
        return lambda: self.engine.rollout(self.model, self.start, qvel, ctrl, checkpoints=self.checkpoints)

    def backward(self, batch: int) -> Callable[[], Any]:
        """Return a call that pulls back d |final base position|^2 through such a rollout."""
        rollout = self.forward(batch)()
        return lambda: self.gradient(rollout)

    def gradient(self, rollout: revolute_engine.Rollout) -> revolute_engine.Gradient:
        """Return the gradient of |final position of the first robot's base|^2 by start and controls."""
        qpos_bar = np.zeros((rollout.batch, 1, self.model.nq))
        qpos_bar[:, 0, :3] = 2 * rollout.final_qpos[:, :3]
        return self.engine.backward(self.model, rollout, qpos_bar, times=[-1])

    def jacobian(self, calls: int, batch: int = 1) -> Callable[[], Any]:
        """Return a call of the Jacobians of a standing step of `batch` environments, `calls` times."""
        rollout = self.forward(batch)()
        qpos, qvel = rollout.qpos[:, -1], rollout.qvel[:, -1]
        ctrl = self.controls(batch)[:, -1]

        def differentiate() -> None:
            for _ in range(calls):
                self.engine.jacobian(self.model, qpos, qvel, ctrl)

        return differentiate

    def mujoco_model(self) -> mujoco.MjModel:
        """Return MuJoCo's model of the same MJCF, with its default solver."""
        model = copy.copy(self.model.mujoco_model)
        model.opt.timestep = TIMESTEP
        if not self.contact:
            off = mujoco.mjtDisableBit
            model.opt.disableflags |= off.mjDSBL_CONTACT | off.mjDSBL_LIMIT | off.mjDSBL_FRICTIONLOSS
        return model

    def mujoco_forward(self, batch: int = 1) -> Callable[[], Any]:
        """Return a call that runs mj_step `batch * steps` times with mujoco.rollout, on one thread."""
        model = self.mujoco_model()
        data = mujoco.MjData(model)
        data.qpos[:] = self.start
        start = np.empty(mujoco.mj_stateSize(model, mujoco.mjtState.mjSTATE_FULLPHYSICS))
        mujoco.mj_getState(model, data, start, mujoco.mjtState.mjSTATE_FULLPHYSICS)
        ctrl = self.controls(batch)
        return lambda: mujoco_rollout.rollout(model, data, np.tile(start, (batch, 1)), ctrl)

    def mujoco_transition(self, calls: int) -> Callable[[], Any]:
        """Return a call that runs mjd_transitionFD (one-sided) `calls` times, for the Jacobians of a
        chain."""
        model = self.mujoco_model()
        data = mujoco.MjData(model)
        data.qpos[:] = self.start
        data.ctrl[:] = np.tile(POSE, self.robots)
        mujoco.mj_step(model, data, 100)
        by_state = np.empty((2 * model.nv + model.na,) * 2)
        by_ctrl = np.empty((2 * model.nv + model.na, model.nu))

        def differentiate() -> None:
            for _ in range(calls):
                mujoco.mjd_transitionFD(model, data, 1e-6, False, by_state, by_ctrl, None, None)

        return differentiate

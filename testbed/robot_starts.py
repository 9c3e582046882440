"""Starts of robots for trajectories in contact."""

from __future__ import annotations

from dataclasses import dataclass

import mujoco
import numpy as np
import numpy.typing as npt

from revolute_engine import Model

from .robot_catalogue import Robot

Array = npt.NDArray[np.float64]


def moderate_range(model: Model) -> Array:
    """Return the ranges of the controls [nu, 2], at most 1 from zero."""
    return np.clip(model.ctrlrange, -1.0, 1.0)


@dataclass(frozen=True)
class Start:
    """Where a trajectory starts, [nq] and [nv + na], and its controls [time, nu]."""

    qpos: Array
    qvel: Array
    ctrl: Array


def moderate_controls(model: Model, random: np.random.Generator, steps: int, share: float) -> Array:
    """Return random controls within a share of their moderate ranges."""
    low, high = moderate_range(model).T
    return (low + high) / 2 + share * (high - low) / 2 * random.uniform(-1, 1, size=(steps, model.nu))


def standing_start(model: Model, seed: int = 3, steps: int = 50, pressed: float = 1e-4) -> Start:
    """Return a slow start in the reference pose, a free base put down on the ground.

    Args:
        model: the model.
        seed: seed of the velocities and controls.
        steps: number of controls.
        pressed: how deep the lowest shape is in the ground, metres. At 0 "mujoco" has a switching point.
    """
    random = np.random.default_rng(seed)
    qpos = np.array(model.qpos0)
    lowest = lowest_point(model, qpos)
    if model.arrays["jnt_type"][0] == int(mujoco.mjtJoint.mjJNT_FREE) and np.isfinite(lowest):
        qpos[2] -= lowest + pressed
    qvel = np.zeros(model.nqvel)  # activations behind the velocities
    qvel[: model.nv] = 0.01 * random.normal(size=model.nv)
    return Start(qpos, qvel, moderate_controls(model, random, steps, 0.1))


def lowest_point(model: Model, qpos: Array) -> float:
    """Return the height of the lowest point of the shapes that move and can touch; infinite without any."""
    mj = model.mujoco_model
    data = mujoco.MjData(mj)
    data.qpos[:] = qpos
    mujoco.mj_kinematics(mj, data)
    touching = (mj.geom_contype | mj.geom_conaffinity).astype(bool) & (mj.body_weldid[mj.geom_bodyid] != 0)
    heights = [
        data.geom_xpos[geom, 2] - _reach_down(model, data, int(geom)) for geom in np.flatnonzero(touching)
    ]
    return float(min(heights, default=np.inf))


def _reach_down(model: Model, data: mujoco.MjData, geom: int) -> float:
    """Return how far a shape reaches below its centre."""
    down = data.geom_xmat[geom].reshape(3, 3)[2]
    size, kind = model.mujoco_model.geom_size[geom], mujoco.mjtGeom(int(model.mujoco_model.geom_type[geom]))
    if kind == mujoco.mjtGeom.mjGEOM_MESH:
        first, count = model.arrays["hull_adr"][geom], model.arrays["hull_num"][geom]
        return float(-(model.arrays["hull_vert"][first : first + count] @ down).min())
    if kind == mujoco.mjtGeom.mjGEOM_BOX:
        return float(np.abs(down) @ size)
    if kind == mujoco.mjtGeom.mjGEOM_ELLIPSOID:
        return float(np.linalg.norm(down * size))
    radius, half = size[0], size[1] if kind != mujoco.mjtGeom.mjGEOM_SPHERE else 0.0
    if kind == mujoco.mjtGeom.mjGEOM_CYLINDER:
        return float(abs(down[2]) * half + radius * np.hypot(down[0], down[1]))
    return float(radius + abs(down[2]) * half)


def on_the_ground(robot: Robot) -> Model:
    """Load the robot with contacts, and a ground when its file has none."""
    model = robot.load()
    has_plane = np.any(model.arrays["geom_type"] == int(mujoco.mjtGeom.mjGEOM_PLANE))
    return model if has_plane else robot.load(ground=True)

"""The task of the demo: start state, first controls, and a loss that moves one coordinate to a target.

With x the moved coordinate, x* its target and u0 the first controls,

    loss = mean over the last quarter of ((x - x*) / shift)^2 + keep + effort * mean of (u - u0)^2    (1)

The target is x at the end of the first rollout plus `shift`, so the first term is 1 at first and 0 at the
target. For a robot with a free base, `keep` penalises changes of the base's other two coordinates and of its
orientation.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import mujoco
import numpy as np

from revolute import ArgumentError, Loss, Term

LAIKAGO_POSE = np.tile([0.0, 0.1, -0.8], 4)  # hip, upper leg, lower leg of four legs
LAIKAGO_HEIGHT = 0.458476  # the toes touch the ground
SHIFT = 0.05  # metres, or radians for a hinge
EFFORT = 0.5  # per (unit of control)^2
UPRIGHT = 4.0  # per unit of quaternion^2
INSIDE = 0.05  # smallest distance of a joint from its bounds at the start, as a part of its range
CLEARANCE = 1e-4  # metres between the ground and the lowest point of the robot at the start


@dataclass(frozen=True)
class Scene:
    """A robot, its start and its first controls.

    Attributes:
        model: revolute.ModelHandle on the server.
        qpos: start configuration, [nq].
        qvel: start velocity, [nv].
        ctrl: first controls, [T, nu].
        ctrlrange: lower and upper bound of each control, [nu, 2]; infinite if it has none.
        moved: index of the moved coordinate in qpos.
        label: name of that coordinate, with its unit.
        free_base: whether the first joint is a free joint.
    """

    model: Any
    qpos: np.ndarray
    qvel: np.ndarray
    ctrl: np.ndarray
    ctrlrange: np.ndarray
    moved: int
    label: str
    free_base: bool

    def task(self, path: np.ndarray) -> tuple[Loss, float]:
        """Return the loss (1) and the target of the moved coordinate at the end.

        Args:
            path: qpos of the first rollout, [T + 1, nq].
        """
        target = path[:, [self.moved]] + SHIFT
        steps = len(self.ctrl)
        late = np.arange(steps + 1)[:, None] > 0.75 * steps
        late = late / late.sum()
        near = SHIFT**-2 * late
        terms = [
            Term("qpos", weight=near, target=target, when="running", index=[self.moved]),
            Term("ctrl", weight=EFFORT / self.ctrl.size, target=self.ctrl, when="running"),
        ]
        if self.free_base:
            others = [axis for axis in (0, 1, 2) if axis != self.moved]
            turn = UPRIGHT * late
            terms += [
                Term("qpos", weight=near, target=path[:, others], when="running", index=others),
                Term("qpos", weight=turn, target=path[:, 3:7], when="running", index=range(3, 7)),
            ]
        return Loss(terms), float(target[-1, 0])

    def posts(self, path: np.ndarray, target: float) -> np.ndarray | None:
        """Return two vertical lines for the picture: at the final base position before, and at the target.

        Args:
            path: qpos of the first rollout, [T + 1, nq].
            target: target of the moved coordinate.

        Returns:
            Ends of the lines, [2 lines, 2 ends, xyz]; None without a free base.
        """
        if not self.free_base:
            return None
        foot = np.append(path[-1, :2], 0.0)
        feet = np.stack([foot, foot])
        feet[1, self.moved] = target
        return np.stack([feet, feet + np.array([0, 0, 1.6 * path[:, 2].max()])], axis=1)


def laikago(model: Any, steps: int) -> Scene:
    """Return the standing Laikago, with joint targets near its pose and a small sway."""
    time = np.arange(steps)[:, None]
    return Scene(
        model=model,
        qpos=np.concatenate([[0, 0, LAIKAGO_HEIGHT, 1, 0, 0, 0], LAIKAGO_POSE]),
        qvel=np.zeros(model.nv),
        ctrl=LAIKAGO_POSE + 0.01 * np.sin(0.05 * time + np.arange(model.nu)),
        ctrlrange=_bounds(model),
        moved=1,
        label="base y (m)",
        free_base=True,
    )


def any_robot(model: Any, mj_model: mujoco.MjModel, steps: int) -> Scene:
    """Return a scene for a model of the user.

    It starts in the file's first keyframe, or else in its reference pose, with all joints inside their
    limits. A free base is placed on the ground. Position actuators hold that pose; other controls start at
    zero.

    Args:
        model: revolute.ModelHandle.
        mj_model: the same model, compiled by MuJoCo.
        steps: length of the rollout.

    Raises:
        ArgumentError: the model has no actuators, so there is nothing to optimise.
    """
    if model.nu == 0:
        raise ArgumentError.expected(
            "model",
            "at least one actuator",
            f"{model.name!r} with none",
            advice="the demo optimises controls; add an <actuator> section",
        )
    free_base = mj_model.jnt_type[0] == mujoco.mjtJoint.mjJNT_FREE
    qpos = _inside_limits(mj_model, mj_model.key_qpos[0] if mj_model.nkey else mj_model.qpos0)
    if free_base:
        qpos[2] += CLEARANCE - lowest_point(mj_model, qpos)
    bounds = _bounds(model)
    hold = np.clip(_holding_controls(mj_model, qpos), bounds[:, 0], bounds[:, 1])
    joint = mujoco.mj_id2name(mj_model, mujoco.mjtObj.mjOBJ_JOINT, 0) or "first joint"
    unit = "m" if mj_model.jnt_type[0] == mujoco.mjtJoint.mjJNT_SLIDE else "rad"
    return Scene(
        model=model,
        qpos=qpos,
        qvel=np.zeros(model.nv),
        ctrl=np.tile(hold, (steps, 1)),
        ctrlrange=bounds,
        moved=1 if free_base else 0,
        label="base y (m)" if free_base else f"{joint} ({unit})",
        free_base=bool(free_base),
    )


def lowest_point(mj_model: mujoco.MjModel, qpos: np.ndarray) -> float:
    """Return the height in m of the lowest point of the robot's moving collision shapes; 0 if there are none.

    It is exact for spheres, capsules and meshes; other shapes are replaced by their bounding boxes.
    """
    state = mujoco.MjData(mj_model)
    state.qpos[:] = qpos
    mujoco.mj_kinematics(mj_model, state)
    corners = np.array(np.meshgrid(*[[-1, 1]] * 3)).reshape(3, -1).T
    heights = []
    for geom in range(mj_model.ngeom):
        collides = mj_model.geom_contype[geom] or mj_model.geom_conaffinity[geom]
        if not collides or mj_model.body_weldid[mj_model.geom_bodyid[geom]] == 0:
            continue
        kind, size = mj_model.geom_type[geom], mj_model.geom_size[geom]
        down, height = state.geom_xmat[geom].reshape(3, 3)[2], state.geom_xpos[geom][2]
        if kind == mujoco.mjtGeom.mjGEOM_SPHERE:
            heights.append(height - size[0])
        elif kind == mujoco.mjtGeom.mjGEOM_CAPSULE:
            heights.append(height - size[0] - size[1] * abs(down[2]))
        elif kind == mujoco.mjtGeom.mjGEOM_MESH:
            mesh = mj_model.geom_dataid[geom]
            first = mj_model.mesh_vertadr[mesh]
            vertices = mj_model.mesh_vert[first : first + mj_model.mesh_vertnum[mesh]]
            heights.append(height + (vertices @ down).min())
        else:
            heights.append(
                height
                + ((mj_model.geom_aabb[geom, :3] + corners * mj_model.geom_aabb[geom, 3:]) @ down).min()
            )
    return float(min(heights, default=0.0))


def _inside_limits(mj_model: mujoco.MjModel, qpos: np.ndarray) -> np.ndarray:
    """Move limited hinges and slides away from their bounds, where the loss has a kink."""
    scalar = mj_model.jnt_type >= int(mujoco.mjtJoint.mjJNT_SLIDE)
    limited = np.flatnonzero(scalar & (mj_model.jnt_limited != 0))
    low, high = mj_model.jnt_range[limited].T
    gap = INSIDE * (high - low)
    inside = np.array(qpos)
    at = mj_model.jnt_qposadr[limited]
    inside[at] = np.clip(inside[at], low + gap, high - gap)
    return inside


def _holding_controls(mj_model: mujoco.MjModel, qpos: np.ndarray) -> np.ndarray:
    """Return the controls with which position actuators hold the present pose; zero for other actuators."""
    state = mujoco.MjData(mj_model)
    state.qpos[:] = qpos
    mujoco.mj_fwdPosition(mj_model, state)
    gain = mj_model.actuator_gainprm[:, 0]
    pull = mj_model.actuator_biasprm[:, 0] + mj_model.actuator_biasprm[:, 1] * state.actuator_length
    affine = mj_model.actuator_biastype == mujoco.mjtBias.mjBIAS_AFFINE
    return np.where(affine & (gain != 0), -pull / np.where(gain == 0, 1, gain), 0.0)


def _bounds(model: Any) -> np.ndarray:
    """Return the bounds of the controls, [nu, 2]; infinite if the model has none."""
    return np.array(model.ctrlrange, dtype=float).reshape(model.nu, 2)

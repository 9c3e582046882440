"""What the demo does with a robot: where it starts, its first controls, and the loss that asks it to move.

With x the moved coordinate, x* its target and u0 the first controls,

    loss = mean over the last quarter of ((x - x*) / shift)^2 + keep + effort * mean of (u - u0)^2    (1)

so that the robot gets there and stays. The target is `shift` beside where the first controls lead, so the
first term is 1 before and 0 when it is reached. For a robot with a free base `keep` asks that the base's
other two coordinates and its orientation are as they were.
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
INSIDE = 0.05  # share of a joint's range that is kept from its bounds at the start
CLEARANCE = 1e-4  # metres between the ground and the lowest point of a robot that is set down on it


@dataclass(frozen=True)
class Scene:
    """A robot, its start and its first controls.

    Attributes:
        model: revolute.ModelHandle on the server.
        qpos: start, [nq].
        qvel: start, [nv].
        ctrl: first controls, [T, nu].
        ctrlrange: lower and upper bound of each control, [nu, 2], infinite where there is none.
        moved: index into qpos of the coordinate that is moved.
        label: that coordinate in words, with its unit.
        free_base: the first joint is a free one.
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
        """Return the loss (1) and the target at the end, given where the first controls lead.

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
        """Return two upright lines for the picture: where a free base ended at first, and its target.

        Args:
            path: qpos of the first rollout, [T + 1, nq].
            target: where the moved coordinate should end.

        Returns:
            Their ends, [2 lines, 2 ends, xyz]; None without a free base.
        """
        if not self.free_base:
            return None
        foot = np.append(path[-1, :2], 0.0)
        feet = np.stack([foot, foot])
        feet[1, self.moved] = target
        return np.stack([feet, feet + np.array([0, 0, 1.6 * path[:, 2].max()])], axis=1)


def laikago(model: Any, steps: int) -> Scene:
    """Return the standing Laikago: joint targets near the pose it stands in, with a small sway."""
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
    """Return a scene for a model of the user's.

    It starts in the file's first keyframe, else in its reference pose, with every joint inside its limits; a
    free base is set down on the ground. Position actuators hold that pose; other actuators start at zero.

    Args:
        model: revolute.ModelHandle.
        mj_model: the same model as MuJoCo compiled it.
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
    """Return the height of the lowest point of the colliding shapes that move with the robot, 0 without any.

    Spheres, capsules and meshes count as they are, other shapes with the corners of their bounding boxes.
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
    """Return qpos with each limited hinge and slide a little inside its range: the bound itself is a kink."""
    scalar = mj_model.jnt_type >= int(mujoco.mjtJoint.mjJNT_SLIDE)
    limited = np.flatnonzero(scalar & (mj_model.jnt_limited != 0))
    low, high = mj_model.jnt_range[limited].T
    gap = INSIDE * (high - low)
    inside = np.array(qpos)
    at = mj_model.jnt_qposadr[limited]
    inside[at] = np.clip(inside[at], low + gap, high - gap)
    return inside


def _holding_controls(mj_model: mujoco.MjModel, qpos: np.ndarray) -> np.ndarray:
    """Return the controls at which each position actuator asks for the joint's own position, else zero."""
    state = mujoco.MjData(mj_model)
    state.qpos[:] = qpos
    mujoco.mj_fwdPosition(mj_model, state)
    gain = mj_model.actuator_gainprm[:, 0]
    pull = mj_model.actuator_biasprm[:, 0] + mj_model.actuator_biasprm[:, 1] * state.actuator_length
    affine = mj_model.actuator_biastype == mujoco.mjtBias.mjBIAS_AFFINE
    return np.where(affine & (gain != 0), -pull / np.where(gain == 0, 1, gain), 0.0)


def _bounds(model: Any) -> np.ndarray:
    """Return the controls' bounds, infinite where the model has none."""
    return np.array(model.ctrlrange, dtype=float).reshape(model.nu, 2)

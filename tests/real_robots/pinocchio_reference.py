"""The same URDF in Pinocchio, in revolute's coordinates.

Pinocchio gives the velocity of a free base in the base's axes and its spatial acceleration; revolute, like
MuJoCo, gives the linear part in world axes and the derivative of that velocity. With R the base's rotation, v
and w its linear and angular velocity in its axes:

    velocities   v_pin = T v,   T = diag(R^T, 1)                                       (1)
    acceleration a = R (a_pin + w x v_pin) for the linear part, a_pin for the rest     (2)

A joint without limits has two positions there, cosine and sine.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import mujoco
import numpy as np
import pinocchio

from revolute_engine import Engine, Model
from testbed.robot_catalogue import Robot

from .mujoco_reference import Array
from .smooth_dynamics import random_states, unconstrained

SAMPLES = 5

FLOOR = 1e-3
"""Entries below this count as zeros with rounding errors."""


class UnreadableError(Exception):
    """Pinocchio refuses the file."""


@dataclass(frozen=True)
class PinocchioFigures:
    """Largest errors over random states, each relative to the largest entry of its matrix or vector.

    Attributes:
        acceleration: of the forward dynamics (ABA).
        inertia: of M(q) M(q)^-1 = 1 with Pinocchio's M and revolute's inverse, columns of the motors.
        by_qpos: of the derivative of the acceleration by the configuration.
        by_qvel: of the derivative by the velocity.
    """

    acceleration: float
    inertia: float
    by_qpos: float
    by_qvel: float


def compare(robot: Robot, seed: int = 3) -> PinocchioFigures:
    """Compare accelerations, inertia and derivatives; joint damping is left out, which Pinocchio ignores.

    A step of one second makes the acceleration the difference of two velocities, exactly: v+ = v + 1 a.
    """
    model = unconstrained(replace(robot, timestep=1.0))
    other = _Pinocchio(robot, model)
    start = random_states(model.mujoco_model, model.qpos0, SAMPLES, seed, spread=0.5, speed=1.0)
    ctrl = _torques(model, np.random.default_rng(seed))
    params = {"dof_damping": np.zeros(model.nv)}
    engine = Engine(threads=1)
    rollout = engine.rollout(model, start.qpos, start.qvel, ctrl[:, None, :], params=params)
    jacobian = engine.jacobian(model, start.qpos, start.qvel, ctrl, params=params)
    errors = []
    for index in range(SAMPLES):
        theirs = other.evaluate(start.qpos[index], start.qvel[index], ctrl[index])
        nv, one = model.nv, np.eye(model.nv)
        a = rollout.qvel[index, 1] - start.qvel[index]
        a_q, a_v = jacobian.A[index, nv:, :nv], jacobian.A[index, nv:, nv:] - one
        unit = theirs.inertia @ jacobian.B[index, nv:]
        errors.append(
            (
                _relative(a, theirs.acceleration),
                _relative(unit, one[:, model.arrays["act_dof"]]),
                _relative(a_q, theirs.by_qpos),
                _relative(a_v, theirs.by_qvel),
            )
        )
    return PinocchioFigures(*(float(value) for value in np.max(errors, axis=0)))


def _torques(model: Model, random: np.random.Generator) -> Array:
    """Return random torques that no limit cuts."""
    limited = model.arrays["act_forcelimited"].astype(bool)
    low, high = np.where(limited[:, None], np.clip(model.arrays["act_forcerange"], -1, 1), [-1.0, 1.0]).T
    return random.uniform(low, high, size=(SAMPLES, model.nu))


@dataclass(frozen=True)
class _Dynamics:
    """Pinocchio's answers in revolute's coordinates."""

    acceleration: Array
    inertia: Array
    by_qpos: Array
    by_qvel: Array


class _Pinocchio:
    """A URDF in Pinocchio with the order and the coordinates of revolute's model."""

    def __init__(self, robot: Robot, model: Model) -> None:
        self._free = robot.base == "free"
        arguments = [pinocchio.JointModelFreeFlyer()] if self._free else []
        try:
            self.model = pinocchio.buildModelFromUrdf(str(robot.file), *arguments)
        except ValueError as error:
            raise UnreadableError(str(error)) from None
        self.data = self.model.createData()
        assert self.model.nv == model.nv
        self._joints = [
            (self.model.joints[self.model.getJointId(name)], int(qpos), int(dof))
            for name, kind, qpos, dof in zip(
                model.joint_names,
                model.arrays["jnt_type"],
                model.arrays["jnt_qposadr"],
                model.arrays["jnt_dofadr"],
                strict=True,
            )
            if kind != int(mujoco.mjtJoint.mjJNT_FREE)
        ]
        # order[i] is the place in Pinocchio of revolute's velocity i
        self._order = np.arange(model.nv)
        for joint, _, dof in self._joints:
            self._order[dof] = joint.idx_v
        self._act_dof = model.arrays["act_dof"]
        self._act_gear = model.arrays["act_gear"]

    def evaluate(self, qpos: Array, qvel: Array, ctrl: Array) -> _Dynamics:
        """Return acceleration, inertia matrix and derivatives at a state."""
        q, rotation = self._positions(qpos)
        to_pin = np.eye(len(qvel))
        if self._free:
            to_pin[:3, :3] = rotation.T
        velocity = to_pin @ qvel
        tau = np.zeros_like(qvel)
        tau[self._act_dof] = self._act_gear * ctrl
        place = np.argsort(self._order)
        v, torque = velocity[place], tau[place]
        order = self._order
        acceleration = pinocchio.aba(self.model, self.data, q, v, torque).copy()[order]
        a_q, a_v, _ = pinocchio.computeABADerivatives(self.model, self.data, q, v, torque)
        a_q, a_v = a_q[np.ix_(order, order)], a_v[np.ix_(order, order)]
        mass = pinocchio.crba(self.model, self.data, q)
        mass = (np.triu(mass) + np.triu(mass, 1).T)[np.ix_(order, order)]
        if self._free:
            acceleration, a_q, a_v = _in_world(rotation, velocity, acceleration, a_q @ to_pin, a_v)
        return _Dynamics(acceleration, to_pin.T @ mass @ to_pin, a_q, a_v)

    def _positions(self, qpos: Array) -> tuple[Array, Array]:
        """Return Pinocchio's configuration, and the base's rotation."""
        q, rotation = pinocchio.neutral(self.model), np.eye(3)
        if self._free:
            w, x, y, z = qpos[3:7]
            q[:7] = *qpos[:3], x, y, z, w
            rotation = pinocchio.Quaternion(w, x, y, z).toRotationMatrix()
        for joint, address, _ in self._joints:
            angle = qpos[address]
            q[joint.idx_q : joint.idx_q + joint.nq] = (
                angle if joint.nq == 1 else (np.cos(angle), np.sin(angle))
            )
        return q, rotation


def _in_world(
    rotation: Array, velocity: Array, acceleration: Array, a_q: Array, a_v: Array
) -> tuple[Array, Array, Array]:
    """Turn the acceleration of a free base and its derivatives into revolute's, by (1) and (2).

    A turn r of the base (in its axes) changes v_pin by v_pin x r, and a by -R [a_pin + w x v_pin]x r.
    """
    linear, angular = velocity[:3], velocity[3:6]
    inner = acceleration[:3] + np.cross(angular, linear)
    by_turn, by_velocity = np.zeros_like(a_v), np.eye(len(velocity))
    by_turn[:3, 3:6] = _cross(linear)
    by_velocity[:3, :3] = rotation.T
    outward = np.eye(len(velocity))
    outward[:3, :3] = rotation
    # d (a_pin + w x v_pin) by v_pin and w
    coriolis = np.zeros_like(a_v)
    coriolis[:3, :3], coriolis[:3, 3:6] = _cross(angular), -_cross(linear)
    turned = np.zeros_like(a_v)
    turned[:3, 3:6] = -rotation @ _cross(inner)
    out = outward @ acceleration
    out[:3] = rotation @ inner
    by_qpos = outward @ (a_q + (a_v + coriolis) @ by_turn) + turned
    return out, by_qpos, outward @ (a_v + coriolis) @ by_velocity


def _cross(vector: Array) -> Array:
    """Return the matrix of the cross product from the left."""
    x, y, z = vector
    return np.array([[0, -z, y], [z, 0, -x], [-y, x, 0]])


def _relative(ours: Array, theirs: Array) -> float:
    """Return the largest difference, relative to the largest entry or to FLOOR where all should be zero."""
    if theirs.size == 0:
        return 0.0
    return float(np.abs(ours - theirs).max() / max(np.abs(theirs).max(), FLOOR))

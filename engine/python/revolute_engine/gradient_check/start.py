"""The default trajectory of a check (a start near rest, small random controls), and the scale of each input.

If a non-negative parameter is zero, the check uses a small positive value: at zero, its derivative has only
one side.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import mujoco
import numpy as np

from revolute.contract.arrays import Float64Array
from revolute.contract.controllers import PLAIN, STEP_INPUTS, Control
from revolute.contract.tangents import move, normalized

from .._cotangents import INPUTS
from .._model import Model
from .._mujoco import collected_warnings
from ..parameters import PARAMETERS, default_parameter, parameters_of
from ..step_inputs import input_shape

_SPEED = 0.1
"""Standard deviation of start velocities, rad/s or m/s."""

_ACCELERATION = 2.0
"""Standard deviation of the accelerations that random controls cause, rad/s^2 or m/s^2."""

_DISPLACEMENT = 0.02
"""Standard deviation of the targets of position actuators, rad or m."""

_RANGE_SHARE = 0.02
"""Share of a control's range that is left free at each end, because the derivative has two sides there."""

_GRAVITY = 9.81

_SMALL_ENTRY = 0.1
"""Least change of a gain or weight, relative to the largest one."""

ROUNDING = 4 * np.finfo(float).eps
"""Relative size of perturbations by rounding."""


@dataclass(frozen=True)
class Trajectory:
    """A trajectory to check, of one environment.

    Attributes:
        qpos: start positions [nq], quaternions of unit length.
        qvel: start velocities [nv].
        ctrl: controls [periods, nu].
        params: the given model parameters.
        control: how the rows of ctrl act; its arrays have no batch axis.
    """

    qpos: Float64Array
    qvel: Float64Array
    ctrl: Float64Array
    params: Mapping[str, Float64Array]
    control: Control = PLAIN

    @property
    def steps(self) -> int:
        """Number of steps."""
        return len(self.ctrl) * self.control.hold


def inertia_diagonal(model: Model, qpos: Float64Array) -> Float64Array:
    """Return the diagonal of the mass matrix [nv] in a configuration."""
    theirs, data = model.mujoco_model, mujoco.MjData(model.mujoco_model)
    data.qpos[:] = qpos
    mujoco.mj_fwdKinematics(theirs, data)
    mujoco.mj_makeM(theirs, data)
    # rows of the lower triangle, of which the diagonal is the last entry
    return np.maximum(data.M[theirs.M_rowadr + theirs.M_rownnz - 1], 1e-12)


def natural_speed(model: Model, qvel: Float64Array, start: Trajectory) -> float:
    """Return the natural size of velocities: the largest velocity, or that after a step without constraints.

    Constraints can stop a motion completely, but its rounding errors remain proportional to this size.

    Args:
        model: the model.
        qvel: velocities of the trajectory [time + 1, nv].
        start: the trajectory.
    """
    theirs, data = model.mujoco_model, mujoco.MjData(model.mujoco_model)
    data.qpos[:], data.qvel[:] = start.qpos, start.qvel[: model.nv]
    data.act[:] = start.qvel[model.nv :]
    if len(start.ctrl):
        data.ctrl[:] = start.ctrl[0]
    # mj_forward without contacts and constraints, which can take any time to solve
    with collected_warnings():
        mujoco.mj_fwdKinematics(theirs, data)
        mujoco.mj_makeM(theirs, data)
        mujoco.mj_factorM(theirs, data)
        mujoco.mj_transmission(theirs, data)
        mujoco.mj_fwdVelocity(theirs, data)
        mujoco.mj_fwdActuation(theirs, data)
        mujoco.mj_fwdAcceleration(theirs, data)
    accelerations = data.qacc_smooth[np.isfinite(data.qacc_smooth)]
    fastest = float(np.abs(accelerations).max(initial=0.0))
    return max(float(np.abs(qvel).max(initial=0.0)), model.timestep * fastest)


def nudged(
    model: Model,
    qpos: Float64Array,
    qvel: Float64Array,
    speed: float,
    random: np.random.Generator,
    size: float = ROUNDING,
) -> tuple[Float64Array, Float64Array]:
    """Perturb states, by default by rounding; the natural size of positions is 1.

    Args:
        model: the model.
        qpos: [batch, nq].
        qvel: [batch, nv].
        speed: the natural size of velocities.
        random: random number generator.
        size: relative size of the perturbations.
    """
    turns = random.normal(size=(len(qpos), model.nv))
    moves = random.normal(size=qvel.shape) * np.maximum(np.abs(qvel), speed)
    return move(model, qpos, size * turns), qvel + size * moves


def default_qpos(model: Model) -> Float64Array:
    """Return the first keyframe, or the reference configuration lifted out of the ground."""
    if model.keyframes:
        return normalized(model, np.array(next(iter(model.keyframes.values()))))
    return _lifted(model, normalized(model, np.array(model.qpos0)))


def _lifted(model: Model, qpos: Float64Array) -> Float64Array:
    """Raise free bodies that lie in the ground until they touch it."""
    theirs = model.mujoco_model
    data = mujoco.MjData(theirs)
    data.qpos[:] = qpos
    with collected_warnings():  # the warnings are about dynamics, which are not used here
        mujoco.mj_fwdKinematics(theirs, data)
        mujoco.mj_collision(theirs, data)
    depth: dict[int, float] = {}
    for contact in data.contact:
        roots = [int(theirs.body_rootid[theirs.geom_bodyid[geom]]) for geom in contact.geom if geom >= 0]
        if len(roots) == 2 and (roots[0] == 0) != (roots[1] == 0) and abs(contact.frame[2]) > 0.5:
            root = max(roots)
            depth[root] = max(depth.get(root, 0.0), -float(contact.dist))
    for root, by in depth.items():
        joint = int(theirs.body_jntadr[root])
        if joint >= 0 and theirs.jnt_type[joint] == int(mujoco.mjtJoint.mjJNT_FREE):
            qpos[int(theirs.jnt_qposadr[joint]) + 2] += by
    return qpos


def default_qvel(model: Model, random: np.random.Generator) -> Float64Array:
    """Return small random velocities and activations, plus those of the first keyframe if it exists."""
    qvel = _SPEED * random.normal(size=model.nqvel)
    theirs = model.mujoco_model
    return qvel + np.concatenate([theirs.key_qvel[0], theirs.key_act[0]]) if theirs.nkey else qvel


def default_ctrl(model: Model, qpos: Float64Array, steps: int, random: np.random.Generator) -> Float64Array:
    """Return small random controls, plus those that hold the start if actuators are servos."""
    low, high = model.ctrlrange.T
    margin = _RANGE_SHARE * np.where(np.isfinite(high - low), high - low, 0.0)
    ctrl = _holding(model, qpos) + ctrl_scale(model, qpos) * random.normal(size=(steps, model.nu))
    return np.clip(ctrl, low + margin, high - margin)


def _holding(model: Model, qpos: Float64Array) -> Float64Array:
    """Return the controls [nu] of the first keyframe if it has any, else those at which servos have no
    force."""
    theirs = model.mujoco_model
    if theirs.nkey and np.any(theirs.key_ctrl[0]):
        return np.array(theirs.key_ctrl[0])
    gain, bias = model.arrays["act_gain"], model.arrays["act_bias"]
    length = _lengths(model, qpos)
    servo = (bias[:, 1] != 0) & (gain[:, 0] != 0)
    return np.where(servo, -(bias[:, 0] + bias[:, 1] * length) / np.where(servo, gain[:, 0], 1.0), 0.0)


def _lengths(model: Model, qpos: Float64Array) -> Float64Array:
    """Return the lengths [nu] that actuators act on."""
    data = mujoco.MjData(model.mujoco_model)
    data.qpos[:] = qpos
    with collected_warnings():  # the warnings are about dynamics, which are not used here
        mujoco.mj_forward(model.mujoco_model, data)
    return np.array(data.actuator_length)


def ctrl_scale(model: Model, qpos: Float64Array) -> Float64Array:
    """Return the scale of controls [nu]: a small displacement of a servo, or a small acceleration."""
    gain, bias, gear = (model.arrays[name] for name in ("act_gain", "act_bias", "act_gear"))
    of_dofs, dofs = inertia_diagonal(model, qpos), model.arrays["act_dof"]
    # an actuator of anything but a hinge or slide moves several degrees of freedom
    inertia = np.where(dofs >= 0, of_dofs[dofs], of_dofs.mean())
    strength = np.abs(gear * gain[:, 0])
    push = _ACCELERATION * inertia / np.where(strength > 0, strength, 1.0)
    servo = (bias[:, 1] != 0) & (strength > 0)
    scale = np.where(servo, np.minimum(np.abs(gear) * _DISPLACEMENT, push), push)
    low, high = model.ctrlrange.T
    limited = np.isfinite(high - low) & (high > low)
    return np.where(limited, np.minimum(scale, 0.1 * (high - low)), scale)


def checked_parameters(model: Model) -> list[str]:
    """Return the parameters that can influence a model."""
    return [name for name in parameters_of(model) if PARAMETERS[name].matters(model)]


def checked_inputs(model: Model, control: Control = PLAIN) -> list[str]:
    """Return all inputs of the model, and the arrays of a controller."""
    inputs = [name for name in INPUTS if name != "ctrl" or model.nu]
    return [*inputs, *control.arrays, *checked_parameters(model)]


def positive_parameter(model: Model, name: str, start: Trajectory) -> Float64Array:
    """Return the value for a parameter's check: the given one, or the model's with zeros made positive."""
    if name in start.params:
        return start.params[name]
    value = default_parameter(model, name)
    if name == "restitution":
        return value if 0 < value < 1 else np.asarray(0.3 if value == 0 else 0.7)
    small = _small(model, name, start)
    return value if small is None else np.where(value == 0, small, value)


def _small(model: Model, name: str, start: Trajectory) -> Float64Array | None:
    """Return small positive values of a parameter that change a trajectory slightly; None if zero is kept."""
    if name not in ("dof_damping", "dof_armature", "dof_frictionloss", "jnt_stiffness"):
        return None
    inertia = inertia_diagonal(model, start.qpos)
    duration = max(start.steps, 1) * model.timestep
    scalar_dofs = np.ones(model.nv)
    for kind, first in zip(
        model.arrays["jnt_type"].tolist(), model.arrays["jnt_dofadr"].tolist(), strict=True
    ):
        if kind == 0:
            scalar_dofs[first : first + 6] = 0
    if name == "dof_damping":
        return 0.1 * inertia / duration
    if name == "dof_armature":
        return 0.01 * inertia
    if name == "dof_frictionloss":
        return 0.02 * inertia * scalar_dofs
    return 0.1 * (inertia * scalar_dofs)[model.arrays["jnt_dofadr"]]


def _input_scale(model: Model, name: str, start: Trajectory) -> Float64Array:
    """Return the scale of one row of an input of steps: small accelerations, and for poses 1."""
    if name == "qfrc_applied":
        return _ACCELERATION * inertia_diagonal(model, start.qpos)
    if name == "xfrc_applied":
        inertia = model.arrays["body_inertia"].max(axis=1)
        return _ACCELERATION * np.repeat(np.stack([model.body_mass, inertia], axis=1), 3, axis=1)
    return np.ones(input_shape(model, name))


def _control_scale(model: Model, name: str, start: Trajectory, value: Float64Array) -> Float64Array:
    """Return the scale of an array of a controller."""
    if name in STEP_INPUTS:
        return np.broadcast_to(_input_scale(model, name, start), value.shape)
    if name == "feedback.qpos":
        return np.ones((*value.shape[:-1], model.nv))
    if name == "feedback.qvel":
        return np.ones(value.shape)
    size = np.abs(value)
    largest = float(size.max(initial=0.0)) or 1.0
    return np.maximum(size, _SMALL_ENTRY * largest)


def scale(model: Model, name: str, start: Trajectory, value: Float64Array) -> Float64Array:
    """Return the change of each entry of an input for a relative step of 1, in tangent coordinates.

    The change is 0 for entries that must stay zero.
    """
    if name in ("qpos", "qvel"):
        return np.ones(model.nv if name == "qpos" else model.nqvel)
    if name == "ctrl":
        return np.broadcast_to(ctrl_scale(model, start.qpos), start.ctrl.shape)
    if name in start.control.arrays:
        return _control_scale(model, name, start, value)
    if name == "gravity":
        return np.full(3, max(float(np.linalg.norm(value)), _GRAVITY if not value.any() else 0.0))
    if name == "body_ipos":
        mass, inertia = model.body_mass, model.arrays["body_inertia"]
        gyration = np.sqrt(inertia.max(axis=1) / np.where(mass > 0, mass, 1.0))
        return np.repeat((gyration * (mass > 0))[:, None], 3, axis=1)
    if name == "restitution":
        return np.minimum(value, 1 - value)
    if name == "actuator_biasprm":
        return np.maximum(np.abs(value), np.abs(default_parameter(model, "actuator_gainprm")[:, :1]))
    return np.maximum(np.abs(value), PARAMETERS[name].change)

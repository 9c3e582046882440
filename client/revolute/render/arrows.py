"""Arrows on top of a motion: contact forces, and the gradient of a loss.

A contact force f is drawn from its point p to p + r f / (m g), with r the radius of the model and m g its
weight: a robot that stands on one foot has an arrow of length r.

The descent direction of a loss L is drawn at the joint of each actuator: from the anchor p of joint j to

    p + r a_j (-dL/dctrl) / max |dL/dctrl|          (1)

with a_j the joint's axis: a turn or a push in the direction of the arrow lowers the loss. The maximum is over
the actuators at this time; `revolute.plot.gradient_norms` compares times. At time 0, each free or sliding
base has an arrow along -dL/dqpos of its position as well, with length r for the largest of these.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import mujoco
import numpy as np
import numpy.typing as npt

from ..contract.errors import ArgumentError
from ..model import ModelHandle
from .motion import Motion, per_step

if TYPE_CHECKING:
    from ..measured import Contacts

FORCE_RGB = (0.95, 0.55, 0.1)
GRADIENT_RGB = (0.1, 0.6, 0.3)

_JOINT_TRANSMISSIONS = (int(mujoco.mjtTrn.mjTRN_JOINT), int(mujoco.mjtTrn.mjTRN_JOINTINPARENT))
_SCALAR_JOINTS = (int(mujoco.mjtJoint.mjJNT_SLIDE), int(mujoco.mjtJoint.mjJNT_HINGE))


@dataclass(frozen=True, eq=False)
class Arrows:
    """Arrows of one state.

    Attributes:
        ends: first and second end of each arrow in m, [arrows, 2, 3].
        rgb: their colour, three numbers from 0 to 1.
    """

    ends: npt.NDArray[np.float64]
    rgb: tuple[float, float, float]


def contact_arrows(motion: Motion, steps: Sequence[int], radius: float) -> list[Arrows]:
    """Return the contact forces at some states, each as it acts on a body that it can move.

    Args:
        motion: the motion.
        steps: numbers of the states.
        radius: length of the model's weight in m.
    """
    found = motion.contacts(sorted(set(steps)))
    ends = force_ends(motion.handle, motion.model, found, radius)
    mine = found.environment == motion.env
    return [Arrows(ends[mine & (found.time == step)], FORCE_RGB) for step in steps]


def force_ends(
    handle: ModelHandle, model: mujoco.MjModel, found: Contacts, radius: float
) -> npt.NDArray[np.float64]:
    """Return the ends of the arrows of contacts, [n, 2, 3]."""
    # the rows of a frame are its axes; the force acts on the second shape
    force = np.einsum("nij,ni->nj", found.frame, found.force[:, :3])
    places = {name: geom for geom, name in enumerate(handle.geom_names)}
    second = [model.geom_bodyid[places[name]] for _, name in found.geoms]
    force[~_pushed(model)[second]] *= -1
    return np.stack([found.position, found.position + radius * force / _weight(model)], axis=1)


def gradient_arrows(motion: Motion, gradient: Mapping[str, Any], step: int, radius: float) -> Arrows:
    """Return the directions that lower a loss, equation (1), at a state.

    Args:
        motion: the motion.
        gradient: d loss / d ctrl [T, nu] by the name "ctrl", d loss / d qpos of the start [nq] by "qpos".
        step: number of the state; the last state has no control, and no arrows.
        radius: length of the largest arrow in m.
    """
    data = mujoco.MjData(motion.model)
    motion.poses[step].put_into(data)
    mujoco.mj_kinematics(motion.model, data)
    ends = [*_control_arrows(motion, data, gradient.get("ctrl"), step, radius)]
    if step == 0:
        ends += _start_arrows(motion, data, gradient.get("qpos"), radius)
    return Arrows(np.array(ends).reshape(len(ends), 2, 3), GRADIENT_RGB)


def checked_gradient(motion: Motion, gradient: Any) -> dict[str, npt.NDArray[np.float64]]:
    """Return the parts of a gradient that have arrows, of the motion's environment.

    Args:
        motion: the motion.
        gradient: what `Trajectory.backward` returned, with "ctrl" or "qpos" among its names.

    Raises:
        ArgumentError: the gradient has neither, or another shape.
    """
    shapes = {"ctrl": (len(motion.ctrl), motion.model.nu), "qpos": (motion.model.nq,)}
    found = {}
    for name, shape in shapes.items():
        if not isinstance(gradient, Mapping) or name not in gradient:
            continue
        array = np.asarray(gradient[name], dtype=np.float64)
        array = array[motion.env] if array.ndim > len(shape) else array
        if name == "ctrl":
            # no further than the last finite state
            array = per_step(array, motion.length)[: shape[0]]
        if array.shape != shape:
            raise ArgumentError.expected(f"gradient.{name}", f"shape {list(shape)}", list(array.shape))
        found[name] = np.nan_to_num(array)
    if not found:
        raise ArgumentError.expected(
            "gradient", "a gradient by ctrl or qpos", type(gradient).__name__, advice='wrt=("qpos", "ctrl")'
        )
    return found


def _control_arrows(
    motion: Motion, data: mujoco.MjData, gradient: Any, step: int, radius: float
) -> list[tuple[Any, Any]]:
    """Return one arrow per actuator of a hinge or slide."""
    if gradient is None or step >= len(gradient):
        return []
    model = motion.model
    largest = np.abs(gradient[step]).max(initial=0.0) or 1.0
    ends = []
    for actuator in range(model.nu):
        joint = model.actuator_trnid[actuator, 0]
        if model.actuator_trntype[actuator] not in _JOINT_TRANSMISSIONS:
            continue
        if model.jnt_type[joint] not in _SCALAR_JOINTS:
            continue
        sign = np.sign(model.actuator_gear[actuator, 0])
        length = -sign * radius * gradient[step, actuator] / largest
        ends.append((data.xanchor[joint], data.xanchor[joint] + length * data.xaxis[joint]))
    return ends


def _start_arrows(motion: Motion, data: mujoco.MjData, gradient: Any, radius: float) -> list[tuple[Any, Any]]:
    """Return one arrow per free joint, and per slide that hangs on the world."""
    if gradient is None:
        return []
    model, pushes = motion.model, []
    for joint in range(model.njnt):
        at, body = model.jnt_qposadr[joint], model.jnt_bodyid[joint]
        if model.jnt_type[joint] == mujoco.mjtJoint.mjJNT_FREE:
            pushes.append((data.xpos[body], -gradient[at : at + 3]))
        elif model.jnt_type[joint] == mujoco.mjtJoint.mjJNT_SLIDE and model.body_parentid[body] == 0:
            pushes.append((data.xpos[body], -gradient[at] * data.xaxis[joint]))
    largest = max((float(np.linalg.norm(push)) for _, push in pushes), default=0.0) or 1.0
    return [(place, place + radius * push / largest) for place, push in pushes]


def _weight(model: mujoco.MjModel) -> float:
    """Return the weight of everything that forces move in N; without gravity, that on Earth."""
    mass = float(model.body_mass[_pushed(model)].sum())
    return (mass or 1.0) * (float(np.linalg.norm(model.opt.gravity)) or 9.81)


def _pushed(model: mujoco.MjModel) -> npt.NDArray[np.bool_]:
    """Return of each body whether forces move it: it is welded to neither the world nor a mocap body."""
    return (model.body_weldid != 0) & (model.body_mocapid[model.body_weldid] < 0)

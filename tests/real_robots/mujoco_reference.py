"""The same robot compiled by MuJoCo without revolute's loader, and trajectories of it.

An MJCF file is given to MuJoCo as it is. Of a URDF the shapes are taken away, which the smooth dynamics do
not need; its joints get motors, and its base a free joint where the catalogue says so. Links without mass or
inertia get the least that MuJoCo takes, which is below rounding for the robot that carries them.
"""

from __future__ import annotations

import re
from copy import copy
from dataclasses import dataclass

import mujoco
import numpy as np
import numpy.typing as npt

from revolute_engine._mujoco import collected_warnings
from testbed.robot_catalogue import Robot

Array = npt.NDArray[np.float64]

INTEGRATORS = {
    "euler": mujoco.mjtIntegrator.mjINT_EULER,
    "implicitfast": mujoco.mjtIntegrator.mjINT_IMPLICITFAST,
}

LEAST_INERTIA = 1e-14
"""Of a link without mass (kg) or inertia (kg m²); MuJoCo refuses 1e-15."""

_MOTORED = (mujoco.mjtJoint.mjJNT_HINGE, mujoco.mjtJoint.mjJNT_SLIDE)


def reference_model(robot: Robot, loaded: mujoco.MjModel) -> tuple[mujoco.MjModel, bool]:
    """Compile the robot with MuJoCo and turn constraints off.

    Args:
        robot: the robot.
        loaded: what revolute's loader compiled; taken where MuJoCo refuses the file (moments of inertia that
            no body has).

    Returns:
        The model, and whether MuJoCo compiled the file itself.
    """
    assert robot.file is not None
    independent = True
    try:
        with collected_warnings():  # instead of in a file MUJOCO_LOG.TXT
            model = _from_urdf(robot) if robot.is_urdf else mujoco.MjModel.from_xml_path(str(robot.file))
    except ValueError:
        model, independent = copy(loaded), False
    if robot.timestep is not None:
        model.opt.timestep = robot.timestep
    off = (mujoco.mjtDisableBit.mjDSBL_CONSTRAINT, mujoco.mjtDisableBit.mjDSBL_CONTACT)
    for bit in (*off, mujoco.mjtDisableBit.mjDSBL_AUTORESET):
        model.opt.disableflags |= int(bit)
    return model, independent


def _from_urdf(robot: Robot) -> mujoco.MjModel:
    """Compile a URDF without its shapes."""
    assert robot.file is not None
    text = robot.file.read_bytes().rstrip(b"\0").decode("utf-8-sig")
    text = re.sub(r"<\?xml.*?\?>|<!--.*?-->", "", text, flags=re.DOTALL)
    text = re.sub(r"<(visual|collision)\b[^>/]*>.*?</\1\s*>", "", text, flags=re.DOTALL)
    mimics = set(
        re.findall(r"<joint\b[^>]*\bname=\"([^\"]+)\"(?:(?!</joint>).)*<mimic\b", text, flags=re.DOTALL)
    )
    keep = '<mujoco><compiler fusestatic="false"/></mujoco>'
    text = re.sub(r"(<robot\b[^>]*>)", lambda found: found.group(1) + keep, text, count=1)
    spec = mujoco.MjSpec.from_string(text)
    if robot.base == "free":
        spec.worldbody.first_body().add_freejoint()
    for joint in spec.joints:
        if joint.type in _MOTORED and joint.name not in mimics:
            motor = spec.add_actuator(name=joint.name, target=joint.name, trntype=mujoco.mjtTrn.mjTRN_JOINT)
            motor.set_to_motor()
    try:
        return spec.compile()
    except ValueError as error:
        if "mass and inertia of moving bodies" not in str(error):
            raise
        spec.compiler.boundmass = spec.compiler.boundinertia = LEAST_INERTIA
        return spec.compile()


@dataclass(frozen=True)
class States:
    """Positions [n, nq] and velocities [n, nv]."""

    qpos: Array
    qvel: Array


def step(model: mujoco.MjModel, start: States, ctrl: Array, integrator: str) -> States:
    """Make one step from each state; `ctrl` is [n, nu]."""
    model.opt.integrator = int(INTEGRATORS[integrator])
    data = mujoco.MjData(model)
    qpos, qvel = np.empty_like(start.qpos), np.empty_like(start.qvel)
    for index in range(len(ctrl)):
        mujoco.mj_resetData(model, data)
        data.qpos[:], data.qvel[:], data.ctrl[:] = start.qpos[index], start.qvel[index], ctrl[index]
        mujoco.mj_step(model, data)
        qpos[index], qvel[index] = data.qpos, data.qvel
    return States(qpos, qvel)


def trajectory(model: mujoco.MjModel, qpos: Array, qvel: Array, ctrl: Array, integrator: str) -> States:
    """Simulate from one state with `ctrl` [time, nu]; the start state is the first of the result."""
    model.opt.integrator = int(INTEGRATORS[integrator])
    data = mujoco.MjData(model)
    data.qpos[:], data.qvel[:] = qpos, qvel
    out = States(np.empty((len(ctrl) + 1, model.nq)), np.empty((len(ctrl) + 1, model.nv)))
    out.qpos[0], out.qvel[0] = qpos, qvel
    for index, control in enumerate(ctrl):
        data.ctrl[:] = control
        mujoco.mj_step(model, data)
        out.qpos[index + 1], out.qvel[index + 1] = data.qpos, data.qvel
    return out


def is_lone_free_body(model: mujoco.MjModel) -> bool:
    """Whether some tree is a free body without further joints.

    MuJoCo (since 3.11) gives such bodies gyroscopic derivatives under implicitfast, which the integrator
    leaves out everywhere else; revolute leaves them out for these bodies too.
    """
    roots = model.body_rootid[model.jnt_bodyid]
    free = model.jnt_type == int(mujoco.mjtJoint.mjJNT_FREE)
    return any(np.count_nonzero(roots == root) == 1 for root in roots[free])

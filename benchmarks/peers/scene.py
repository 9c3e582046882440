"""The standing Laikago as files that each peer can read, made from the built-in model.

laikago.xml         MJCF in one file: floor, robot, position actuators
laikago_free.xml    the same without contacts, limits and dry friction
laikago_fused.xml   toes' masses in the lower legs: brax refuses fixed bodies that have mass
laikago.urdf        links, joints, spheres as toes; the torques are the reader's task
start.npy           [19] MuJoCo's order: position, quaternion w x y z, hip, upper, lower of FL, FR, RL, RR
controls.npy        [steps, 12] joint targets; torque = 220 (target - angle) - 4 velocity
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import mujoco
import numpy as np

from ..laikago import MODEL_FILE, START, TIMESTEP, controls

STIFFNESS, DAMPING = 220.0, 4.0
_SWITCHES = mujoco.mjtDisableBit


def write_scene(folder: Path, steps: int) -> None:
    """Write all files into a folder."""
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "laikago.xml").write_text(_spec().to_xml(), "utf-8")
    free = _spec()
    free.option.disableflags |= (
        _SWITCHES.mjDSBL_CONTACT | _SWITCHES.mjDSBL_LIMIT | _SWITCHES.mjDSBL_FRICTIONLOSS
    )
    (folder / "laikago_free.xml").write_text(free.to_xml(), "utf-8")
    (folder / "laikago_fused.xml").write_text(_fused().to_xml(), "utf-8")
    (folder / "laikago.urdf").write_text(_urdf(), "utf-8")
    np.save(folder / "start.npy", START)
    np.save(folder / "controls.npy", controls(steps))


def _spec() -> mujoco.MjSpec:
    """Return the robot without keyframes and without the shapes that touch nothing."""
    spec = mujoco.MjSpec.from_file(str(MODEL_FILE))
    spec.option.timestep = TIMESTEP
    for extra in [*spec.keys, *spec.lights, *(geom for geom in spec.geoms if geom.classname.name == "link")]:
        spec.delete(extra)
    spec.compile()
    return spec


def _fused() -> mujoco.MjSpec:
    """Return the robot with each toe's mass and shape moved to its lower leg."""
    spec = _spec()
    fused = spec.copy()
    fused.compiler.fusestatic = True
    masses = fused.compile()
    for toe in [body for body in spec.bodies if body.name.startswith("toe")]:
        leg = toe.parent
        body = masses.body(leg.name)
        leg.mass, leg.ipos, leg.iquat, leg.inertia = body.mass[0], body.ipos, body.iquat, body.inertia
        leg.add_geom(
            type=mujoco.mjtGeom.mjGEOM_SPHERE, size=[0.03, 0, 0], pos=toe.pos, contype=1, conaffinity=0,
            friction=[0.8, 0.005, 0.0001], name=f"{toe.name}_sphere",
        )  # fmt: skip
        spec.delete(toe)
    spec.compile()
    return spec


def _urdf() -> str:
    """Return URDF of the compiled robot: every body a link, its joint to the parent revolute or fixed."""
    model = _spec().compile()
    parts = ['<robot name="laikago">']
    for b in range(1, model.nbody):
        parts.append(_urdf_link(model.body(b)))
        if model.body(b).parentid[0] > 0:
            parts.append(_urdf_joint(model, b))
    return "\n".join([*parts, "</robot>"])


def _urdf_link(body: Any) -> str:
    """Return a body's mass, and its toe."""
    axes = np.empty(9)
    mujoco.mju_quat2Mat(axes, body.iquat)
    inertia = axes.reshape(3, 3) @ np.diag(body.inertia) @ axes.reshape(3, 3).T
    names = ("ixx", "ixy", "ixz", "iyy", "iyz", "izz")
    values = zip(names, inertia[np.triu_indices(3)], strict=True)
    entries = " ".join(f'{name}="{value:.17g}"' for name, value in values)
    toe = '<collision><geometry><sphere radius="0.03"/></geometry></collision>'
    return (
        f'<link name="{body.name}"><inertial><origin xyz="{_text(body.ipos)}"/>'
        f'<mass value="{body.mass[0]:.17g}"/><inertia {entries}/></inertial>'
        f"{toe if body.name.startswith('toe') else ''}</link>"
    )


def _urdf_joint(model: mujoco.MjModel, b: int) -> str:
    """Return the joint between a body and its parent."""
    body, parent = model.body(b), model.body(int(model.body_parentid[b]))
    name, kind, more = f"{body.name}_joint", "fixed", ""
    if model.body_jntnum[b]:
        joint = model.joint(int(model.body_jntadr[b]))
        name, kind = joint.name, "revolute"
        limit = '<limit lower="-6.28" upper="6.28" effort="1000" velocity="1000"/>'
        more = f'<axis xyz="{_text(joint.axis)}"/>{limit}'
    return (
        f'<joint name="{name}" type="{kind}">{more}<parent link="{parent.name}"/><child link="{body.name}"/>'
        f'<origin xyz="{_text(body.pos)}" rpy="{_text(_roll_pitch_yaw(body.quat))}"/></joint>'
    )


def _text(values: np.ndarray) -> str:
    return " ".join(f"{value:.17g}" for value in values)


def _roll_pitch_yaw(quat: np.ndarray) -> np.ndarray:
    """Return URDF's angles of R = Rz(yaw) Ry(pitch) Rx(roll)."""
    flat = np.empty(9)
    mujoco.mju_quat2Mat(flat, quat)
    R = flat.reshape(3, 3)  # noqa: N806
    return np.array([np.arctan2(R[2, 1], R[2, 2]), np.arcsin(-R[2, 0]), np.arctan2(R[1, 0], R[0, 0])])

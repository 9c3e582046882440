"""A loaded model: sizes, names and arrays, and the compiled engine's copy."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import mujoco
import numpy as np
import numpy.typing as npt

from . import native as _native
from ._names import (
    JOINT_TYPES,
    actuator_names,
    body_names,
    geom_names,
    joint_names,
    sensor_kinds,
    sensor_names,
    site_names,
)
from ._probe import Probe

_FREE_SUFFIXES = ("x", "y", "z", "rx", "ry", "rz")


@dataclass(frozen=True, eq=False)
class Model:
    """A model that the engine can simulate; made by `load_model`.

    Attributes:
        id: content hash (sha256, hexadecimal) of text, assets and options.
        name: the model's name in messages and lists.
        options: all options of `load_model`, defaults included.
        notes: differences between the file and the simulation; one sentence each.
        warnings: the notes that `load_model` issues as Python warnings.
        keyframes: named configurations of the file, qpos [nq] by name.
        source_text: the text as given.
        assets: contents of the mesh files, by their names in the text.
        arrays: the compiled arrays, with MuJoCo's names and conventions; read-only.
        native: the compiled engine's copy.
        mujoco_model: the compiled MuJoCo model, from which the arrays were made.
    """

    id: str
    name: str
    options: Mapping[str, Any]
    notes: list[str]
    warnings: list[str]
    keyframes: Mapping[str, npt.NDArray[np.float64]]
    source_text: str
    assets: Mapping[str, bytes]
    arrays: Mapping[str, Any]
    native: _native.Model
    mujoco_model: mujoco.MjModel

    @cached_property
    def nq(self) -> int:
        """Length of qpos."""
        return int(self.arrays["nq"])

    @cached_property
    def nv(self) -> int:
        """Number of degrees of freedom."""
        return int(self.arrays["nv"])

    @cached_property
    def na(self) -> int:
        """Number of activations: states of actuators."""
        return int(self.arrays["na"])

    @cached_property
    def nqvel(self) -> int:
        """Length of the arrays called qvel: nv velocities, and behind them na activations."""
        return self.nv + self.na

    @cached_property
    def nu(self) -> int:
        """Length of ctrl: the number of actuators."""
        return int(self.arrays["nu"])

    @cached_property
    def sensor_probes(self) -> dict[int, Probe]:
        """The compiled engine's probes of those sensors that were asked for, by the sensor's number."""
        return {}

    @property
    def nbody(self) -> int:
        """Number of bodies, the world included."""
        return int(self.arrays["nbody"])

    @property
    def njnt(self) -> int:
        """Number of joints."""
        return int(self.arrays["njnt"])

    @property
    def ngeom(self) -> int:
        """Number of shapes."""
        return int(self.arrays["ngeom"])

    @property
    def nsite(self) -> int:
        """Number of sites."""
        return int(self.arrays["nsite"])

    @cached_property
    def nmocap(self) -> int:
        """Number of mocap bodies."""
        return int(np.count_nonzero(self.arrays["body_mocapid"] >= 0))

    @cached_property
    def mocap_bodies(self) -> list[int]:
        """Which bodies the rows of mocap_pos and mocap_quat place."""
        ids = self.arrays["body_mocapid"]
        return sorted(np.flatnonzero(ids >= 0).tolist(), key=lambda body: int(ids[body]))

    @property
    def mocap_pos(self) -> npt.NDArray[np.float64]:
        """Positions of the mocap bodies in the file [nmocap, 3]."""
        return self.arrays["body_pos"][self.mocap_bodies]

    @property
    def mocap_quat(self) -> npt.NDArray[np.float64]:
        """Their quaternions (w x y z) [nmocap, 4]."""
        return self.arrays["body_quat"][self.mocap_bodies]

    @property
    def timestep(self) -> float:
        """Length of one step in seconds."""
        return float(self.arrays["timestep"])

    @cached_property
    def quaternions(self) -> list[tuple[int, int]]:
        """Each joint with a quaternion, and the first index of the quaternion in qpos."""
        kinds, addresses = self.arrays["jnt_type"].tolist(), self.arrays["jnt_qposadr"].tolist()
        offset = {0: 3, 1: 0}
        return [
            (joint, addresses[joint] + offset[kind]) for joint, kind in enumerate(kinds) if kind in offset
        ]

    @property
    def qpos0(self) -> npt.NDArray[np.float64]:
        """Reference configuration [nq]: joint positions of the pose in the file."""
        return self.arrays["qpos0"]

    @property
    def qvel0(self) -> npt.NDArray[np.float64]:
        """Velocities at rest, and no activation [nv + na]: zeros."""
        return np.zeros(self.nqvel)

    @property
    def body_mass(self) -> npt.NDArray[np.float64]:
        """Masses in kg [nbody]."""
        return self.arrays["body_mass"]

    @property
    def geom_friction(self) -> npt.NDArray[np.float64]:
        """Sliding, torsional and rolling friction coefficients [ngeom, 3]."""
        return self.arrays["geom_friction"]

    @property
    def ctrlrange(self) -> npt.NDArray[np.float64]:
        """Range to which each control is clamped [nu, 2]; infinite for a control without a range."""
        limited = self.arrays["act_ctrllimited"].astype(bool)
        return np.where(limited[:, None], self.arrays["act_ctrlrange"], [-np.inf, np.inf])

    @cached_property
    def body_names(self) -> list[str]:
        """Names of the bodies; the first is the world. An unnamed body is `body_<number>`."""
        return body_names(self.mujoco_model)

    @cached_property
    def joint_names(self) -> list[str]:
        """Names of the joints, in the order of qpos. An unnamed joint is `<body>/<number on the body>`."""
        return joint_names(self.mujoco_model)

    @cached_property
    def geom_names(self) -> list[str]:
        """Names of the shapes. An unnamed shape is `<body>/<number among the body's shapes>`."""
        return geom_names(self.mujoco_model)

    @property
    def geom_bodyid(self) -> list[int]:
        """Body of each shape."""
        bodies: list[int] = self.mujoco_model.geom_bodyid.tolist()
        return bodies

    @cached_property
    def site_names(self) -> list[str]:
        """Names of the sites. An unnamed site is `<body>/<number among the body's sites>`."""
        return site_names(self.mujoco_model)

    @cached_property
    def sensor_names(self) -> list[str]:
        """Names of the sensors, in the order of the file. An unnamed sensor is `sensor_<number>`."""
        return sensor_names(self.mujoco_model)

    @property
    def sensor_types(self) -> list[str]:
        """Types of the sensors, MuJoCo's mjtSensor in lower case."""
        kinds = sensor_kinds()
        return [kinds.get(kind, "unknown") for kind in self.mujoco_model.sensor_type.tolist()]

    @property
    def sensor_dims(self) -> list[int]:
        """How many numbers each sensor gives."""
        dims: list[int] = self.mujoco_model.sensor_dim.tolist()
        return dims

    @property
    def jnt_range(self) -> npt.NDArray[np.float64]:
        """Range of each joint [njnt, 2]; infinite for a joint without limits."""
        limited = self.arrays["jnt_limited"].astype(bool)
        return np.where(limited[:, None], self.arrays["jnt_range"], [-np.inf, np.inf])

    @cached_property
    def actuator_names(self) -> list[str]:
        """Names of the actuators, in the order of ctrl. An unnamed actuator has the name of its joint."""
        return actuator_names(self.mujoco_model)

    @property
    def dof_names(self) -> list[str]:
        """Names of the entries of qvel: the joint's name, plus `.x .y .z .rx .ry .rz` if it has several."""
        suffixes = {0: _FREE_SUFFIXES, 1: _FREE_SUFFIXES[3:]}
        names = []
        for name, kind in zip(self.joint_names, self.arrays["jnt_type"].tolist(), strict=True):
            names += [f"{name}.{suffix}" for suffix in suffixes[kind]] if kind in suffixes else [name]
        return names

    @property
    def joint_types(self) -> list[str]:
        """Types of the joints: free, ball, slide or hinge."""
        return [JOINT_TYPES[kind] for kind in self.arrays["jnt_type"]]

    def info(self) -> dict[str, Any]:
        """Describe the model in plain JSON types; infinite control ranges are the strings -inf and inf."""
        plain = {name: getattr(self, name) for name in _INFO_PLAIN}
        arrays = {name: getattr(self, name).tolist() for name in ("qpos0", "body_mass", "geom_friction")}
        ranges = [[_json_number(value) for value in row] for row in self.ctrlrange.tolist()]
        keyframes = {name: qpos.tolist() for name, qpos in self.keyframes.items()}
        return {**plain, **arrays, "ctrlrange": ranges, "keyframes": keyframes, "options": dict(self.options)}

    def __repr__(self) -> str:
        return f"Model('{self.name}', nq={self.nq}, nv={self.nv}, nu={self.nu}, timestep={self.timestep:g})"


_INFO_PLAIN = (
    *("id", "name", "nq", "nv", "nu", "nbody", "njnt", "ngeom", "nsite", "timestep"),
    *("body_names", "joint_names", "joint_types", "dof_names", "geom_names", "site_names"),
    *("actuator_names", "sensor_names", "notes"),
)


def _json_number(value: float) -> float | str:
    return value if np.isfinite(value) else str(value)

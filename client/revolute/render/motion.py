"""What pictures and the viewer show: the states of one environment, and the compiled model."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Protocol
from weakref import WeakKeyDictionary

import mujoco
import numpy as np
import numpy.typing as npt

from ..contract.controllers import MOCAP_INPUTS
from ..contract.errors import ArgumentError, DivergedError
from ..model import ModelHandle
from .poses import Poses

if TYPE_CHECKING:
    from ..measured import Contacts

_compiled: WeakKeyDictionary[ModelHandle, mujoco.MjModel] = WeakKeyDictionary()


class Recorded(Protocol):
    """A trajectory."""

    @property
    def model(self) -> ModelHandle:
        """The model."""

    @property
    def qpos(self) -> npt.NDArray[np.float64]:
        """Configurations, [batch, T + 1, nq] or [T + 1, nq]."""

    @property
    def qvel(self) -> npt.NDArray[np.float64]:
        """Velocities, [batch, T + 1, nv] or [T + 1, nv]."""

    @property
    def ctrl(self) -> npt.NDArray[np.float64]:
        """Controls, [batch, T / hold, nu] or [T / hold, nu]."""

    @property
    def inputs(self) -> Mapping[str, npt.NDArray[np.float64]]:
        """Other inputs that were given, with rows like `ctrl`; axes of length 1, and left out, repeat."""

    def contacts(self, times: Sequence[int]) -> Contacts:
        """Return the contacts of all environments at some states."""


@dataclass(frozen=True, eq=False)
class Motion:
    """States of one environment.

    Attributes:
        handle: the model.
        model: the model, compiled by MuJoCo.
        poses: configurations and poses of mocap bodies, T + 1 of them.
        qvel: velocities, [T + 1, nv].
        ctrl: controls, [T, nu].
        length: steps of the whole trajectory; more than T if the environment diverged.
        env: number of the environment.
        contacts: returns the contacts of all environments at some states.
    """

    handle: ModelHandle
    model: mujoco.MjModel
    poses: Poses
    qvel: npt.NDArray[np.float64]
    ctrl: npt.NDArray[np.float64]
    length: int
    env: int
    contacts: Callable[[Sequence[int]], Contacts]

    @property
    def qpos(self) -> npt.NDArray[np.float64]:
        """Configurations, [T + 1, nq]."""
        return self.poses.qpos

    @property
    def timestep(self) -> float:
        """Time between two states in s."""
        return self.handle.timestep

    @property
    def steps(self) -> int:
        """Number of the last state."""
        return len(self.poses) - 1

    @property
    def duration(self) -> float:
        """Time of the last state in s."""
        return self.steps * self.timestep

    def step_at(self, time: float) -> int:
        """Return the number of the state at a time in s."""
        return min(self.steps, max(0, round(time / self.timestep)))


def motion_of(trajectory: Recorded, env: int = 0) -> Motion:
    """Return the states of one environment, up to its last finite one.

    Args:
        trajectory: the trajectory.
        env: number of the environment.

    Raises:
        ArgumentError: there is no such environment.
        DivergedError: its first state is not finite.
    """
    qpos, qvel, ctrl = (np.asarray(array) for array in (trajectory.qpos, trajectory.qvel, trajectory.ctrl))
    if qpos.ndim == 2:
        qpos, qvel, ctrl = qpos[None], qvel[None], ctrl[None]
    if not isinstance(env, (int, np.integer)) or not 0 <= env < len(qpos):
        raise ArgumentError.expected("env", f"a number from 0 to {len(qpos) - 1}", repr(env))
    finite = np.isfinite(qpos[env]).all(axis=1) & np.isfinite(qvel[env]).all(axis=1)
    count = len(finite) if finite.all() else int(np.argmin(finite))
    if not count:
        raise DivergedError("trajectory: expected a finite state to show, got none")
    steps = qpos.shape[1] - 1
    model = compiled_model(trajectory.model)
    mocap = {name: _mocap_rows(trajectory, name, env, steps) for name in MOCAP_INPUTS}
    return Motion(
        handle=trajectory.model,
        model=model,
        poses=Poses.of(model, qpos[env], **mocap)[:count],
        qvel=qvel[env, :count],
        ctrl=per_step(ctrl[env], steps)[: count - 1],
        length=steps,
        env=int(env),
        contacts=lambda times: trajectory.contacts(times),
    )


def _mocap_rows(trajectory: Recorded, name: str, env: int, steps: int) -> npt.NDArray[np.float64] | None:
    """Return where mocap bodies of an environment are in each state, [T + 1, nmocap, …]; None for the file's.

    A state has the pose of the step that starts there, the last state that of the last step. Without
    steps, a pose that is given for all of them still counts.
    """
    rows = trajectory.inputs.get(name)
    if rows is None:
        return None
    if rows.ndim == 4:
        rows = rows[env if len(rows) > 1 else 0]
    if not steps:
        return rows if rows.ndim == 2 else None
    rows = per_step(rows if rows.ndim == 3 else rows[None], steps)
    return np.concatenate([rows, rows[-1:]])


def per_step(rows: npt.NDArray[np.float64], steps: int) -> npt.NDArray[np.float64]:
    """Return an array of held controls, or other inputs, with one row per step."""
    return np.repeat(rows, steps // len(rows), axis=0) if len(rows) else rows


def compiled_model(model: ModelHandle) -> mujoco.MjModel:
    """Return the model as MuJoCo compiles it, with the shapes and places that the engine simulates.

    Raises:
        UnavailableError: the model needs the engine's compiler, which is not installed.
    """
    if model not in _compiled:
        _compiled[model] = model.mujoco()
    return _compiled[model]

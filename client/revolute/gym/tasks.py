"""Tasks by name: those of the built-in models, and Gymnasium's own on its files with MuJoCo's contact."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import gymnasium
import numpy as np

from ..contract.arrays import Float64Array
from ..contract.loss import Loss, Term
from ..contract.task import Start, Task, Transition
from ..model import ModelHandle

_GYMNASIUM_FILES = Path(gymnasium.__file__).parent / "envs" / "mujoco" / "assets"


@dataclass(frozen=True, eq=False)
class NamedTask:
    """A model and a task.

    Attributes:
        source: built-in model, or a path.
        task: the task, given the model's number of coordinates.
        options: options of `Simulator.load_model`.
    """

    source: str
    task: Task
    options: Mapping[str, Any] = field(default_factory=dict)


def noise(scale: float, *, normal_velocity: bool) -> Start:
    """Start near the default state, as Gymnasium does: every number of qpos is displaced uniformly.

    Args:
        scale: largest displacement of a coordinate.
        normal_velocity: whether velocities are normal with this deviation; otherwise uniform.
    """

    def start(random: np.random.Generator, model: ModelHandle) -> tuple[Float64Array, Float64Array]:
        qpos = model.qpos0 + random.uniform(-scale, scale, model.nq)
        if normal_velocity:
            return qpos, model.qvel0 + scale * random.standard_normal(len(model.qvel0))
        return qpos, model.qvel0 + random.uniform(-scale, scale, len(model.qvel0))

    return start


def _without(count: int, limit: float = np.inf) -> Callable[[Float64Array, Float64Array], Float64Array]:
    """Observe the state without the first coordinates, with velocities clipped."""

    def observe(qpos: Float64Array, qvel: Float64Array) -> Float64Array:
        return np.concatenate([qpos[:, count:], np.clip(qvel, -limit, limit)], axis=1)

    return observe


def _forward(transition: Transition) -> Float64Array:
    """Return the mean velocity along x."""
    return (transition.qpos[:, 0] - transition.qpos_before[:, 0]) / transition.seconds


def _effort(transition: Transition) -> Float64Array:
    return np.square(transition.ctrl).sum(axis=1)


def _runner(healthy: Callable[[Transition], Any], cost: float) -> dict[str, Any]:
    """Reward velocity and health, less a cost of effort; end when it is not healthy."""
    return {
        "reward": lambda moved: _forward(moved) + healthy(moved) - cost * _effort(moved),
        "terminated": lambda moved: ~healthy(moved),
    }


def _hopper_is_healthy(moved: Transition) -> Any:
    height, angle = moved.qpos[:, 1], moved.qpos[:, 2]
    rest = np.concatenate([moved.qpos[:, 2:], moved.qvel], axis=1)
    return (np.abs(rest) < 100).all(axis=1) & (height > 0.7) & (np.abs(angle) < 0.2)


def _walker_is_healthy(moved: Transition) -> Any:
    height, angle = moved.qpos[:, 1], moved.qpos[:, 2]
    return (height > 0.8) & (height < 2.0) & (np.abs(angle) < 1.0)


def _ant_is_healthy(moved: Transition) -> Any:
    return (moved.qpos[:, 2] >= 0.2) & (moved.qpos[:, 2] <= 1.0)


def _laikago_stands(moved: Transition) -> Any:
    return moved.qpos[:, 2] > 0.3


def _pole_is_up(moved: Transition) -> Any:
    return np.abs(moved.qpos[:, 1]) <= 0.2


def _pendulum_tip(qpos: Float64Array) -> Float64Array:
    """Return y and z of the tip of a chain of links of 0.5 m that turn about x, [batch, 2]."""
    angles = np.cumsum(qpos, axis=1)
    return 0.5 * np.stack([np.cos(angles).sum(axis=1), np.sin(angles).sum(axis=1)], axis=1)


def _pendulum_reward(moved: Transition) -> Float64Array:
    """Return by how much the squared distance of the tip from the top became smaller; at the end, less it."""
    top = np.array([0.0, 0.5 * moved.qpos.shape[1]])
    before, after = (
        np.square(_pendulum_tip(qpos) - top).sum(axis=1) for qpos in (moved.qpos_before, moved.qpos)
    )
    return before - after - moved.last * after


def _pendulum_observation(qpos: Float64Array, qvel: Float64Array) -> Float64Array:
    angles = np.cumsum(qpos, axis=1)
    return np.concatenate([np.cos(angles), np.sin(angles), qvel], axis=1)


def _gymnasium(file: str, hold: int, task: Task) -> NamedTask:
    return NamedTask(str(_GYMNASIUM_FILES / file), replace(task, hold=hold), {"contact_model": "mujoco"})


_ANT = Task(observe=_without(2), start=noise(0.1, normal_velocity=True), **_runner(_ant_is_healthy, 0.5))

_CONTACT_RANGE, _CONTACT_COST = 1.0, 5e-4


def _contact_force(forces: Float64Array) -> Float64Array:
    """Return contact forces as Gymnasium's Ant sees them, [batch, nbody, 6]."""
    return np.clip(forces, -_CONTACT_RANGE, _CONTACT_RANGE)


def _ant_observation(qpos: Float64Array, qvel: Float64Array, forces: Float64Array) -> Float64Array:
    seen = _contact_force(forces)[:, 1:].reshape(len(qpos), -1)
    return np.concatenate([qpos[:, 2:], qvel, seen], axis=1)


def _ant_reward(moved: Transition) -> Float64Array:
    assert moved.contact_force is not None and callable(_ANT.reward)
    cost = _CONTACT_COST * np.square(_contact_force(moved.contact_force)).sum(axis=(1, 2))
    return _ANT.reward(moved) - cost


NAMED_TASKS: Mapping[str, NamedTask] = {
    "Ant-v0": NamedTask("ant", replace(_ANT, hold=5)),
    "Ant-v1": _gymnasium(
        "ant.xml", 5, replace(_ANT, reward=_ant_reward, observe=_ant_observation, contact_forces=True)
    ),
    "Pendulum7-v0": NamedTask(
        "pendulum7",
        Task(reward=_pendulum_reward, observe=_pendulum_observation, episode_length=100, action_limit=1.0),
    ),
    "Laikago-v0": NamedTask(
        "laikago",
        Task(
            observe=_without(2),
            start=noise(0.01, normal_velocity=True),
            hold=10,
            action_limit=np.pi,
            **_runner(_laikago_stands, 0.0),
        ),
    ),
    "CartPole-v0": NamedTask(
        "cartpole",
        Task(
            reward=Loss(
                [Term("qpos", weight=[0.01, 1.0]), Term("qvel", weight=0.001), Term("ctrl", weight=1e-4)]
            ),
            start=noise(0.05, normal_velocity=False),
            hold=2,
            episode_length=500,
            action_limit=10.0,
        ),
    ),
    "Hopper-v5": _gymnasium(
        "hopper.xml",
        4,
        Task(
            observe=_without(1, limit=10.0),
            start=noise(5e-3, normal_velocity=False),
            **_runner(_hopper_is_healthy, 1e-3),
        ),
    ),
    "Walker2d-v5": _gymnasium(
        "walker2d_v5.xml",
        4,
        Task(
            observe=_without(1, limit=10.0),
            start=noise(5e-3, normal_velocity=False),
            **_runner(_walker_is_healthy, 1e-3),
        ),
    ),
    "HalfCheetah-v5": _gymnasium(
        "half_cheetah.xml",
        5,
        Task(
            reward=lambda moved: _forward(moved) - 0.1 * _effort(moved),
            observe=_without(1),
            start=noise(0.1, normal_velocity=True),
        ),
    ),
    "Swimmer-v5": _gymnasium(
        "swimmer.xml",
        4,
        Task(
            reward=lambda moved: _forward(moved) - 1e-4 * _effort(moved),
            observe=_without(2),
            start=noise(0.1, normal_velocity=False),
        ),
    ),
    "InvertedPendulum-v5": _gymnasium(
        "inverted_pendulum.xml",
        2,
        Task(
            reward=_pole_is_up,
            terminated=lambda moved: ~_pole_is_up(moved),
            start=noise(0.01, normal_velocity=False),
        ),
    ),
    "Ant-v5": _gymnasium("ant.xml", 5, _ANT),
}
"""Models and tasks by the name that is registered with Gymnasium, without the namespace.

Those of version 5 are Gymnasium's own: same files, observations, rewards and starts. Ant-v5 is that with
include_cfrc_ext_in_observation=False and contact_cost_weight=0; its forward reward takes the torso's position
after the step, where Gymnasium's takes that of the last stage of MuJoCo's Runge-Kutta step. Ant-v1 is
Gymnasium's Ant with all its defaults, whose contact forces are likewise those of the state after the step.
"""

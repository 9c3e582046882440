"""Tasks whose rewards torch differentiates, and policies in files.

Models and starts of Hopper and Ant are those of `revolute.gym`, which are Gymnasium's own. Rewards and ends
are written here once more, in torch; tests compare the two. Ant's contact cost is left out of training.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import torch

import revolute
import revolute.gym

PENDULUM = """<mujoco model="pendulum">
  <!-- Gymnasium's Pendulum-v1: a rod of 1 kg and 1 m, g = 10; angle 0 is upright -->
  <option timestep="0.05" gravity="0 0 -10"/>
  <worldbody>
    <body name="pole">
      <joint name="hinge" type="hinge" axis="0 1 0"/>
      <inertial pos="0 0 0.5" mass="1" diaginertia="0.08333333333333333 0.08333333333333333 1e-3"/>
      <geom type="capsule" fromto="0 0 0 0 0 1" size="0.05" contype="0" conaffinity="0"/>
    </body>
  </worldbody>
  <actuator><motor joint="hinge" ctrllimited="true" ctrlrange="-2 2"/></actuator>
</mujoco>"""


@dataclass(frozen=True)
class Move:
    """What one action did to environments, as tensors with any leading axes.

    Attributes:
        before: configurations before the action, [..., nq].
        qvel_before: velocities before the action, [..., nv].
        ctrl: controls, within their ranges, [..., nu].
        qpos: configurations after the action, [..., nq].
        qvel: velocities after the action, [..., nv].
        seconds: duration of the action.
    """

    before: torch.Tensor
    qvel_before: torch.Tensor
    ctrl: torch.Tensor
    qpos: torch.Tensor
    qvel: torch.Tensor
    seconds: float


@dataclass(frozen=True)
class SmoothTask:
    """A task with a differentiable reward.

    Attributes:
        source: what `Simulator.load_model` loads.
        observe: what the policy sees, as of `revolute.MLP`.
        features: the same numbers from qpos [..., nq] and qvel [..., nv], for the critic.
        reward: reward of a `Move`, [...].
        healthy: whether an episode continues, of qpos [..., nq] and qvel [..., nv].
        start: draws a start, as of `revolute.gym.Task`.
        hold: steps that an action is held.
        episode: actions of an episode.
        options: options of `Simulator.load_model`.
        unseen: features that the policy and the critic shall not use, such as the place on the ground.
    """

    source: str
    observe: tuple[str, ...]
    features: Callable[[torch.Tensor, torch.Tensor], torch.Tensor]
    reward: Callable[[Move], torch.Tensor]
    healthy: Callable[[torch.Tensor, torch.Tensor], torch.Tensor]
    start: Callable[[np.random.Generator, Any], tuple[Any, Any]]
    hold: int
    episode: int
    options: Mapping[str, Any] = field(default_factory=dict)
    unseen: tuple[int, ...] = ()

    def load(self, sim: revolute.Simulator, **options: Any) -> revolute.ModelHandle:
        """Load the model; `options` win over those of the task."""
        return sim.load_model(self.source, **{**self.options, **options})


def starts(
    task: SmoothTask, model: revolute.ModelHandle, random: np.random.Generator, count: int
) -> tuple[np.ndarray, np.ndarray]:
    """Draw starts of episodes, qpos [count, nq] and qvel [count, nv]."""
    drawn = [task.start(random, model) for _ in range(count)]
    qpos, qvel = (np.stack([np.asarray(pair[place]) for pair in drawn]) for place in (0, 1))
    return qpos, qvel


def always(qpos: torch.Tensor, qvel: torch.Tensor) -> torch.Tensor:
    """The episode never ends early."""
    return torch.ones(qpos.shape[:-1], dtype=torch.bool)


def state(qpos: torch.Tensor, qvel: torch.Tensor) -> torch.Tensor:
    """Return what the engine observes as "qpos" and "qvel" of a model without quaternions."""
    return torch.cat([qpos, qvel], -1)


def free_body_state(qpos: torch.Tensor, qvel: torch.Tensor) -> torch.Tensor:
    """Return what the engine observes as "qpos" and "qvel" if the first joint is free, the rest not."""
    w, x, y, z = qpos[..., 3:7].unbind(-1)
    columns = [
        1 - 2 * (y * y + z * z), 2 * (x * y + w * z), 2 * (x * z - w * y),
        2 * (x * y - w * z), 1 - 2 * (x * x + z * z), 2 * (y * z + w * x),
    ]  # fmt: skip
    return torch.cat([qpos[..., :3], torch.stack(columns, -1), qpos[..., 7:], qvel], -1)


def turned_about_y(angle: torch.Tensor) -> torch.Tensor:
    """Return the nine numbers of the rotation matrix, row by row, [..., 9]."""
    c, s, zero, one = angle.cos(), angle.sin(), torch.zeros_like(angle), torch.ones_like(angle)
    return torch.stack([c, zero, s, zero, one, zero, -s, zero, c], -1)


def forward_reward(cost: float, alive: Callable[[Move], Any]) -> Callable[[Move], torch.Tensor]:
    """Return a reward: mean velocity along x, plus 1 while healthy, less a cost of effort."""

    def reward(move: Move) -> torch.Tensor:
        speed = (move.qpos[..., 0] - move.before[..., 0]) / move.seconds
        return speed + alive(move) - cost * move.ctrl.square().sum(-1)

    return reward


def upright_angle(angle: torch.Tensor) -> torch.Tensor:
    """Return an angle between -pi and pi."""
    return torch.remainder(angle + np.pi, 2 * np.pi) - np.pi


def pendulum_reward(move: Move) -> torch.Tensor:
    """Return Gymnasium's reward of Pendulum-v1, of the state before the action."""
    angle = upright_angle(move.before[..., 0])
    effort = move.ctrl.square().sum(-1)
    return -(angle.square() + 0.1 * move.qvel_before[..., 0].square() + 1e-3 * effort)


def pendulum_start(random: np.random.Generator, model: Any) -> tuple[Any, Any]:
    """Draw any angle, and a velocity up to 1 rad/s."""
    return random.uniform(-np.pi, np.pi, 1), random.uniform(-1, 1, 1)


def cartpole_reward(move: Move) -> torch.Tensor:
    """Return minus a cost of the pole's angle from upright, the cart's place, their velocities, and force."""
    weights = torch.tensor([0.05, 1.0]), torch.tensor([0.1, 0.1])
    place = torch.stack([move.qpos[..., 0], upright_angle(move.qpos[..., 1])], -1)
    effort = 1e-4 * move.ctrl.square().sum(-1)
    return -((weights[0] * place.square()).sum(-1) + (weights[1] * move.qvel.square()).sum(-1) + effort)


def cartpole_start(random: np.random.Generator, model: Any) -> tuple[Any, Any]:
    """Hang, nearly at rest."""
    return np.array([0, np.pi]) + random.uniform(-0.1, 0.1, 2), random.uniform(-0.1, 0.1, 2)


def hopper_is_healthy(qpos: torch.Tensor, qvel: torch.Tensor) -> torch.Tensor:
    """Return Gymnasium's rule."""
    bounded = (qpos[..., 2:].abs() < 100).all(-1) & (qvel.abs() < 100).all(-1)
    return bounded & (qpos[..., 1] > 0.7) & (qpos[..., 2].abs() < 0.2)


def ant_is_healthy(qpos: torch.Tensor, qvel: torch.Tensor) -> torch.Tensor:
    """Return Gymnasium's rule."""
    return (qpos[..., 2] >= 0.2) & (qpos[..., 2] <= 1.0)


def _gymnasium(name: str, healthy: Any, cost: float, **rest: Any) -> SmoothTask:
    named = revolute.gym.NAMED_TASKS[name]
    assert named.task.start is not None
    return SmoothTask(
        source=named.source,
        options=named.options,
        observe=("qpos", "qvel"),
        reward=forward_reward(cost, lambda move: healthy(move.qpos, move.qvel)),
        healthy=healthy,
        start=named.task.start,
        hold=named.task.hold,
        episode=named.task.episode_length or 1000,
        **rest,
    )


TASKS: Mapping[str, SmoothTask] = {
    "pendulum": SmoothTask(
        source=PENDULUM,
        observe=("body_mat:pole", "qvel"),
        features=lambda qpos, qvel: torch.cat([turned_about_y(qpos[..., 0]), qvel], -1),
        reward=pendulum_reward,
        healthy=always,
        start=pendulum_start,
        hold=1,
        episode=200,
    ),
    "cartpole": SmoothTask(
        source="cartpole",
        observe=("qpos", "body_mat:pole", "qvel"),
        features=lambda qpos, qvel: torch.cat([qpos, turned_about_y(qpos[..., 1]), qvel], -1),
        reward=cartpole_reward,
        healthy=always,
        start=cartpole_start,
        hold=2,
        episode=250,
        unseen=(1,),  # the angle, whose cosine and sine are seen
    ),
    "hopper": _gymnasium("Hopper-v5", hopper_is_healthy, 1e-3, features=state, unseen=(0,)),
    "ant": _gymnasium("Ant-v5", ant_is_healthy, 0.5, features=free_body_state, unseen=(0, 1)),
}


class Policy:
    """A trained policy: what `policy.npz` holds.

    Args:
        task: its name in `TASKS`.
        mlp: the network, with everything that normalizes its inputs.
    """

    def __init__(self, task: str, mlp: revolute.MLP) -> None:
        self.task, self.mlp = task, mlp
        self._layers = [torch.tensor(array) for array in mlp.arrays(mlp.weights)]

    def act(self, qpos: np.ndarray, qvel: np.ndarray) -> np.ndarray:
        """Return the controls [..., nu] in states, as the engine computes them."""
        x = TASKS[self.task].features(torch.as_tensor(qpos), torch.as_tensor(qvel))
        for weight, bias in zip(self._layers[:-2:2], self._layers[1:-2:2], strict=True):
            x = torch.nn.functional.elu(x @ weight.T + bias)
        weight, bias = self._layers[-2:]
        found: np.ndarray = (torch.as_tensor(self.mlp.scale) * torch.tanh(x @ weight.T + bias)).numpy()
        return found

    def save(self, path: Path) -> None:
        """Write the policy as arrays."""
        document = self.mlp.to_dict()
        names = ("weights", "sizes", "observe", "activation", "scale", "squash")
        np.savez(path, task=self.task, **{name: np.asarray(document[name]) for name in names})

    @classmethod
    def load(cls, path: Path) -> Policy:
        """Read what `save` wrote."""
        with np.load(path) as file:
            document = {name: file[name].tolist() for name in file.files}
        return cls(document.pop("task"), revolute.MLP.from_dict(document))

"""A task: what an agent observes, what it is rewarded for, and how an episode starts and ends."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from ..contract.arrays import Float64Array, as_float64
from ..contract.errors import ArgumentError
from ..contract.loss import Loss, Term
from ..model import ModelHandle


@dataclass(frozen=True, eq=False)
class Transition:
    """What one action did to a batch of environments.

    Attributes:
        qpos_before: configurations before the action, [batch, nq].
        qvel_before: velocities before the action, [batch, nv].
        ctrl: controls of the action, [batch, nu].
        qpos: configurations after the action, [batch, nq].
        qvel: velocities after the action, [batch, nv].
        seconds: duration of the action.
        last: whether the episode reaches its length with this action, [batch].
    """

    qpos_before: Float64Array
    qvel_before: Float64Array
    ctrl: Float64Array
    qpos: Float64Array
    qvel: Float64Array
    seconds: float
    last: np.ndarray


Start = Callable[[np.random.Generator, ModelHandle], tuple[Any, Any]]
"""Draws the start of an episode: qpos [nq] and qvel [nv]."""


def qpos_and_qvel(qpos: Float64Array, qvel: Float64Array) -> Float64Array:
    """Return the whole state as observation, [batch, nq + nv]."""
    return np.concatenate([qpos, qvel], axis=-1)


def default_start(random: np.random.Generator, model: ModelHandle) -> tuple[Any, Any]:
    """Start from the model's default state."""
    return model.qpos0, model.qvel0


@dataclass(frozen=True, eq=False)
class Task:
    """What an agent is to do with a model. Functions work on a batch of environments at once.

    Attributes:
        reward: the reward of an action: a function of the Transition that returns [batch]; or a loss as data,
            whose negative is the reward. The loss sees two states, before and after the action, and one
            control; its derivative is available as `reward_by_action`. None for no reward.
        terminated: a function of the Transition that tells for each environment whether its episode ends,
            [batch]; None for never. An environment that diverges always ends.
        observe: a function of qpos [batch, nq] and qvel [batch, nv] that returns observations [batch, n].
        start: draws the start of an episode from a random generator: qpos [nq] and qvel [nv].
        hold: steps for which an action is held.
        episode_length: actions after which an episode is truncated; None for no limit.
        action_limit: largest absolute control of an actuator without a range; None refuses such a model.
        diverged_reward: reward of an action after which an environment is not finite.
    """

    reward: Callable[[Transition], Any] | Loss | Term | None = None
    terminated: Callable[[Transition], Any] | None = None
    observe: Callable[[Float64Array, Float64Array], Any] = qpos_and_qvel
    start: Start = default_start
    hold: int = 1
    episode_length: int | None = 1000
    action_limit: float | None = None
    diverged_reward: float = 0.0

    def __post_init__(self) -> None:
        for name in ("hold", "episode_length"):
            value = getattr(self, name)
            if value is not None and (not isinstance(value, int) or isinstance(value, bool) or value < 1):
                raise ArgumentError.expected(name, "a whole number of at least 1", repr(value))
        if isinstance(self.reward, Term):
            object.__setattr__(self, "reward", Loss([self.reward]))

    def action_range(self, model: ModelHandle) -> Float64Array:
        """Return the smallest and the largest control of each actuator, [nu, 2].

        Raises:
            ArgumentError: an actuator has no range, and the task no `action_limit`.
        """
        limited = np.asarray(np.isfinite(model.ctrlrange).all(axis=1))
        if not limited.all() and self.action_limit is None:
            free = model.actuator_names[int(np.argmin(limited))]
            raise ArgumentError.expected(
                "action_limit",
                f"a limit for actuators without ctrlrange, such as '{free}'",
                "None",
                advice="pass Task(action_limit=…)",
            )
        limit = self.action_limit or 0.0
        return np.where(limited[:, None], model.ctrlrange, [-limit, limit])

    def rewards(self, transition: Transition) -> Float64Array:
        """Return the reward of each environment, [batch]."""
        if self.reward is None:
            return np.zeros(len(transition.qpos))
        if isinstance(self.reward, Loss):
            return -np.asarray(self.reward.evaluate(*_trajectory(transition)).value)
        assert callable(self.reward)
        return _column("reward", self.reward(transition), len(transition.qpos))

    def reward_cotangents(self, transition: Transition) -> tuple[Float64Array, ...] | None:
        """Return d reward by qpos and qvel after the action and by the action; None for a function."""
        if not isinstance(self.reward, Loss):
            return None
        found = self.reward.evaluate(*_trajectory(transition))
        return -found.qpos_bar[:, -1], -found.qvel_bar[:, -1], -found.ctrl_bar[:, 0]

    def ends(self, transition: Transition) -> np.ndarray:
        """Tell which episodes end, [batch]."""
        if self.terminated is None:
            return np.zeros(len(transition.qpos), bool)
        return _column("terminated", self.terminated(transition), len(transition.qpos)).astype(bool)


def _trajectory(transition: Transition) -> tuple[Float64Array, Float64Array, Float64Array]:
    """Return a transition as a trajectory of one step."""
    qpos = np.stack([transition.qpos_before, transition.qpos], axis=1)
    qvel = np.stack([transition.qvel_before, transition.qvel], axis=1)
    return qpos, qvel, transition.ctrl[:, None]


def _column(name: str, value: Any, batch: int) -> Float64Array:
    """Return a function's result as [batch]."""
    array = as_float64(name, value)
    if array.shape != (batch,):
        raise ArgumentError.expected(name, f"shape [batch={batch}]", list(array.shape))
    return array

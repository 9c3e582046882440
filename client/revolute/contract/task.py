"""A task: what an agent observes, what it is rewarded for, and how an episode starts and ends.

`revolute.gym` and the server's dm_env_rpc worlds run episodes of it. A task of data alone, without Python
functions, can be a JSON document: `Task.from_dict`. Functions work on a batch of environments at once.
"""

from __future__ import annotations

import math
import numbers
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np

from .arrays import Float64Array, as_float64, owned_float64
from .errors import ArgumentError
from .loss import Loss, Term
from .tangents import Joints, move

OBSERVATIONS = ("qpos", "qvel")
"""What a task may observe by name."""


class TaskModel(Joints, Protocol):
    """The part of a model that a task needs; the client's handle and the engine's model have it."""

    @property
    def nu(self) -> int:
        """Numbers in ctrl."""

    @property
    def qpos0(self) -> Float64Array:
        """Default configuration, [nq]."""

    @property
    def qvel0(self) -> Float64Array:
        """Default velocity, and behind it the activations, [nv + na]."""

    @property
    def ctrlrange(self) -> Float64Array:
        """Range of each control, [nu, 2]."""

    @property
    def actuator_names(self) -> Sequence[str]:
        """Names of the actuators."""


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
        contact_force: torque and force of the contacts on each body after the action, [batch, nbody, 6], in
            world axes, the torque about the mass centre of the model (for a model of one tree this is
            MuJoCo's cfrc_ext); None unless the task has `contact_forces`.
    """

    qpos_before: Float64Array
    qvel_before: Float64Array
    ctrl: Float64Array
    qpos: Float64Array
    qvel: Float64Array
    seconds: float
    last: np.ndarray
    contact_force: Float64Array | None = None


Start = Callable[[np.random.Generator, Any], tuple[Any, Any]]
"""Draws the start of an episode of a model: qpos [nq] and qvel [nv]."""


@dataclass(frozen=True, eq=False)
class Task:
    """What an agent is to do with a model.

    Attributes:
        reward: the reward of an action: a function of the Transition that returns [batch]; or a loss as data,
            whose negative is the reward. The loss sees two states, before and after the action, and one
            control; its derivative is available as `reward_by_action`. None for no reward.
        terminated: a function of the Transition that tells for each environment whether its episode ends,
            [batch]; None for never. An environment that diverges always ends.
        qpos_min: [nq]; a smaller coordinate also ends the episode; None for no limit, as -inf for one
            coordinate.
        qpos_max: [nq]; a larger coordinate also ends the episode.
        observe: names among "qpos" and "qvel", whose numbers follow each other in an observation; or a
            function of qpos [batch, nq] and qvel [batch, nv], and with `contact_forces` of
            `Transition.contact_force`, that returns observations [batch, n].
        start: a function of a random generator and the model that draws the start of an episode, qpos [nq]
            and qvel [nv], in place of the next three.
        qpos: start configuration, [nq]; None for the model's own.
        qvel: start velocity, [nv]; None for the model's own.
        start_noise: standard deviation of random displacements of the start, along every tangent of qpos and
            of qvel.
        hold: steps for which an action is held.
        episode_length: actions after which an episode is truncated; None for no limit.
        action_limit: largest absolute control of an actuator without a range; None refuses such a model.
        contact_forces: whether contact forces are measured after each action, for `reward`, `terminated` and
            `observe`; two more calls of the engine.
        diverged_reward: reward of an action after which an environment is not finite. A dm_env_rpc world
            answers with an error instead.

    Raises:
        ArgumentError: a value has a wrong type or range.
    """

    reward: Callable[[Transition], Any] | Loss | Term | None = None
    terminated: Callable[[Transition], Any] | None = None
    qpos_min: Any = None
    qpos_max: Any = None
    observe: Callable[..., Any] | Sequence[str] = OBSERVATIONS
    start: Start | None = None
    qpos: Any = None
    qvel: Any = None
    start_noise: float = 0.0
    hold: int = 1
    episode_length: int | None = 1000
    action_limit: float | None = None
    diverged_reward: float = 0.0
    contact_forces: bool = False

    def __post_init__(self) -> None:
        for name in ("hold", "episode_length"):
            value = getattr(self, name)
            if value is None and name == "episode_length":
                continue
            if not isinstance(value, numbers.Integral) or isinstance(value, bool) or value < 1:
                raise ArgumentError.expected(name, "a whole number of at least 1", repr(value))
        for name, least in (("start_noise", 0.0), ("action_limit", 0.0), ("diverged_reward", -math.inf)):
            value = getattr(self, name)
            if value is None and name == "action_limit":
                continue
            known = isinstance(value, numbers.Real) and not isinstance(value, bool) and math.isfinite(value)
            if not known or value < least:
                what = "a finite number" if least else "a finite number from 0"
                raise ArgumentError.expected(name, what, repr(value))
        for name, missing in (("qpos", None), ("qvel", None), ("qpos_min", -np.inf), ("qpos_max", np.inf)):
            if getattr(self, name) is not None:
                object.__setattr__(self, name, _numbers(name, getattr(self, name), missing))
        if self.start is not None and (self.start_noise or self.qpos is not None or self.qvel is not None):
            raise ArgumentError.expected("start", "none beside qpos, qvel and start_noise", "both")
        self._check_reward()
        self._check_observe()

    def _check_reward(self) -> None:
        if isinstance(self.reward, Term):
            object.__setattr__(self, "reward", Loss([self.reward]))
        if isinstance(self.reward, Loss):
            self.reward.check_needs_no_model()
        elif self.reward is not None and not callable(self.reward):
            raise ArgumentError.expected(
                "reward", "a revolute.Loss or a function", type(self.reward).__name__
            )

    def _check_observe(self) -> None:
        if callable(self.observe):
            return
        given: Any = [self.observe] if isinstance(self.observe, str) else self.observe
        try:
            names = tuple(given)
        except TypeError:
            names = ()
        known = all(isinstance(name, str) and name in OBSERVATIONS for name in names)
        if not names or not known or len(set(names)) != len(names):
            what = f"names among {', '.join(OBSERVATIONS)}, each once, or a function"
            raise ArgumentError.expected("observe", what, repr(self.observe)[:60])
        object.__setattr__(self, "observe", names)

    @classmethod
    def from_dict(cls, document: Mapping[str, Any]) -> Task:
        """Build a task from data: attributes by name without functions, a Loss as `Loss.from_dict` reads it.

        An entry None in `qpos_min` or `qpos_max` means that the coordinate has no limit.

        Raises:
            ArgumentError: a name is unknown, or the constructor rejects a value.
        """
        if not isinstance(document, Mapping):
            raise ArgumentError.expected("task", "attributes by name", type(document).__name__)
        for name in document:
            if name not in DATA:
                raise ArgumentError.expected("task", f"names among {', '.join(DATA)}", repr(name)[:80])
        given = dict(document)
        if given.get("reward") is not None:
            given["reward"] = Loss.from_dict(given["reward"])
        return cls(**given)

    @property
    def observed(self) -> tuple[str, ...]:
        """Names of the observed quantities; empty for a function."""
        return () if callable(self.observe) else tuple(self.observe)

    def check(self, model: TaskModel) -> None:
        """Check that the task fits a model.

        Raises:
            ArgumentError: an array has another length, or the loss selects entries that do not exist.
        """
        sizes = {"qpos": model.nq, "qvel": len(model.qvel0), "qpos_min": model.nq, "qpos_max": model.nq}
        for name, size in sizes.items():
            array = getattr(self, name)
            if array is not None and array.shape != (size,):
                raise ArgumentError.expected(name, f"shape [{size}]", list(array.shape))
        if isinstance(self.reward, Loss):
            self.reward.evaluate(
                np.tile(model.qpos0, (2, 1)), np.tile(model.qvel0, (2, 1)), np.zeros((1, model.nu))
            )

    def action_range(self, model: TaskModel) -> Float64Array:
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

    def draw_start(self, random: np.random.Generator, model: TaskModel) -> tuple[Any, Any]:
        """Return the start of an episode, qpos [nq] and qvel [nv]."""
        if self.start is not None:
            return self.start(random, model)
        qpos = model.qpos0 if self.qpos is None else self.qpos
        qvel = model.qvel0 if self.qvel is None else self.qvel
        if not self.start_noise:
            return qpos, qvel
        noise = self.start_noise * random.standard_normal(model.nv + len(qvel))
        return move(model, qpos, noise[: model.nv]), qvel + noise[model.nv :]

    def observation(
        self, qpos: Float64Array, qvel: Float64Array, contact_force: Float64Array | None = None
    ) -> Float64Array:
        """Return the observations [batch, n] of states, with their contact forces if the task has them.

        Raises:
            ArgumentError: the function `observe` returned another shape.
        """
        if not callable(self.observe):
            states = {"qpos": qpos, "qvel": qvel}
            return np.concatenate([states[name] for name in self.observe], axis=1)
        given = (qpos, qvel, contact_force) if self.contact_forces else (qpos, qvel)
        found = as_float64("observe", self.observe(*given))
        if found.ndim != 2 or len(found) != len(qpos):
            raise ArgumentError.expected("observe", f"shape [batch={len(qpos)}, n]", list(found.shape))
        return np.array(found)

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
        batch = len(transition.qpos)
        ended = np.zeros(batch, bool)
        if self.qpos_min is not None:
            ended |= (transition.qpos < self.qpos_min).any(axis=1)
        if self.qpos_max is not None:
            ended |= (transition.qpos > self.qpos_max).any(axis=1)
        if self.terminated is not None:
            ended |= _column("terminated", self.terminated(transition), batch).astype(bool)
        return ended

    def is_last(self, actions: Any) -> Any:
        """Tell whether an episode has its full length after a number of actions, elementwise."""
        return np.asarray(actions) >= (math.inf if self.episode_length is None else self.episode_length)


DATA = tuple(
    name for name in Task.__dataclass_fields__ if name not in ("terminated", "start", "contact_forces")
)
"""Attributes of a task that are data, or can be."""


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


def _numbers(name: str, value: Any, missing: float | None) -> Float64Array:
    """Return a vector of numbers; None stands for `missing`, if that is a number."""
    if missing is not None and isinstance(value, list | tuple):
        value = [missing if entry is None else entry for entry in value]
    array = owned_float64(name, value)
    if np.isnan(array).any() or (missing is None and np.isinf(array).any()):
        raise ArgumentError.expected(name, "numbers" if missing is not None else "finite numbers", "others")
    array.setflags(write=False)
    return array

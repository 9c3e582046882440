"""The task of a world, read from its settings: start, reward, discount, and end of an episode."""

from __future__ import annotations

import dataclasses
import json
from collections.abc import Mapping
from typing import Any

import numpy as np

from revolute.contract.arrays import Float64Array, as_float64
from revolute.contract.errors import ArgumentError
from revolute.contract.loss import Loss
from revolute_engine import Model
from revolute_engine.tangents import move

MODEL_SETTINGS = ("model", "model_id", "text")
OPTION = "options."
LARGEST = 1e6
"""Largest value of `start_noise` and `ctrl_limit`."""

START_SETTINGS = ("qpos", "qvel", "seed")
"""Settings that a reset may change."""

TASK_SETTINGS = (
    *START_SETTINGS,
    "start_noise",
    "episode_length",
    "steps_per_action",
    "reward",
    "discount",
    "ctrl_limit",
    "qpos_min",
    "qpos_max",
)


@dataclasses.dataclass(frozen=True)
class Task:
    """The task of a world.

    Attributes:
        qpos: start configuration of an episode, [nq].
        qvel: start velocity of an episode, [nv].
        start_noise: standard deviation of a random displacement of the start configuration (along all
            tangents) and of the start velocity.
        seed: seed of the displacements; None for a random one.
        episode_length: number of actions after which an episode is interrupted.
        steps_per_action: number of steps for which an action is held.
        reward: loss of the trajectory of one action, whose negative is the reward; None for no reward.
        discount: discount of each action that does not terminate the episode; None to leave it to the agent.
        ctrl_limit: largest absolute control of an actuator without a range.
        qpos_min: [nq]; a smaller coordinate terminates the episode.
        qpos_max: [nq]; a larger coordinate terminates the episode.
    """

    qpos: Float64Array
    qvel: Float64Array
    start_noise: float = 0.0
    seed: int | None = None
    episode_length: int = 1000
    steps_per_action: int = 1
    reward: Loss | None = None
    discount: float | None = None
    ctrl_limit: float = 1000.0
    qpos_min: Float64Array | None = None
    qpos_max: Float64Array | None = None

    def ctrlrange(self, model: Model) -> Float64Array:
        """Return the range of each actuator, [nu, 2]."""
        limited = np.isfinite(model.ctrlrange).all(axis=1, keepdims=True)
        return np.where(limited, model.ctrlrange, [-self.ctrl_limit, self.ctrl_limit])

    def start(self, model: Model, random: np.random.Generator) -> tuple[Float64Array, Float64Array]:
        """Return the start configuration [nq] and velocity [nv] of an episode."""
        if not self.start_noise:
            return self.qpos, self.qvel
        noise = self.start_noise * random.standard_normal(model.nv + model.nqvel)
        return move(model, self.qpos, noise[: model.nv]), self.qvel + noise[model.nv :]

    def reward_of(self, qpos: Float64Array, qvel: Float64Array, ctrl: Float64Array) -> float:
        """Return the reward of an action, the negative loss of its trajectory.

        Args:
            qpos: configurations before and after the action, [2, nq].
            qvel: velocities before and after the action, [2, nv].
            ctrl: controls of the action, [1, nu].
        """
        return 0.0 if self.reward is None else -float(self.reward.evaluate(qpos, qvel, ctrl).value)

    def is_out_of_range(self, qpos: Float64Array) -> bool:
        """Tell whether a configuration [nq] terminates the episode."""
        below = self.qpos_min is not None and bool((qpos < self.qpos_min).any())
        return below or (self.qpos_max is not None and bool((qpos > self.qpos_max).any()))


def model_request(settings: Mapping[str, Any]) -> dict[str, Any]:
    """Return the RegisterModel request for a world's settings, or {"model_id": …} for a registered model.

    Raises:
        ArgumentError: not exactly one of model, model_id and text is set, or a setting is unknown.
    """
    for name in settings:
        if name not in (*MODEL_SETTINGS, *TASK_SETTINGS) and not name.startswith(OPTION):
            known = ", ".join((*MODEL_SETTINGS, f"{OPTION}NAME", *TASK_SETTINGS))
            raise ArgumentError.expected("settings", f"names among {known}", repr(name[:80]))
    named = [name for name in MODEL_SETTINGS if name in settings]
    if len(named) != 1:
        raise ArgumentError.expected(
            "settings", f"one of {', '.join(MODEL_SETTINGS)}", ", ".join(named) or "none of them"
        )
    source = named[0]
    if not isinstance(settings[source], str):
        raise ArgumentError.expected(source, "text", type(settings[source]).__name__)
    options = {
        name.removeprefix(OPTION): _plain(name, value)
        for name, value in settings.items()
        if name.startswith(OPTION)
    }
    if source != "model_id":
        return {"builtin" if source == "model" else "text": settings[source], "options": options}
    if options:
        raise ArgumentError.expected("options", "none with model_id", ", ".join(sorted(options)))
    return {"model_id": settings["model_id"]}


def read_task(model: Model, settings: Mapping[str, Any]) -> Task:
    """Read the task from the settings of a world.

    Raises:
        ArgumentError: a setting has a wrong type, shape or range, or the reward does not fit the model.
    """
    given: dict[str, Any] = {}
    for name in ("episode_length", "steps_per_action"):
        if name in settings:
            given[name] = _whole(name, settings[name], least=1)
    for name, most in (("start_noise", LARGEST), ("discount", 1.0), ("ctrl_limit", LARGEST)):
        if name in settings:
            given[name] = _number(name, settings[name], most)
    for name in ("qpos_min", "qpos_max"):
        if name in settings:
            given[name] = _array(name, settings[name], model.nq)
    if "reward" in settings:
        given["reward"] = _loss(settings["reward"])
    task = restarted(Task(model.qpos0, model.qvel0, **given), model, settings)
    # check now, not in the first episode, whether the reward fits the model
    task.reward_of(np.stack([task.qpos] * 2), np.stack([task.qvel] * 2), np.zeros((1, model.nu)))
    return task


def restarted(task: Task, model: Model, settings: Mapping[str, Any]) -> Task:
    """Return the task with the start settings replaced.

    Raises:
        ArgumentError: a setting has a wrong type or shape.
    """
    changes: dict[str, Any] = {
        name: _array(name, settings[name], length)
        for name, length in (("qpos", model.nq), ("qvel", model.nqvel))
        if name in settings
    }
    if "seed" in settings:
        changes["seed"] = _whole("seed", settings["seed"], least=0)
    return dataclasses.replace(task, **changes)


def check_names(settings: Mapping[str, Any], known: tuple[str, ...]) -> None:
    """Refuse unknown settings.

    Raises:
        ArgumentError: a setting is unknown.
    """
    for name in settings:
        if name not in known:
            raise ArgumentError.expected(
                "settings", f"names among {', '.join(known)}" if known else "none", repr(name[:80])
            )


def _plain(name: str, value: Any) -> Any:
    """Return a scalar setting as a Python number, bool or str."""
    if np.ndim(value):
        raise ArgumentError.expected(name, "a scalar", f"an array of shape {list(np.shape(value))}")
    return value.item() if isinstance(value, np.generic) else value


def _whole(name: str, value: Any, least: int) -> int:
    value = _plain(name, value)
    if not isinstance(value, int) or isinstance(value, bool) or value < least:
        raise ArgumentError.expected(name, f"a whole number of at least {least}", repr(value))
    return value


def _number(name: str, value: Any, most: float) -> float:
    value = _plain(name, value)
    known = isinstance(value, int | float) and not isinstance(value, bool)
    if not known or not 0 <= value <= most:
        raise ArgumentError.expected(name, f"a number from 0 to {most:g}", repr(value))
    return float(value)


def _array(name: str, value: Any, length: int) -> Float64Array:
    array = as_float64(name, value)
    if array.shape != (length,):
        raise ArgumentError.expected(name, f"shape [{length}]", list(array.shape))
    if np.isnan(array).any():
        raise ArgumentError.expected(name, "numbers", "nan")
    return array


def _loss(value: Any) -> Loss:
    if not isinstance(value, str):
        raise ArgumentError.expected("reward", "a loss as JSON text", type(value).__name__)
    try:
        document = json.loads(value)
    except (ValueError, RecursionError):
        raise ArgumentError.expected("reward", "a loss as JSON text", repr(value[:60])) from None
    return Loss.from_dict(document)

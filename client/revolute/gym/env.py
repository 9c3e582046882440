"""Gymnasium environments: one, and a vector of them in one batch."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import gymnasium
import numpy as np
from gymnasium.spaces import Box
from gymnasium.utils.seeding import np_random
from gymnasium.vector import AutoresetMode
from gymnasium.vector.utils import batch_space

from ..contract.errors import ArgumentError
from ..contract.task import Task
from ..model import ModelHandle
from ..simulator import Simulator
from .episodes import Episodes, Outcome

Info = dict[str, Any]


def _spaces(episodes: Episodes) -> tuple[Box, Box]:
    """Return the spaces of observations and of actions of one environment."""
    limits = episodes.task.action_range(episodes.model)
    size = episodes.observation.shape[1]
    return (
        Box(-np.inf, np.inf, (size,), np.float64),
        Box(*limits.T.astype(np.float32), dtype=np.float32),
    )


def _infos(outcome: Outcome) -> dict[str, np.ndarray]:
    """Return what `info` has for a batch of environments."""
    return {"diverged": outcome.diverged, **outcome.derivatives}


class Env(gymnasium.Env[np.ndarray, np.ndarray]):
    """One environment. The same seeds and actions give the same observations as in a VectorEnv, bit for bit.

    Args:
        sim: the simulator, in process or on a server.
        model: the model.
        task: the task.
        derivatives: whether `info` has `state_by_action`, d (qpos, qvel) after the action / d action
            [nq + nv, nu], and for a loss as reward `reward_by_action` [nu].

    `info` of a step also has `diverged`. Option `qpos` and `qvel` of `reset` replace the task's start.
    """

    metadata: dict[str, Any] = {"render_modes": []}  # noqa: RUF012 - as in Gymnasium

    def __init__(self, sim: Simulator, model: ModelHandle, task: Task, *, derivatives: bool = False) -> None:
        self._episodes = Episodes(sim, model, task, 1, derivatives=derivatives)
        self.observation_space, self.action_space = _spaces(self._episodes)
        self.render_mode = None

    @property
    def model(self) -> ModelHandle:
        """The model."""
        return self._episodes.model

    @property
    def task(self) -> Task:
        """The task."""
        return self._episodes.task

    def reset(
        self, *, seed: int | None = None, options: Mapping[str, Any] | None = None
    ) -> tuple[np.ndarray, Info]:
        """Start an episode and return its first observation."""
        super().reset(seed=seed)
        self._episodes.restart(0, self.np_random)
        given = dict(options or {})
        if given:
            qpos = given.pop("qpos", self._episodes.qpos[0])
            qvel = given.pop("qvel", self._episodes.qvel[0])
            _refuse_rest(given, "qpos and qvel")
            self._episodes.set_state(0, qpos, qvel)
        return self._episodes.observation[0], {}

    def step(self, action: np.ndarray) -> tuple[np.ndarray, float, bool, bool, Info]:
        """Hold an action; see `gymnasium.Env.step`."""
        outcome = self._episodes.act(_controls("action", action, (self.model.nu,))[None])
        info = {name: value[0] for name, value in _infos(outcome).items()}
        return (
            self._episodes.observation[0],
            float(outcome.reward[0]),
            bool(outcome.terminated[0]),
            bool(outcome.truncated[0]),
            info,
        )

    def close(self) -> None:
        """Close the session."""
        self._episodes.close()


class VectorEnv(gymnasium.vector.VectorEnv[np.ndarray, np.ndarray, np.ndarray]):
    """A vector of environments, all in one call of the engine.

    Args:
        sim: the simulator, in process or on a server.
        model: the model.
        task: the task.
        num_envs: number of environments.
        autoreset_mode: when an environment whose episode has ended starts again: with its next step
            ("NextStep", whose action it ignores), in the same step ("SameStep", with `final_obs` and
            `final_info` in `info`), or by `reset(options={"reset_mask": …})` ("Disabled").
        derivatives: as for `Env`.

    A seed s gives environment i the seed s + i.
    """

    def __init__(
        self,
        sim: Simulator,
        model: ModelHandle,
        task: Task,
        num_envs: int = 1,
        *,
        autoreset_mode: AutoresetMode | str = AutoresetMode.NEXT_STEP,
        derivatives: bool = False,
    ) -> None:
        self.num_envs = num_envs
        self._mode = AutoresetMode(autoreset_mode)
        self.metadata = {"render_modes": [], "autoreset_mode": self._mode}
        self.render_mode = None
        self._episodes = Episodes(sim, model, task, num_envs, derivatives=derivatives)
        self.single_observation_space, self.single_action_space = _spaces(self._episodes)
        self.observation_space = batch_space(self.single_observation_space, num_envs)
        self.action_space = batch_space(self.single_action_space, num_envs)
        self._randoms = [np_random()[0] for _ in range(num_envs)]
        self._ended = np.zeros(num_envs, bool)

    @property
    def model(self) -> ModelHandle:
        """The model."""
        return self._episodes.model

    @property
    def task(self) -> Task:
        """The task."""
        return self._episodes.task

    def reset(
        self,
        *,
        seed: int | Sequence[int | None] | None = None,
        options: Mapping[str, Any] | None = None,
    ) -> tuple[np.ndarray, Info]:
        """Start the episodes of all environments, or of those in `options["reset_mask"]`."""
        given = dict(options or {})
        mask = np.asarray(given.pop("reset_mask", np.ones(self.num_envs, bool)))
        _refuse_rest(given, "reset_mask")
        if mask.shape != (self.num_envs,) or mask.dtype != bool:
            raise ArgumentError.expected(
                "reset_mask", f"{self.num_envs} booleans", f"shape {list(mask.shape)}, dtype {mask.dtype}"
            )
        for number, each in enumerate(self._seeds(seed)):
            if each is not None and mask[number]:
                self._randoms[number] = np_random(each)[0]
        self._restart(mask)
        return self._episodes.observation, {}

    def step(self, actions: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray, Info]:
        """Hold an action in each environment; see `gymnasium.vector.VectorEnv.step`."""
        controls = _controls("actions", actions, (self.num_envs, self.model.nu))
        starting = self._ended.copy() if self._mode is AutoresetMode.NEXT_STEP else np.zeros_like(self._ended)
        outcome = self._episodes.act(controls)
        running = ~starting
        self._restart(starting)
        terminated, truncated = outcome.terminated & running, outcome.truncated & running
        self._ended = terminated | truncated
        infos: Info = {}
        for name, values in _infos(outcome).items():
            infos[name], infos[f"_{name}"] = values, running
        if self._mode is AutoresetMode.SAME_STEP and self._ended.any():
            self._add_finals(infos, self._ended)
            self._restart(self._ended)
        reward = np.where(running, outcome.reward, 0.0)
        return self._episodes.observation, reward, terminated, truncated, infos

    def close_extras(self, **_options: Any) -> None:
        """Close the session."""
        self._episodes.close()

    def _restart(self, mask: np.ndarray) -> None:
        for number in np.flatnonzero(mask):
            self._episodes.restart(int(number), self._randoms[number])
        self._ended = self._ended & ~mask

    def _add_finals(self, infos: Info, ended: np.ndarray) -> None:
        """Add the last observations and infos of episodes that ended, as Gymnasium's VectorEnvs do."""
        observation = self._episodes.observation
        finals = np.full(self.num_envs, None, dtype=object)
        for number in np.flatnonzero(ended):
            finals[number] = observation[number]
        infos["final_info"] = {name: value for name, value in infos.items() if not name.startswith("_")}
        infos["final_info"] |= {f"_{name}": ended for name in list(infos["final_info"])}
        infos["final_obs"] = finals
        infos["_final_obs"] = infos["_final_info"] = ended

    def _seeds(self, seed: int | Sequence[int | None] | None) -> list[int | None]:
        if seed is None:
            return [None] * self.num_envs
        if isinstance(seed, (int, np.integer)):
            return [int(seed) + number for number in range(self.num_envs)]
        if len(seed) != self.num_envs:
            raise ArgumentError.expected(
                "seed", f"a number or {self.num_envs} numbers", f"{len(seed)} numbers"
            )
        return list(seed)


def _controls(name: str, action: Any, shape: tuple[int, ...]) -> np.ndarray:
    """Return actions as controls of the engine."""
    array = np.asarray(action, dtype=np.float64)
    if array.shape != shape:
        raise ArgumentError.expected(name, f"shape {list(shape)}", list(array.shape))
    return array


def _refuse_rest(options: Mapping[str, Any], known: str) -> None:
    if options:
        raise ArgumentError.expected("options", known, ", ".join(map(repr, options)))

"""A world: a model with a task, its agent, and the state of its episode.

An episode has the states of the protocol. In any state but RUNNING, a step ignores its actions and starts an
episode. RUNNING ends as TERMINATED when the configuration leaves its range, and as INTERRUPTED when the
episode reaches its length or the world is reset.
"""

from __future__ import annotations

import asyncio
import dataclasses
import secrets
from collections.abc import Mapping
from typing import Any

import numpy as np
from dm_env_rpc.v1 import dm_env_rpc_pb2 as pb

from revolute.contract.arrays import Float64Array
from revolute.contract.errors import DivergedError
from revolute.contract.task import Transition
from revolute_engine import Model

from ..access.call import current_client
from ..access.caller import caller_name
from ..compute.stepping import State, advance, start_state
from ..domain.service import Service
from .specs import DISCOUNT, QPOS, QVEL, REWARD, specs_of
from .task import WorldTask, restarted

RUNNING = pb.EnvironmentStateType.RUNNING
TERMINATED = pb.EnvironmentStateType.TERMINATED
INTERRUPTED = pb.EnvironmentStateType.INTERRUPTED


@dataclasses.dataclass(frozen=True)
class Moment:
    """Answer to one step: the state of the episode, and the observations by uid."""

    state: int
    observations: Mapping[int, Any]


class World:
    """A world; the stream of its agent makes one call at a time."""

    def __init__(self, service: Service, model: Model, task: WorldTask) -> None:
        self.name = secrets.token_hex(16)
        self.owner = caller_name()
        self.client = current_client()
        self.model = model
        self.specs = specs_of(model, task)
        self.joined = False
        self.destroyed = False
        self._service = service
        self._task = task
        self._random = np.random.default_rng(task.seed)
        self._actions = 0
        self._held = np.zeros(model.nu)
        self._state: State | None = None
        self._running = False
        self._interruption: asyncio.Event | None = None

    @property
    def running(self) -> bool:
        """Whether an episode is running."""
        return self._running

    def reset(self, settings: Mapping[str, Any]) -> None:
        """End the episode; the next step starts a new one, with the start in the settings if they have one.

        Raises:
            ArgumentError: a setting has a wrong type or shape.
        """
        self._restart(settings)
        self._end()

    async def interrupt(self, settings: Mapping[str, Any]) -> None:
        """Reset the world from another stream; wait until its agent gets INTERRUPTED at its next step.

        Raises:
            ArgumentError: a setting has a wrong type or shape.
        """
        self._restart(settings)
        if self._running:
            self._interruption = self._interruption or asyncio.Event()
            await self._interruption.wait()

    async def step(self, ctrl: Float64Array | None) -> Moment:
        """Take an action, or start an episode if none is running.

        Args:
            ctrl: controls, [nu]; None repeats the last ones of this episode, or zero at its start.

        Raises:
            DivergedError: the state became non-finite; the next step starts a new episode.
        """
        if not self._running or self._state is None:
            return await self._begin()
        if self._interruption is not None:
            before = self._state
            self._end()
            return self._moment(INTERRUPTED, before, 0.0)
        return await self._act(self._held if ctrl is None else ctrl, self._state)

    def leave(self) -> None:
        """Remove the agent and end its episode."""
        self.joined = False
        self._end()

    def _restart(self, settings: Mapping[str, Any]) -> None:
        """Change the start settings of later episodes."""
        self._task = restarted(self._task, self.model, settings)
        if "seed" in settings:
            self._random = np.random.default_rng(self._task.seed)

    async def _begin(self) -> Moment:
        qpos, qvel = self._task.task.draw_start(self._random, self.model)
        service = self._service
        self._state = await service.pool.run(
            lambda _token: start_state(service.engine, self.model, 1, qpos, qvel)
        )
        self._running, self._actions = True, 0
        self._held = np.zeros(self.model.nu)
        return self._moment(RUNNING, self._state, 0.0)

    async def _act(self, ctrl: Float64Array, before: State) -> Moment:
        service, task = self._service, self._task.task
        after = await service.pool.run(
            lambda token: advance(service.engine, self.model, before, ctrl, task.hold, token)
        )
        if after.status[0]:
            self._end()
            raise DivergedError.expected(
                "ctrl",
                "an action that the physics survives",
                f"states beyond the finite numbers after action {self._actions + 1}",
                advice="the next step starts a new episode",
            )
        self._state, self._held = after, ctrl
        self._actions += 1
        last = task.is_last(self._actions)
        seconds = task.hold * self.model.timestep
        states = before.qpos, before.qvel, ctrl[None], after.qpos, after.qvel
        transition = Transition(*states, seconds, np.array([last]))
        reward = float(task.rewards(transition)[0])
        if task.ends(transition)[0]:
            self._end()
            return self._moment(TERMINATED, after, reward)
        if last:
            self._end()
            return self._moment(INTERRUPTED, after, reward)
        return self._moment(RUNNING, after, reward)

    def _end(self) -> None:
        self._running, self._state = False, None
        if self._interruption is not None:
            self._interruption.set()
            self._interruption = None

    def _moment(self, kind: int, state: State, reward: float) -> Moment:
        discount = 0.0 if kind == TERMINATED else self._task.discount
        observations = {QPOS: state.qpos[0], QVEL: state.qvel[0], REWARD: reward, DISCOUNT: discount}
        return Moment(kind, observations)

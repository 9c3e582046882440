"""Episodes of a batch of environments: their states, and what an action does to them."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, TypeVar

import numpy as np

from ..contract.arrays import Float64Array, as_float64
from ..contract.errors import NotFoundError
from ..contract.task import Task, Transition
from ..model import ModelHandle
from ..session import Session
from ..simulator import Simulator
from .contact_forces import contact_forces

Result = TypeVar("Result")


@dataclass(frozen=True)
class Outcome:
    """What an action gave each environment.

    Attributes:
        reward: [batch].
        terminated: whether the task or a divergence ends the episode, [batch].
        truncated: whether the episode has reached its length, [batch].
        diverged: whether the environment is no longer finite, [batch]; its observation is the one before.
        derivatives: `state_by_action` [batch, nq + nv, nu], and with a loss as reward also
            `reward_by_action` [batch, nu]; empty unless asked for.
    """

    reward: Float64Array
    terminated: np.ndarray
    truncated: np.ndarray
    diverged: np.ndarray
    derivatives: Mapping[str, Float64Array]


class Episodes:
    """A batch of environments with a task.

    Args:
        sim: the simulator.
        model: the model.
        task: the task.
        count: number of environments.
        derivatives: whether actions return derivatives.

    Attributes:
        qpos: configurations, [batch, nq].
        qvel: velocities, [batch, nv].
    """

    def __init__(
        self, sim: Simulator, model: ModelHandle, task: Task, count: int, *, derivatives: bool
    ) -> None:
        task.check(model)
        self.model, self.task, self.count = model, task, count
        self._sim = sim
        self._derivatives = derivatives
        self._session: Session | None = None
        self._is_ahead = True
        self._actions = np.zeros(count, int)
        self._forces: Float64Array | None = None
        self._ctrl = np.zeros((count, model.nu))
        self.qpos = np.tile(model.qpos0, (count, 1))
        self.qvel = np.tile(model.qvel0, (count, 1))

    @property
    def observation(self) -> Float64Array:
        """The observations, [batch, n]."""
        return self.task.observation(self.qpos, self.qvel, self.contact_force)

    @property
    def contact_force(self) -> Float64Array | None:
        """The contact forces, as in `Transition`; with the last action's controls, zero at a start."""
        if self.task.contact_forces and self._forces is None:
            self._forces = self._with_session(lambda session: contact_forces(session, self.model, self._ctrl))
        return self._forces

    def restart(self, number: int, random: np.random.Generator) -> None:
        """Start a new episode in one environment."""
        qpos, qvel = self.task.draw_start(random, self.model)
        self.set_state(number, qpos, qvel)
        self._actions[number] = 0
        self._ctrl[number] = 0.0

    def set_state(self, number: int, qpos: Any, qvel: Any) -> None:
        """Replace the state of one environment."""
        self.qpos[number] = as_float64("qpos", qpos)
        self.qvel[number] = as_float64("qvel", qvel)
        # the session gets it with its next call
        self._is_ahead, self._forces = True, None

    def act(self, ctrl: Float64Array) -> Outcome:
        """Hold controls [batch, nu] for the task's steps."""
        before = self.qpos, self.qvel
        derivatives: dict[str, Float64Array] = {}
        if self._derivatives:
            after, status, derivatives = self._differentiated(ctrl)
        else:
            after, status = self._stepped(ctrl)
        diverged = status != 0
        self.qpos, self.qvel = (
            np.where(diverged[:, None], old, new) for old, new in zip(before, after, strict=True)
        )
        self._is_ahead = self._derivatives or bool(diverged.any())
        self._ctrl, self._forces = np.array(ctrl), None
        seconds = self.task.hold * self.model.timestep
        self._actions += 1
        truncated = self.task.is_last(self._actions)
        states = self.qpos, self.qvel
        transition = Transition(*before, ctrl, *states, seconds, truncated, self.contact_force)
        reward = np.where(diverged, self.task.diverged_reward, self.task.rewards(transition))
        self._add_reward_by_action(derivatives, transition)
        return Outcome(reward, self.task.ends(transition) | diverged, truncated, diverged, derivatives)

    def close(self) -> None:
        """Close the session."""
        if self._session is not None:
            self._session.close()
            self._session = None

    def _stepped(self, ctrl: Float64Array) -> tuple[tuple[Float64Array, Float64Array], np.ndarray]:
        found = self._with_session(lambda session: session.step(ctrl, steps=self.task.hold))
        return (found.qpos, found.qvel), found.status

    def _with_session(self, call: Callable[[Session], Result]) -> Result:
        """Return what a call gives on a session that has the states of the environments."""
        try:
            return call(self._settled())
        except NotFoundError:
            # the lease of the session has ended, but its state is here
            self._session = None
            return call(self._settled())

    def _settled(self) -> Session:
        if self._session is None:
            self._session = self._sim.session(self.model, self.count)
            self._is_ahead = True
        if self._is_ahead:
            self._session.set_state(self.qpos, self.qvel, step_count=0)
            self._is_ahead = False
        return self._session

    def _differentiated(
        self, ctrl: Float64Array
    ) -> tuple[tuple[Float64Array, Float64Array], np.ndarray, dict[str, Float64Array]]:
        """Step by a rollout, which has the bits of the session's step, and differentiate its last state."""
        nq, nv = self.model.nq, len(self.model.qvel0)
        held = np.repeat(ctrl[:, None], self.task.hold, axis=1)
        with self._sim.rollout(self.model, self.qpos, self.qvel, held, states="final") as trajectory:
            after = np.array(trajectory.final_qpos), np.array(trajectory.final_qvel)
            status = np.array(trajectory.status)
            if status.all():
                return (
                    after,
                    status,
                    {"state_by_action": np.full((self.count, nq + nv, ctrl.shape[1]), np.nan)},
                )
            # one cotangent for each coordinate of the last state
            ends = np.broadcast_to(np.eye(nq + nv)[:, None, None], (nq + nv, self.count, 1, nq + nv))
            pulled = trajectory.backward(ends[..., :nq], ends[..., nq:], times=[-1], wrt=("ctrl",)).ctrl
        return after, status, {"state_by_action": pulled.sum(axis=2).swapaxes(0, 1)}

    def _add_reward_by_action(self, derivatives: dict[str, Float64Array], transition: Transition) -> None:
        """d reward / d action = r_s' ds'/da + r_a."""
        bars = self.task.reward_cotangents(transition) if derivatives else None
        if bars is not None:
            by_state = np.concatenate(bars[:2], axis=1)
            through = np.einsum("bs,bsa->ba", by_state, derivatives["state_by_action"])
            derivatives["reward_by_action"] = through + bars[2]

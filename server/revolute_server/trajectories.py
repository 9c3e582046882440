"""Trajectories: computed, kept, differentiated, deleted; and the stateless ValueAndGradient and Jacobian."""

from __future__ import annotations

import asyncio
import contextlib
import dataclasses
import functools
from collections.abc import AsyncGenerator, AsyncIterator, Awaitable, Callable, Mapping, Sequence
from typing import Any

import numpy as np

from revolute.checkpoints import EVERY, Checkpoints
from revolute.errors import ArgumentError
from revolute.gradient_report import GradientReport
from revolute.loss import Loss
from revolute_engine import Engine, Gradient, Jvp, Model, Rollout, StepJacobian, check_gradient
from revolute_engine._gradient_check.check import MAX_DIRECTIONS, MAX_STEPS
from revolute_engine._joint import BackwardCall, RolloutCall, ValueAndGradientCall
from revolute_engine._segments import Segment, SegmentedRollout

from .callers import caller_name, require_owner
from .engine_pool import EnginePool
from .joint_calls import backward_work, rollout_work, value_and_gradient_work
from .memory import MemoryBudget
from .models import Models
from .registry import Registry, new_id
from .stepping import jacobian_bytes

_ROLLOUTS_PER_DIRECTION, _ROLLOUTS_OF_ENTRIES = 64, 2048
"""Trajectories that a check of gradients holds at a time: differences from both sides, of many sizes, along
directions, or by the single entries of an input whose gradient is wrong."""

DEFAULT_WRT = ("qpos", "qvel", "ctrl")

Pull = Callable[[Any, Any, Sequence[str]], Awaitable[Gradient]]


@dataclasses.dataclass(frozen=True)
class Trajectory:
    """A rollout that Backward can refer to by id."""

    id: str
    model: Model
    rollout: Rollout
    owner: str = dataclasses.field(default_factory=caller_name)


@dataclasses.dataclass(frozen=True)
class ValueAndGradient:
    """A loss per environment, its gradient, and the states it was computed from."""

    value: np.ndarray
    gradient: Gradient
    rollout: Rollout


class Trajectories:
    """Rollout, GetTrajectory, Backward, Jvp, ValueAndGradient, Jacobian, CheckGradient and
    DeleteTrajectory."""

    def __init__(
        self, engine: Engine, pool: EnginePool, budget: MemoryBudget, models: Models, limit: int
    ) -> None:
        self._engine = engine
        self._pool = pool
        self._budget = budget
        self._models = models
        self._trajectories: Registry[Trajectory] = Registry("trajectory", limit)

    async def rollout(
        self,
        model_id: str,
        qpos: Any,
        qvel: Any,
        ctrl: Any,
        params: Mapping[str, Any] | None = None,
        *,
        checkpoints: str = "every",
        states: str | None = None,
    ) -> Trajectory:
        """Simulate and keep the trajectory, unless its checkpoints are "none"; it then has no id.

        Returns:
            The trajectory with the states that were asked for; those that no gradient needs are not kept.

        Raises:
            ArgumentError: shapes or values do not fit the model.
            NotFoundError: the model is not registered.
            LimitError: there is no room for the trajectory.
        """
        model = self._models.get(model_id)
        policy = Checkpoints.parse(checkpoints)
        if policy.differentiable:
            self._trajectories.check_room()
        passing = policy.policy != "every" and states == "all"
        with (
            self._budget.reserve("a trajectory", _kept_bytes(model, ctrl, policy)) as reservation,
            self._budget.reserve("all its states", _states_bytes(model, ctrl) if passing else 0),
        ):
            call = RolloutCall(qpos, qvel, ctrl, params or None, policy, states)
            rollout = await self._pool.run_work(rollout_work(self._engine, model, call))
            answered = dataclasses.replace(rollout, all_states=None) if states == "final" else rollout
            if not policy.differentiable:
                return Trajectory("", model, answered)
            kept = Trajectory(new_id(), model, rollout.without_states())
            self._trajectories.add(kept.id, kept, reservation)
            return dataclasses.replace(kept, rollout=answered)

    async def stream_rollout(
        self,
        model_id: str,
        qpos: Any,
        qvel: Any,
        ctrl: Any,
        params: Mapping[str, Any] | None = None,
        segment_steps: int | None = None,
    ) -> AsyncGenerator[Segment | Trajectory, None]:
        """Simulate segment by segment, at most one ahead of what is taken; keep the trajectory at the end.

        Args:
            model_id: the model.
            qpos: start configurations.
            qvel: start velocities.
            ctrl: controls of all steps.
            params: model parameters by name.
            segment_steps: steps of one segment; None for as many as suit a network.

        Yields:
            The segments, and then the trajectory that is kept.

        Raises:
            ArgumentError: shapes or values do not fit the model.
            NotFoundError: the model is not registered.
            LimitError: there is no room for the trajectory.
        """
        model = self._models.get(model_id)
        self._trajectories.check_room()
        with self._budget.reserve("a trajectory", _kept_bytes(model, ctrl, EVERY)) as reservation:
            pieces = await self._pool.run(
                lambda _token: SegmentedRollout(model, qpos, qvel, ctrl, params or None)
            )
            ahead = asyncio.ensure_future(self._segment(model, pieces, segment_steps))
            try:
                while True:
                    segment = await ahead
                    if pieces.over:
                        yield segment
                        break
                    ahead = asyncio.ensure_future(self._segment(model, pieces, segment_steps))
                    yield segment
            finally:
                ahead.cancel()
            trajectory = Trajectory(new_id(), model, pieces.result())
            self._trajectories.add(trajectory.id, trajectory, reservation)
            yield trajectory

    async def _segment(self, model: Model, pieces: SegmentedRollout, steps: int | None) -> Segment:
        return pieces.take(await self._pool.run_work(rollout_work(self._engine, model, pieces.call(steps))))

    def get(self, trajectory_id: str) -> Trajectory:
        """Look a trajectory up.

        Raises:
            NotFoundError: it was deleted or never there.
        """
        return self._trajectories.get(trajectory_id)

    async def with_states(self, trajectory_id: str, states: str | None = None) -> Trajectory:
        """Look a trajectory up and give it all its states, replayed where they are not kept.

        Args:
            trajectory_id: the trajectory.
            states: "all" or None; "final" leaves the states out.

        Raises:
            ArgumentError: `states` is another word.
            NotFoundError: the trajectory was deleted or never there.
            LimitError: there is no room for the states.
        """
        kept = self.get(trajectory_id)
        if states not in (None, "all", "final"):
            raise ArgumentError.expected("states", "'all' or 'final'", repr(states)[:60])
        if states == "final":
            return dataclasses.replace(kept, rollout=dataclasses.replace(kept.rollout, all_states=None))
        if kept.rollout.all_states is not None:
            return kept
        with self._budget.reserve("all its states", _states_bytes(kept.model, kept.rollout.ctrl)):
            found = await self._pool.run(
                lambda token: self._engine.states(kept.model, kept.rollout, cancel=token)
            )
        return dataclasses.replace(kept, rollout=dataclasses.replace(kept.rollout, all_states=found))

    async def backward(
        self,
        trajectory_id: str,
        qpos_bar: Any,
        qvel_bar: Any,
        wrt: Sequence[str] = DEFAULT_WRT,
        *,
        times: Sequence[int] | None = None,
    ) -> Gradient:
        """Pull one or K cotangents back through a kept trajectory.

        Args:
            trajectory_id: the trajectory.
            qpos_bar: cotangents of the positions, or None.
            qvel_bar: cotangents of the velocities, or None.
            wrt: what to differentiate by.
            times: which states the cotangents are of; None for all.

        Raises:
            ArgumentError: shapes do not fit the trajectory, or a name in `wrt` is unknown.
            NotFoundError: the trajectory was deleted or never there.
            DivergedError: no environment stayed finite.
        """
        return await self._pull(self._trajectories.get(trajectory_id), qpos_bar, qvel_bar, wrt, times)

    async def _pull(
        self,
        trajectory: Trajectory,
        qpos_bar: Any,
        qvel_bar: Any,
        wrt: Sequence[str],
        times: Sequence[int] | None = None,
    ) -> Gradient:
        with self._budget.reserve("a gradient", _gradient_bytes(trajectory, qpos_bar, qvel_bar, wrt, times)):
            call = BackwardCall(trajectory.rollout, qpos_bar, qvel_bar, tuple(wrt), times)
            return await self._pool.run_work(backward_work(self._engine, trajectory.model, call))

    async def jvp(self, trajectory_id: str, tangents: Mapping[str, Any]) -> Jvp:
        """Push a direction forward through a kept trajectory.

        Args:
            trajectory_id: the trajectory.
            tangents: qpos_tan, qvel_tan, ctrl_tan and params_tan, each may be None.

        Raises:
            ArgumentError: shapes do not fit the trajectory, or a name of a parameter is unknown.
            NotFoundError: the trajectory was deleted or never there.
            DivergedError: no environment stayed finite.
        """
        kept = self._trajectories.get(trajectory_id)
        controls = kept.rollout.ctrl.nbytes
        states = 8 * 2 * kept.model.nv * kept.rollout.batch * (kept.rollout.steps + 1)
        if kept.rollout.all_states is None:
            states += _states_bytes(kept.model, kept.rollout.ctrl)
        with self._budget.reserve("tangents", controls + states):
            return await self._pool.run(
                lambda token: self._engine.jvp(kept.model, kept.rollout, **tangents, cancel=token)
            )

    async def jacobian(
        self, model_id: str, qpos: Any, qvel: Any, ctrl: Any, params: Mapping[str, Any] | None = None
    ) -> StepJacobian:
        """Differentiate one step by its state and controls; nothing is kept.

        Raises:
            ArgumentError: shapes or values do not fit the model.
            NotFoundError: the model is not registered.
            DivergedError: no environment's step is finite.
        """
        model = self._models.get(model_id)
        batch = len(ctrl) if np.ndim(ctrl) == 2 else 1
        with self._budget.reserve("a Jacobian", jacobian_bytes(model, batch)):
            return await self._pool.run(
                lambda token: self._engine.jacobian(
                    model, qpos, qvel, ctrl, params=params or None, cancel=token
                )
            )

    async def check_gradient(
        self, model_id: str, start: Mapping[str, Any], *, steps: int, directions: int, **options: Any
    ) -> GradientReport:
        """Check the gradients of one trajectory; nothing is kept.

        Args:
            model_id: the model.
            start: qpos, qvel and ctrl, each may be None, and params.
            steps: length of the trajectory when there is no ctrl.
            directions: random directions per input.
            options: further arguments of `revolute_engine.check_gradient`.

        Raises:
            ArgumentError: shapes or values do not fit the model, or a number is out of range.
            NotFoundError: the model is not registered.
            DivergedError: the trajectory diverges.
            LimitError: the trajectories of the differences do not fit.
        """
        model = self._models.get(model_id)
        length = steps if start["ctrl"] is None else len(np.atleast_1d(start["ctrl"]))
        with self._budget.reserve("a check of gradients", _check_bytes(model, length, directions)):
            return await self._pool.run(
                lambda token: check_gradient(
                    self._engine, model, **start, steps=steps, directions=directions, **options, cancel=token
                )
            )

    async def value_and_gradient(
        self,
        model_id: str,
        qpos: Any,
        qvel: Any,
        ctrl: Any,
        loss: Loss,
        params: Mapping[str, Any] | None = None,
        wrt: Sequence[str] = DEFAULT_WRT,
        *,
        checkpoints: str = "every",
    ) -> ValueAndGradient:
        """Simulate, evaluate a loss given as data, and pull its gradient back; nothing is kept.

        Raises:
            ArgumentError: shapes or values do not fit the model, or the loss does not fit the trajectory.
            NotFoundError: the model is not registered.
            DivergedError: no environment stayed finite.
        """
        model = self._models.get(model_id)
        policy = Checkpoints.parse(checkpoints)
        # checkpoints, also those at work, and the gradient
        size = _kept_bytes(model, ctrl, policy) + _working_bytes(model, ctrl, policy)
        with self._budget.reserve("a value and gradient", size):
            inputs = RolloutCall(qpos, qvel, ctrl, params or None, policy)
            work = value_and_gradient_work(
                self._engine, model, ValueAndGradientCall(inputs, loss, tuple(wrt))
            )
            value, gradient, rollout = await self._pool.run_work(work)
            return ValueAndGradient(np.asarray(value), gradient, rollout)

    @contextlib.asynccontextmanager
    async def passing(
        self,
        model_id: str,
        qpos: Any,
        qvel: Any,
        ctrl: Any,
        params: Mapping[str, Any] | None = None,
        *,
        checkpoints: str = "every",
    ) -> AsyncIterator[tuple[Trajectory, Pull]]:
        """Simulate for a caller who has a loss of its own; nothing is kept after the block.

        Yields:
            The trajectory, and what pulls cotangents (qpos_bar, qvel_bar, wrt) back through it.

        Raises:
            ArgumentError: shapes or values do not fit the model.
            NotFoundError: the model is not registered.
            LimitError: there is no room for the trajectory.
        """
        model, policy = self._models.get(model_id), Checkpoints.parse(checkpoints)
        size = _kept_bytes(model, ctrl, policy)
        if policy != EVERY:
            size += _states_bytes(model, ctrl)
        with self._budget.reserve("a trajectory", size):
            call = RolloutCall(qpos, qvel, ctrl, params or None, policy, "all")
            rollout = await self._pool.run_work(rollout_work(self._engine, model, call))
            trajectory = Trajectory("", model, rollout)
            yield trajectory, functools.partial(self._pull, trajectory)

    def delete(self, trajectory_id: str) -> None:
        """Forget a trajectory.

        Raises:
            NotFoundError: it was deleted before or never there.
            PermissionDeniedError: it is another caller's.
        """
        require_owner("trajectory", self._trajectories.get(trajectory_id).owner)
        self._trajectories.remove(trajectory_id)

    def all(self) -> list[Trajectory]:
        """Return every kept trajectory, oldest first."""
        return list(self._trajectories)

    def __len__(self) -> int:
        return len(self._trajectories)


def _check_bytes(model: Model, steps: int, directions: int) -> int:
    """Bytes that a check of gradients holds; what is out of range will be refused."""
    environments = max(_ROLLOUTS_PER_DIRECTION * min(directions, MAX_DIRECTIONS), _ROLLOUTS_OF_ENTRIES)
    return 8 * environments * min(max(steps, 0), MAX_STEPS) * (model.nq + model.nv + 2 * model.nu)


def _sizes(ctrl: Any) -> tuple[int, int]:
    """Return batch and time of controls; zeros for a shape that will be refused."""
    shape = np.shape(ctrl)
    if len(shape) not in (2, 3):
        return 0, 0
    return (shape[0] if len(shape) == 3 else 1), shape[-2]


def _kept_bytes(model: Model, ctrl: Any, checkpoints: Checkpoints) -> int:
    """Bytes that a rollout with these controls keeps, the controls and the final state among them."""
    batch, steps = _sizes(ctrl)
    states = checkpoints.kept_states(steps) + (checkpoints.policy != "every")
    return 8 * batch * (states * (model.nq + model.nv) + steps * model.nu)


def _working_bytes(model: Model, ctrl: Any, checkpoints: Checkpoints) -> int:
    """Bytes of the states that a backward pass keeps meanwhile, if all environments run at once."""
    batch, steps = _sizes(ctrl)
    return 8 * batch * checkpoints.working_states(steps) * (model.nq + model.nv)


def _states_bytes(model: Model, ctrl: Any) -> int:
    """Bytes of all states."""
    batch, steps = _sizes(ctrl)
    return 8 * batch * (steps + 1) * (model.nq + model.nv)


def _gradient_bytes(
    kept: Trajectory, qpos_bar: Any, qvel_bar: Any, wrt: Sequence[str], times: Sequence[int] | None
) -> int:
    """Bytes of a gradient, of a copy of its cotangents and of the states that are kept meanwhile."""
    model, rollout = kept.model, kept.rollout
    given = np.size(qpos_bar) + np.size(qvel_bar)
    states = rollout.batch * (rollout.steps + 1 if times is None else max(1, len(times)))
    sizes = (np.size(qpos_bar) // max(1, states * model.nq), np.size(qvel_bar) // max(1, states * model.nv))
    by_ctrl = rollout.ctrl.size if "ctrl" in wrt else 0
    return 8 * (given + max(1, *sizes) * by_ctrl) + _working_bytes(model, rollout.ctrl, rollout.checkpoints)

"""Measurements at states: poses, velocities, sensors and contacts; no record is kept."""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from revolute.contract.errors import ArgumentError
from revolute.contract.measures import measure_of
from revolute_engine import Engine, Model
from revolute_engine.measured_states import States, check_quantities

from ..compute.memory_budget import MemoryBudget
from ..compute.pool import EnginePool
from ..compute.trajectory_bytes import states_bytes
from .models import Models
from .sessions import Sessions
from .trajectories import Trajectories, Trajectory

Arrays = dict[str, np.ndarray]


@dataclasses.dataclass(frozen=True)
class Source:
    """Where the states come from: the request, a kept trajectory, or a session.

    Attributes:
        model_id: the model of states in the request.
        trajectory_id: a kept trajectory, or empty.
        session_id: a session, or empty.
        times: times of the trajectory's states; None for all.
        qpos: configurations in the request.
        qvel: velocities in the request; None for zero.
        ctrl: controls in the request, also for a session; None without.
        time: time of the first state in the request; None for zero.
        params: parameters in the request.
        inputs: of `STEP_INPUTS` in the request, also for a session, by name.
        state: an earlier state of the session, with qpos, qvel, step_count and poses of mocap bodies; None
            for the current one.
        trajectory: a trajectory that need not be kept, in place of `trajectory_id`, or None.
    """

    model_id: str = ""
    trajectory_id: str = ""
    session_id: str = ""
    times: Sequence[int] | None = None
    qpos: Any = None
    qvel: Any = None
    ctrl: Any = None
    time: float | None = None
    params: Mapping[str, Any] = dataclasses.field(default_factory=dict)
    inputs: Mapping[str, Any] = dataclasses.field(default_factory=dict)
    state: Mapping[str, Any] | None = None
    trajectory: Trajectory | None = None


@dataclasses.dataclass(frozen=True)
class Measured:
    """What was measured: quantities, Jacobians, and the gradient of given cotangents, by name."""

    arrays: Arrays
    jacobians: Arrays
    gradient: Arrays


class Measurements:
    """Measure and FindContacts.

    Args:
        engine: measures.
        pool: runs the engine calls.
        budget: bounds the memory of running calls.
        models: the registered models.
        trajectories: the kept trajectories.
        sessions: the open sessions.
    """

    def __init__(
        self,
        engine: Engine,
        pool: EnginePool,
        budget: MemoryBudget,
        models: Models,
        trajectories: Trajectories,
        sessions: Sessions,
    ) -> None:
        self._engine = engine
        self._pool = pool
        self._budget = budget
        self._models = models
        self._trajectories = trajectories
        self._sessions = sessions

    async def check(self, argument: str, model_id: str, names: Sequence[str]) -> None:
        """Check the names of quantities before the call that computes the states to measure at.

        Raises:
            ArgumentError: a name is unknown, or the engine does not compute a sensor.
            NotFoundError: the model is not registered.
        """
        check_quantities(await self._models.get(model_id), argument, names)

    async def quantities(self, source: Source, names: Sequence[str]) -> Arrays:
        """Measure at states; see `measure`."""
        return (await self.measure(source, names, [], {}, [])).arrays

    async def measure(
        self,
        source: Source,
        quantities: Sequence[str],
        jacobians: Sequence[str],
        cotangents: Mapping[str, Any],
        wrt: Sequence[str],
    ) -> Measured:
        """Measure at states, and pull cotangents back to them.

        Args:
            source: the states.
            quantities: names of what to measure.
            jacobians: names of what to differentiate by the tangent of qpos.
            cotangents: d loss / d quantity by name.
            wrt: inputs to pull the cotangents back to; empty for qpos and qvel.

        Raises:
            ArgumentError: a name is unknown, a shape does not fit, or the engine does not compute a sensor.
            NotFoundError: the model, trajectory or session does not exist.
        """
        if not (quantities or jacobians or cotangents):
            raise ArgumentError.expected("quantities", "at least one name, such as 'site_pos'", "none")
        model, states = await self._states(source)
        engine = self._engine

        def work(token: Any) -> Measured:
            arrays = engine.measure(model, quantities, states, cancel=token) if quantities else {}
            rows = engine.measure_jacobian(model, jacobians, states, cancel=token) if jacobians else {}
            gradient = {}
            if cotangents:
                gradient = engine.measure_backward(
                    model, cotangents, states, wrt=wrt or ("qpos", "qvel"), cancel=token
                )
            return Measured(arrays, rows, gradient)

        count = states.qpos.shape[0] * states.qpos.shape[1]
        size = 8 * count * (
            sum(_numbers(model, name) for name in quantities)
            + sum(_numbers(model, name) ** 2 + _numbers(model, name) * model.nv for name in jacobians)
            + model.nq
            + 2 * model.nv
            + 2 * model.nu
        ) + 2 * sum(np.asarray(bar).nbytes for bar in cotangents.values())
        with self._budget.reserve("a measurement", size):
            return await self._pool.run(work, count)

    async def contacts(self, source: Source) -> Arrays:
        """Find contacts and their forces at states.

        Raises:
            ArgumentError: a shape does not fit, or there are no controls.
            NotFoundError: the model, trajectory or session does not exist.
        """
        model, states = await self._states(source)
        count = states.qpos.shape[0] * states.qpos.shape[1]
        return await self._pool.run(lambda _token: self._engine.contacts(model, states), count)

    async def _states(self, source: Source) -> tuple[Model, States]:
        engine = self._engine
        if source.trajectory_id or source.trajectory:
            kept = source.trajectory or await self._trajectories.get(source.trajectory_id)
            with self._budget.reserve(
                "all its states", states_bytes(kept.model, kept.rollout.ctrl, kept.rollout.control)
            ):
                states = await self._pool.run(
                    lambda token: engine.states_of(kept.model, kept.rollout, source.times, cancel=token),
                    kept.rollout.batch * kept.rollout.steps,
                )
            return kept.model, states
        if source.session_id:
            model, state = await self._sessions.model_and_state(source.session_id)
            at = {**vars(state), **state.mocap} if source.state is None else source.state
            states = engine.states_to_measure(
                model,
                at["qpos"],
                at["qvel"],
                source.ctrl,
                time=at["step_count"] * model.timestep,
                params=state.params or None,
                inputs={**{name: at[name] for name in state.mocap}, **source.inputs},
                diverged=True,
            )
            return model, states
        model = await self._models.get(source.model_id)
        first = 0.0 if source.time is None else source.time
        steps = np.shape(source.qpos)[1] if np.ndim(source.qpos) == 3 else 1
        time = first + model.timestep * np.arange(steps)
        states = engine.states_to_measure(
            model,
            source.qpos,
            source.qvel,
            source.ctrl,
            time=time,
            params=source.params or None,
            inputs=source.inputs,
        )
        return model, states


def _numbers(model: Model, name: str) -> int:
    """Return about how many numbers a quantity gives."""
    named = measure_of("quantities", name)
    measure, element = named.measure, named.element
    if measure.kind == "sensor":
        return int(model.mujoco_model.nsensordata)
    count = len(getattr(model, f"{measure.kind}_names")) if element is None else 1
    return math.prod((count, measure.size))

"""Sessions: a batch of environments that the server holds and a client steps.

A step is all or nothing: the engine is a pure function, and the new state replaces the old one only when
the call is through, so a cancelled or refused call leaves the session as it was. One call at a time uses a
session; others wait.
"""

from __future__ import annotations

import asyncio
import contextlib
import dataclasses
from collections.abc import AsyncIterator
from typing import Any

from revolute.errors import ArgumentError, LimitError
from revolute_engine import Engine, Model, StepJacobian

from .callers import caller_name, require_owner
from .engine_pool import EnginePool
from .joint_calls import step_work
from .memory import MemoryBudget
from .models import Models
from .registry import Registry, new_id
from .stepping import State, StepCall, jacobian, jacobian_bytes, start_state


@dataclasses.dataclass
class Session:
    """A model, a number of environments and their state now."""

    id: str
    model: Model
    batch: int
    state: State
    deleted: bool = False
    owner: str = dataclasses.field(default_factory=caller_name)
    waiting: int = 0
    lock: asyncio.Lock = dataclasses.field(default_factory=asyncio.Lock)


class Sessions:
    """CreateSession, Reset, Step, GetState, Jacobian and DeleteSession."""

    def __init__(
        self,
        engine: Engine,
        pool: EnginePool,
        budget: MemoryBudget,
        models: Models,
        limit: int,
        client_limit: int | None = None,
    ) -> None:
        self._engine = engine
        self._pool = pool
        self._budget = budget
        self._models = models
        self._sessions: Registry[Session] = Registry("session", limit, client_limit)

    async def create(self, model_id: str, batch: int) -> Session:
        """Make a session whose environments are in the model's own state.

        Raises:
            ArgumentError: the batch is empty.
            NotFoundError: the model is not registered.
            LimitError: there is no room for another session.
        """
        model = self._models.get(model_id)
        if batch < 1:
            raise ArgumentError.expected("batch", "at least one environment", batch)
        self._sessions.check_room()
        with self._budget.reserve("a session", 8 * batch * (model.nq + model.nv + 1)) as reservation:
            state = await self._pool.run(lambda _token: start_state(self._engine, model, batch))
            session = Session(new_id(), model, batch, state)
            self._sessions.add(session.id, session, reservation)
            return session

    async def reset(self, session_id: str, qpos: Any = None, qvel: Any = None) -> State:
        """Put all environments back to a state, by default the model's own, at time zero.

        Raises:
            ArgumentError: the state does not fit the model.
            NotFoundError: the session was deleted or never there.
        """
        async with self._use(session_id) as session:
            session.state = await self._pool.run(
                lambda _token: start_state(self._engine, session.model, session.batch, qpos, qvel)
            )
            return session.state

    async def step(self, session_id: str, ctrl: Any, steps: int = 1) -> State:
        """Take steps with one control held.

        Args:
            session_id: the session.
            ctrl: [batch, nu], or [nu] for all environments.
            steps: how many; zero leaves the state as it is.

        Raises:
            ArgumentError: the control does not fit the model, or `steps` is negative.
            NotFoundError: the session was deleted or never there.
        """
        async with self._use(session_id) as session:
            state = session.state
            session.state = await self._pool.run_work(
                step_work(self._engine, session.model, StepCall(state, ctrl, steps))
            )
            return session.state

    def state(self, session_id: str) -> State:
        """Return the state after the last step that is through.

        Raises:
            NotFoundError: the session was deleted or never there.
        """
        return self._sessions.get(session_id).state

    async def jacobian(self, session_id: str, ctrl: Any) -> StepJacobian:
        """Differentiate a step from the state after the last step that is through.

        Args:
            session_id: the session.
            ctrl: [batch, nu], or [nu] for all environments.

        Raises:
            ArgumentError: the control does not fit the model.
            NotFoundError: the session was deleted or never there.
            DivergedError: no environment is left that has not diverged.
        """
        session = self._sessions.get(session_id)
        state, model = session.state, session.model
        with self._budget.reserve("a Jacobian", jacobian_bytes(model, session.batch)):
            return await self._pool.run(lambda token: jacobian(self._engine, model, state, ctrl, token))

    def get(self, session_id: str) -> Session:
        """Look a session up.

        Raises:
            NotFoundError: the session was deleted or never there.
        """
        return self._sessions.get(session_id)

    def delete(self, session_id: str) -> None:
        """End a session; calls that wait for it find it gone.

        Raises:
            NotFoundError: it was deleted before or never there.
            PermissionDeniedError: it is another caller's.
        """
        require_owner("session", self._sessions.get(session_id).owner)
        self._sessions.remove(session_id).deleted = True

    def all(self) -> list[Session]:
        """Return every session, oldest first."""
        return list(self._sessions)

    def __len__(self) -> int:
        return len(self._sessions)

    @contextlib.asynccontextmanager
    async def _use(self, session_id: str) -> AsyncIterator[Session]:
        """Hold a session of the caller's for one call; its lock is first come, first served."""
        session = self._sessions.get(session_id)
        require_owner("session", session.owner)
        if session.waiting > self._pool.queue:
            raise LimitError.expected(
                "queue",
                f"at most {self._pool.queue} calls that wait for one session",
                "one more",
                advice="call again later",
            )
        session.waiting += 1
        try:
            async with session.lock:
                if session.deleted:
                    self._sessions.get(session_id)
                yield session
        finally:
            session.waiting -= 1

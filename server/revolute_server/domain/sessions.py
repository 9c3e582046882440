"""Sessions: a batch of environments that the server holds and a client steps.

A step is all or nothing: the engine is a pure function, and the new state replaces the old one in the store
only when the call is through, so a cancelled or refused call leaves the session as it was. One call at a time
uses a session; others wait. Between replicas that share a store the version of the record decides: a state
is replaced only if it is still the one that the step began with, else the step is taken again from the new
one.
"""

from __future__ import annotations

import asyncio
import contextlib
import dataclasses
import time
from collections import deque
from collections.abc import AsyncIterator, Awaitable, Callable
from typing import Any

from revolute.contract.errors import (
    ArgumentError,
    LimitError,
    NotFoundError,
    RevoluteError,
    UnavailableError,
)
from revolute_engine import Engine, Model, StepJacobian

from ..access.call import current_client
from ..access.caller import caller_name, is_visible
from ..compute.memory_budget import MemoryBudget
from ..compute.merged_calls import step_work
from ..compute.pool import EnginePool
from ..compute.stepping import State, StepCall, changed_state, jacobian, jacobian_bytes, start_state
from ..store import MODEL, SESSION, Conflict, Entry, Put, Record, Store
from ..store.codec import decode, encode
from .cache import Cache
from .deletion import delete_owned
from .identifiers import new_id
from .leases import alive, checked_lease, expiry, is_over, missing, renew, seconds_left
from .models import Models
from .pagination import Page, page
from .request_ids import KeptAnswer, Ticket
from .shielded import shielded

_AT_ONCE_BYTES = 2 * 1024**2
"""Of a state that the event loop checks itself: a change of threads would take longer."""

_ANSWERS_BYTES = 64 * 1024**2
"""Of a session's large answers that are kept for repeated requests; its last answer is kept in any case."""

_LARGE_ANSWER = 16 * 1024

_ATTEMPTS = 32
"""Steps that may be overtaken by those of other replicas before one gives up."""


@dataclasses.dataclass
class Session:
    """A model, a number of environments and their state as this process knows it.

    Attributes:
        id: its id.
        model: what is simulated.
        batch: number of environments.
        lease: seconds without use after which it ends.
        owner: who made it.
        state: the state at `version`.
        version: version of the record in the store.
        expires: when it ends, as far as this process knows.
        waiting: calls that use it or wait for it.
        answers: large ones that this process has kept for it, the oldest first.
        lock: held by the call that uses it.
    """

    id: str
    model: Model
    batch: int
    lease: float
    owner: str
    state: State
    version: int
    expires: float | None
    waiting: int = 0
    answers: deque[KeptAnswer] = dataclasses.field(default_factory=deque)
    lock: asyncio.Lock = dataclasses.field(default_factory=asyncio.Lock)

    def put(self, state: State, *, expect: int, fingerprint: str = "") -> Put:
        """Return the write that stores a state; with the fingerprint of the request that led to it, it is the
        record of that request as well."""
        summary = {
            "model_id": self.model.id,
            "model": self.model.name,
            "owner": self.owner,
            "batch": self.batch,
            "lease": self.lease,
            "step_count": state.step_count,
        }
        kept = {
            "model_id": self.model.id,
            "lease": self.lease,
            "owner": self.owner,
            "state": vars(state),
            "fingerprint": fingerprint,
        }
        return Put(
            SESSION,
            self.id,
            encode(kept),
            expires=expiry(self.lease),
            summary=summary,
            parent=self.model.id,
            client=current_client(),
            expect=expect,
        )

    def surplus(self, size: int) -> list[KeptAnswer]:
        """Return the answers that are too many when one of `size` bytes comes."""
        total, surplus = size + sum(answer.size for answer in self.answers), []
        for answer in self.answers:
            if total <= _ANSWERS_BYTES:
                break
            surplus.append(answer)
            total -= answer.size
        return surplus


@dataclasses.dataclass(frozen=True)
class SessionInfo:
    """What listings say of a session."""

    id: str
    model_id: str
    batch: int
    step_count: int
    lease: float
    expires_in: float
    age: float

    @classmethod
    def of(cls, entry: Entry) -> SessionInfo:
        """Read it from a record's summary."""
        known, now = entry.summary, time.time()
        return cls(
            id=entry.key,
            model_id=known.get("model_id", ""),
            batch=known.get("batch", 0),
            step_count=known.get("step_count", 0),
            lease=known.get("lease", 0.0),
            expires_in=seconds_left(entry.expires),
            age=max(0.0, now - entry.created),
        )


class Sessions:
    """The verbs of SessionService."""

    def __init__(
        self,
        engine: Engine,
        pool: EnginePool,
        budget: MemoryBudget,
        models: Models,
        store: Store,
        lease: float,
        max_lease: float,
    ) -> None:
        self._engine = engine
        self._pool = pool
        self._budget = budget
        self._models = models
        self._store = store
        self._lease = lease
        self._max_lease = max_lease
        self._cache: Cache[Session] = Cache(budget)

    async def create(self, model_id: str, batch: int, lease: float | None, ticket: Ticket) -> Session:
        """Make a session whose environments are in the model's own state.

        Args:
            model_id: the model.
            batch: number of environments.
            lease: seconds without use after which it ends; None for the server's default.
            ticket: of the request.

        Raises:
            ArgumentError: the batch is empty, or the lease is not one that the server gives.
            NotFoundError: the model is not registered.
            LimitError: there is no room for another session.
        """
        model = await self._models.get(model_id)
        if batch < 1:
            raise ArgumentError.expected("batch", "at least one environment", batch)
        duration = checked_lease(lease, self._lease, self._max_lease)
        size = _bytes(model, batch)
        self._store.check_room(SESSION, current_client(), size)
        with self._budget.reserve("a session", size):
            state = await self._prepared(model, batch, lambda: start_state(self._engine, model, batch))
        return await self._open(model, batch, duration, state, ticket)

    async def fork(self, session_id: str, lease: float | None, ticket: Ticket) -> Session:
        """Make another session in the same state.

        Args:
            session_id: the session to copy.
            lease: as in `create`; None for that of the session.
            ticket: of the request.

        Raises:
            ArgumentError: the lease is not one that the server gives.
            NotFoundError: the session was deleted, has expired, was never there, or is another caller's.
            LimitError: there is no room for another session.
        """
        session = await self._current(session_id)
        duration = checked_lease(lease, session.lease, self._max_lease)
        self._store.check_room(SESSION, current_client(), _bytes(session.model, session.batch))
        return await self._open(session.model, session.batch, duration, session.state, ticket)

    async def reset(self, session_id: str, qpos: Any, qvel: Any, ticket: Ticket) -> State:
        """Put all environments back to a state, by default the model's own, at time zero.

        Args:
            session_id: the session.
            qpos: [batch, nq], or [nq] for all environments; the model's own when None.
            qvel: [batch, nv], or [nv] for all environments; the model's own when None.
            ticket: of the request.

        Raises:
            ArgumentError: the state does not fit the model.
            NotFoundError: the session was deleted, has expired, was never there, or is another caller's.
        """

        async def start(session: Session) -> State:
            model, batch = session.model, session.batch
            return await self._prepared(
                model, batch, lambda: start_state(self._engine, model, batch, qpos, qvel)
            )

        return await self._change(session_id, start, ticket)

    async def step(self, session_id: str, ctrl: Any, steps: int, ticket: Ticket) -> State:
        """Take steps with one control held.

        Args:
            session_id: the session.
            ctrl: [batch, nu], or [nu] for all environments.
            steps: how many; zero leaves the state as it is.
            ticket: of the request.

        Raises:
            ArgumentError: the control does not fit the model, or `steps` is negative.
            NotFoundError: the session was deleted, has expired, was never there, or is another caller's.
        """

        async def take(session: Session) -> State:
            model, state = session.model, session.state
            return await self._pool.run_work(step_work(self._engine, model, StepCall(state, ctrl, steps)))

        return await self._change(session_id, take, ticket)

    async def set_state(
        self, session_id: str, qpos: Any, qvel: Any, step_count: int | None, ticket: Ticket
    ) -> State:
        """Replace the state, or parts of it.

        Args:
            session_id: the session.
            qpos: [batch, nq], or [nq] for all environments; stays when None.
            qvel: [batch, nv], or [nv] for all environments; stays when None.
            step_count: steps since the last reset; stays when None.
            ticket: of the request.

        Raises:
            ArgumentError: the state does not fit the model, or `step_count` is negative.
            NotFoundError: the session was deleted, has expired, was never there, or is another caller's.
        """

        async def change(session: Session) -> State:
            model, state = session.model, session.state
            return await self._prepared(
                model,
                session.batch,
                lambda: changed_state(self._engine, model, state, qpos, qvel, step_count),
            )

        return await self._change(session_id, change, ticket)

    async def state(self, session_id: str) -> State:
        """Return the state after the last step that is through.

        Raises:
            NotFoundError: the session was deleted, has expired, was never there, or is another caller's.
        """
        return (await self._current(session_id)).state

    async def jacobian(self, session_id: str, ctrl: Any) -> StepJacobian:
        """Differentiate a step from the state after the last step that is through.

        Args:
            session_id: the session.
            ctrl: [batch, nu], or [nu] for all environments.

        Raises:
            ArgumentError: the control does not fit the model.
            NotFoundError: the session was deleted, has expired, was never there, or is another caller's.
            DivergedError: no environment is left that has not diverged.
        """
        session = await self._current(session_id)
        state, model = session.state, session.model
        with self._budget.reserve("a Jacobian", jacobian_bytes(model, session.batch)):
            steps = session.batch * 2 * model.nv
            return await self._pool.run(
                lambda token: jacobian(self._engine, model, state, ctrl, token), steps
            )

    async def keep_alive(self, session_id: str) -> float:
        """Renew the lease and return its duration.

        Raises:
            NotFoundError: the session was deleted, has expired, was never there, or is another caller's.
        """
        return (await self._current(session_id, must_renew=True)).lease

    async def info(self, session_id: str) -> SessionInfo:
        """Describe a session; its lease goes on as it is.

        Raises:
            NotFoundError: the session was deleted, has expired, was never there, or is another caller's.
        """
        return SessionInfo.of(await alive(self._store, SESSION, session_id))

    async def page(self, size: int, token: str) -> Page[SessionInfo]:
        """Describe the caller's sessions page by page, for an admin all; see `pages.page`."""
        found = await page(self._store, SESSION, size, token)
        return Page([SessionInfo.of(entry) for entry in found.entries], found.next_token)

    async def state_bytes(self, session_id: str) -> int:
        """Return the bytes of a session's state; 0 if it cannot be had, as a call on it will say."""
        try:
            session = await self._held(session_id)
        except UnavailableError:
            raise
        except RevoluteError:
            return 0
        return _bytes(session.model, session.batch)

    async def delete(self, session_id: str, ticket: Ticket) -> None:
        """End a session; calls that wait for it find it gone.

        Raises:
            NotFoundError: it was deleted before, has expired, was never there, or is another caller's.
        """
        await delete_owned(self._store, SESSION, session_id, ticket, self.forget)

    def waiting(self, session_id: str) -> int:
        """Return how many calls use a session here or wait for it."""
        session = self._cache.get(session_id)
        return session.waiting if session else 0

    def forget(self, session_id: str) -> None:
        """Hold no session that the store has no more."""
        self._cache.drop(session_id)

    def __len__(self) -> int:
        return self._store.count(SESSION)

    async def _prepared(self, model: Model, batch: int, make: Callable[[], State]) -> State:
        """Return a state that takes no steps to make: a large one is made on a worker."""
        if _bytes(model, batch) <= _AT_ONCE_BYTES:
            return make()
        return await self._pool.run(lambda _token: make())

    async def _open(self, model: Model, batch: int, lease: float, state: State, ticket: Ticket) -> Session:
        """Commit a new session."""
        session = Session(new_id(), model, batch, lease, caller_name(), state, 1, expiry(lease))
        try:
            await shielded(
                self._store.commit(session.put(state, expect=0), *ticket.writes(session)),
            )
        except Conflict as conflict:
            if conflict.kind != MODEL:
                raise
            self._models.forget(model.id)
            raise NotFoundError.missing("model", model.id) from None
        with self._budget.reserve("a session", _bytes(model, batch)) as reservation:
            return self._cache.add(session.id, session, reservation)

    async def _change(
        self, session_id: str, compute: Callable[[Session], Awaitable[State]], ticket: Ticket
    ) -> State:
        """Replace the state by what is computed from it."""
        async with self._use(session_id) as session:
            for _ in range(_ATTEMPTS):
                state = await compute(session)
                try:
                    await shielded(self._replace(session, state, ticket))
                    return state
                except Conflict as conflict:
                    if conflict.kind != SESSION:
                        raise
                # another replica was faster, or the session is gone
                await self._reload(session)
            raise UnavailableError.expected(
                "session", "one that other servers leave alone for a step", "their steps in between each time"
            )

    async def _replace(self, session: Session, state: State, ticket: Ticket) -> None:
        put = session.put(state, expect=session.version, fingerprint=ticket.fingerprint)
        record = ticket.writes(state, put.payload)
        surplus = session.surplus(put.size)
        await self._store.commit(put, *record, *(answer.let_go() for answer in surplus))
        session.state, session.version, session.expires = state, session.version + 1, put.expires
        for _ in surplus:
            session.answers.popleft()
        if record and put.size > _LARGE_ANSWER:
            answer = KeptAnswer(ticket.key, ticket.fingerprint, record[0].expires, put.size)
            session.answers.append(answer)

    async def _current(self, session_id: str, *, must_renew: bool = False) -> Session:
        """Return a session as it is in the store now, and renew its lease; if it must be, or no error."""
        session = self._cache.get(session_id)
        entry = await self._store.look(SESSION, session_id)
        if entry is None or is_over(entry.expires):
            self.forget(session_id)
            raise await missing(self._store, SESSION, session_id)
        if not is_visible(entry.owner):
            raise await missing(self._store, SESSION, session_id)
        if session is None:
            session = await self._load(session_id)
        elif session.version < entry.version:
            # a copy: the one in the cache belongs to whoever holds its lock
            session = await self._load(session_id, cached=False)
        expires = await renew(self._store, entry, session.lease, must=must_renew)
        if expires is not None:
            session.expires = expires
        return session

    async def _held(self, session_id: str) -> Session:
        """Return a session of the caller's as this process knows it, read from the store if it does not.

        Raises:
            NotFoundError: the session was deleted, has expired, was never there, or is another caller's.
        """
        session = self._cache.get(session_id)
        if session is None:
            await alive(self._store, SESSION, session_id)
            session = await self._load(session_id)
        if not is_visible(session.owner):
            raise await missing(self._store, SESSION, session_id)
        return session

    async def _load(self, session_id: str, *, cached: bool = True) -> Session:
        """Read a session from the store."""
        record = await self._record(session_id)
        document = decode(record.payload)
        model = await self._models.get(document["model_id"])
        state = State(**document["state"])
        known = {**record.summary, **document}
        session = Session(
            session_id,
            model,
            batch=len(state.status),
            lease=known["lease"],
            owner=known.get("owner", ""),
            state=state,
            version=record.version,
            expires=record.expires,
        )
        if not cached:
            return session
        with self._budget.reserve("a session", _bytes(model, session.batch)) as reservation:
            return self._cache.add(session_id, session, reservation)

    async def _reload(self, session: Session) -> None:
        """Take over what another replica made of a session."""
        record = await self._record(session.id)
        session.state = State(**decode(record.payload)["state"])
        session.version, session.expires = record.version, record.expires

    async def _record(self, session_id: str) -> Record:
        record = await self._store.get(SESSION, session_id)
        if record is None or is_over(record.expires):
            self.forget(session_id)
            raise await missing(self._store, SESSION, session_id)
        return record

    @contextlib.asynccontextmanager
    async def _use(self, session_id: str) -> AsyncIterator[Session]:
        """Hold a session of the caller's for one call; its lock is first come, first served."""
        session = await self._held(session_id)
        if session.waiting > self._pool.queue:
            raise LimitError.expected(
                "queue",
                f"at most {self._pool.queue} calls that wait for one session",
                "one more",
                advice="call again later",
            )
        session.waiting += 1
        try:
            with self._cache.using(session_id):
                async with session.lock:
                    if is_over(session.expires) or self._cache.get(session_id) is not session:
                        await self._reload(session)
                    yield session
        finally:
            session.waiting -= 1


def _bytes(model: Model, batch: int) -> int:
    """Bytes of the state of a session."""
    return 8 * batch * (model.nq + model.nv + 1)

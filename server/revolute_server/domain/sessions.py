"""Sessions: batches of environments that the server keeps and clients step.

A step is all or nothing: the engine is a pure function, and the new state replaces the old one in the store
only at the end of the call. A cancelled or refused call does not change the session. One call at a time uses
a session; others wait. If replicas share a store, a state is replaced only if the record still has the
version from which the step began; otherwise the step is repeated from the new state.
"""

from __future__ import annotations

import asyncio
import contextlib
import dataclasses
import math
import time
from collections import deque
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping, Sequence
from types import MappingProxyType
from typing import Any
from weakref import WeakValueDictionary

from revolute.contract.controllers import PLAIN, Control
from revolute.contract.errors import (
    ArgumentError,
    LimitError,
    NotFoundError,
    RevoluteError,
    UnavailableError,
)
from revolute_engine import CancelToken, Engine, Model, StepJacobian

from ..access.call import current_client
from ..access.caller import caller_name, is_visible
from ..compute.memory_budget import MemoryBudget
from ..compute.merged_calls import step_work
from ..compute.pool import EnginePool
from ..compute.stepping import (
    State,
    StepCall,
    advance,
    changed_params,
    changed_state,
    jacobian,
    jacobian_bytes,
    reset_state,
    start_state,
)
from ..store import MODEL, SESSION, Conflict, Entry, Put, Record, Store
from ..store.codec import decode, encode
from ..store.split import is_durable, session_id
from .cache import Cache
from .deletion import delete_owned
from .identifiers import new_id
from .leases import expiry, find_owned, has_expired, lease_duration, not_found, renew, seconds_left
from .models import Models
from .pagination import Page, page
from .request_ids import KeptAnswer, Ticket
from .shielded import shielded

_AT_ONCE_BYTES = 2 * 1024**2
"""States up to this size are made on the event loop, which is faster than a change of threads."""

_AT_ONCE_SECONDS = 150e-6
"""Steps of a session in memory that take at most this time run on the event loop, for the same reason."""

_ANSWERS_BYTES = 64 * 1024**2
"""Limit on the large answers of a session that are kept for repeats; the last answer is always kept."""

_LARGE_ANSWER = 16 * 1024
"""Answers of more bytes than this are large."""

_ATTEMPTS = 32
"""Number of times that a step is repeated because another replica was faster."""


@dataclasses.dataclass
class Session:
    """A session as this process knows it; the store may have a newer version.

    Attributes:
        id: id of the session.
        model: the simulated model.
        batch: number of environments.
        lease: time in s without use after which the session ends.
        owner: name of the caller who created it.
        state: state at `version`.
        version: version of the record in the store.
        expires: time of expiry, in s since 1970.
        waiting: number of calls that use the session or wait for it.
        step_seconds: time of the engine for a step of one environment in the last call that ran on a worker.
        answers: large answers that this process has recorded for repeats, oldest first.
        lock: held by the call that uses the session.
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
    step_seconds: float = math.inf
    answers: deque[KeptAnswer] = dataclasses.field(default_factory=deque)
    lock: asyncio.Lock = dataclasses.field(default_factory=asyncio.Lock)

    @property
    def durable(self) -> bool:
        """Whether the session is kept in the store, and not only in the memory of this process."""
        return is_durable(self.id)

    def timed(self, run: Callable[..., Any], count: int) -> Callable[..., Any]:
        """Return work that measures `step_seconds`; others' steps in the same batch make it too large."""

        def measured(calls: Sequence[Any], token: CancelToken) -> Any:
            began = time.perf_counter()
            found = run(calls, token)
            if count:
                self.step_seconds = (time.perf_counter() - began) / count
            return found

        return measured

    def put(self, state: State, *, expect: int, fingerprint: str = "") -> Put:
        """Return the write that stores a state.

        Args:
            state: the state.
            expect: version of the record that it replaces; 0 for a new one.
            fingerprint: of the request that led to the state; the payload then serves as the record of that
                request as well.
        """
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

    def answers_to_drop(self, size: int) -> list[KeptAnswer]:
        """Return the oldest answers that must go to make room for one of `size` bytes."""
        total, dropped = size + sum(answer.size for answer in self.answers), []
        for answer in self.answers:
            if total <= _ANSWERS_BYTES:
                break
            dropped.append(answer)
            total -= answer.size
        return dropped


@dataclasses.dataclass(frozen=True)
class SessionInfo:
    """Description of a session in listings; durations are in s."""

    id: str
    model_id: str
    batch: int
    step_count: int
    lease: float
    expires_in: float
    age: float
    durable: bool

    @classmethod
    def of(cls, entry: Entry) -> SessionInfo:
        """Build it from the summary of a record."""
        known, now = entry.summary, time.time()
        return cls(
            id=entry.key,
            model_id=known.get("model_id", ""),
            batch=known.get("batch", 0),
            step_count=known.get("step_count", 0),
            lease=known.get("lease", 0.0),
            expires_in=seconds_left(entry.expires),
            age=max(0.0, now - entry.created),
            durable=is_durable(entry.key),
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
        self._turns: WeakValueDictionary[str, asyncio.Lock] = WeakValueDictionary()

    async def create(
        self, model_id: str, batch: int, lease: float | None, ticket: Ticket, *, durable: bool = True
    ) -> Session:
        """Create a session whose environments are in the model's default state.

        Args:
            model_id: the model.
            batch: number of environments.
            lease: time in s without use after which the session ends; None for the server's default.
            durable: whether the session is kept in the store.
            ticket: ticket of the request.

        Raises:
            ArgumentError: the batch is empty, or the lease is out of range.
            NotFoundError: the model is not registered.
            LimitError: a limit leaves no room for another session.
        """
        model = await self._models.get(model_id)
        if batch < 1:
            raise ArgumentError.expected("batch", "at least one environment", batch)
        duration = lease_duration(lease, self._lease, self._max_lease)
        size = _bytes(model, batch)
        self._store.check_room(SESSION, current_client(), size)
        with self._budget.reserve("a session", size):
            state = await self._make_state(model, batch, lambda: start_state(self._engine, model, batch))
        return await self._open(model, batch, duration, state, ticket, durable=durable)

    async def fork(self, session_id: str, lease: float | None, ticket: Ticket) -> Session:
        """Create another session in the same state.

        Args:
            session_id: the session to copy.
            lease: as in `create`; None for the lease of the copied session.
            ticket: ticket of the request.

        Raises:
            ArgumentError: the lease is out of range.
            NotFoundError: the session was deleted, has expired, never existed, or belongs to another caller.
            LimitError: a limit leaves no room for another session.
        """
        session = await self._current(session_id)
        duration = lease_duration(lease, session.lease, self._max_lease)
        self._store.check_room(SESSION, current_client(), _bytes_of(session.state))
        return await self._open(
            session.model, session.batch, duration, session.state, ticket, durable=session.durable
        )

    async def reset(
        self,
        session_id: str,
        qpos: Any,
        qvel: Any,
        where: Any,
        ticket: Ticket,
        *,
        mocap: Mapping[str, Any] = MappingProxyType({}),
    ) -> State:
        """Set environments to a start state at time zero.

        Args:
            session_id: the session.
            qpos: [batch, nq], or [nq] for all environments; the model's default if None.
            qvel: [batch, nv], or [nv] for all environments; the model's default if None.
            where: [batch] of booleans, the environments to set; None for all.
            ticket: ticket of the request.
            mocap: of `MOCAP_INPUTS` by name, each with a row per environment or for all; others are the
                model's.

        Raises:
            ArgumentError: the state or the mask does not fit.
            NotFoundError: the session was deleted, has expired, never existed, or belongs to another caller.
        """

        async def start(session: Session) -> State:
            model, state = session.model, session.state
            return await self._make_state(
                model,
                session.batch,
                lambda: reset_state(self._engine, model, state, qpos, qvel, where, mocap),
            )

        return await self._change(session_id, start, ticket)

    async def set_params(self, session_id: str, params: Mapping[str, Any], ticket: Ticket) -> State:
        """Set the model's parameters for later steps.

        Args:
            session_id: the session.
            params: values by name; those not named have the model's values again.
            ticket: ticket of the request.

        Raises:
            ArgumentError: a parameter does not fit the model.
            NotFoundError: the session was deleted, has expired, never existed, or belongs to another caller.
        """

        async def change(session: Session) -> State:
            return changed_params(session.model, session.state, params)

        return await self._change(session_id, change, ticket)

    async def step(
        self,
        session_id: str,
        ctrl: Any,
        steps: int,
        ticket: Ticket,
        *,
        inputs: Mapping[str, Any] = MappingProxyType({}),
        control: Control = PLAIN,
    ) -> State:
        """Take steps. The store keeps the state that they end in, and not what acted.

        Args:
            session_id: the session.
            ctrl: constant controls, [batch, nu], or [nu] for all environments; or [batch, periods, nu].
            steps: number of steps; zero does not change the state, but moves mocap bodies.
            ticket: ticket of the request.
            inputs: of `STEP_INPUTS` by name, each with a row per environment or for all, or a row per period.
            control: hold and controller, see `stepping.advance`.

        Raises:
            ArgumentError: the controls, inputs or controller do not fit the model, or `steps` is negative.
            NotFoundError: the session was deleted, has expired, never existed, or belongs to another caller.
        """

        async def take(session: Session) -> State:
            model, state = session.model, session.state
            count = session.batch * steps
            if not session.durable and count * session.step_seconds <= _AT_ONCE_SECONDS:
                return advance(self._engine, model, state, ctrl, steps, CancelToken(), inputs, control)
            work = step_work(self._engine, model, StepCall(state, ctrl, steps, inputs, control))
            return await self._pool.run_work(dataclasses.replace(work, run=session.timed(work.run, count)))

        return await self._change(session_id, take, ticket)

    async def set_state(
        self,
        session_id: str,
        qpos: Any,
        qvel: Any,
        step_count: int | None,
        step_counts: Any,
        ticket: Ticket,
        *,
        mocap: Mapping[str, Any] = MappingProxyType({}),
        ctrl: Any = None,
    ) -> State:
        """Replace the state, or parts of it.

        Args:
            session_id: the session.
            qpos: [batch, nq], or [nq] for all environments; unchanged if None.
            qvel: [batch, nv], or [nv] for all environments; unchanged if None.
            step_count: steps of all environments since the last reset; unchanged if None.
            step_counts: [batch], in place of `step_count`; unchanged if None.
            ticket: ticket of the request.
            mocap: of `MOCAP_INPUTS` by name, each with a row per environment or for all; others are
                unchanged.
            ctrl: controls that acted last, [batch, nu], or [nu] for all environments; unchanged if None.

        Raises:
            ArgumentError: the state does not fit the model, or `step_count` is negative.
            NotFoundError: the session was deleted, has expired, never existed, or belongs to another caller.
        """

        async def change(session: Session) -> State:
            model, state = session.model, session.state
            return await self._make_state(
                model,
                session.batch,
                lambda: changed_state(
                    self._engine, model, state, qpos, qvel, step_count, step_counts, mocap, ctrl
                ),
            )

        return await self._change(session_id, change, ticket)

    async def state(self, session_id: str) -> State:
        """Return the state after the last finished step.

        Raises:
            NotFoundError: the session was deleted, has expired, never existed, or belongs to another caller.
        """
        return (await self._current(session_id)).state

    async def model_and_state(self, session_id: str) -> tuple[Model, State]:
        """Return the model of a session and its state after the last finished step.

        Raises:
            NotFoundError: the session was deleted, has expired, never existed, or belongs to another caller.
        """
        session = await self._current(session_id)
        return session.model, session.state

    async def jacobian(
        self, session_id: str, ctrl: Any, inputs: Mapping[str, Any] = MappingProxyType({})
    ) -> StepJacobian:
        """Differentiate one step from the state after the last finished step.

        Args:
            session_id: the session.
            ctrl: [batch, nu], or [nu] for all environments.
            inputs: of `STEP_INPUTS` by name, each with a row per environment or for all.

        Raises:
            ArgumentError: the controls or inputs do not fit the model.
            NotFoundError: the session was deleted, has expired, never existed, or belongs to another caller.
            DivergedError: all environments have diverged.
        """
        session = await self._current(session_id)
        state, model = session.state, session.model
        with self._budget.reserve("a Jacobian", jacobian_bytes(model, session.batch)):
            steps = session.batch * (model.nv + model.nqvel)
            return await self._pool.run(
                lambda token: jacobian(self._engine, model, state, ctrl, token, inputs), steps
            )

    async def keep_alive(self, session_id: str) -> float:
        """Renew the lease, and return its duration in s.

        Raises:
            NotFoundError: the session was deleted, has expired, never existed, or belongs to another caller.
        """
        return (await self._current(session_id, must_renew=True)).lease

    async def info(self, session_id: str) -> SessionInfo:
        """Describe a session, without renewing its lease.

        Raises:
            NotFoundError: the session was deleted, has expired, never existed, or belongs to another caller.
        """
        return SessionInfo.of(await find_owned(self._store, SESSION, session_id))

    async def page(self, size: int, token: str) -> Page[SessionInfo]:
        """Return a page of descriptions of the caller's sessions, or of all for an admin."""
        found = await page(self._store, SESSION, size, token)
        return Page([SessionInfo.of(entry) for entry in found.entries], found.next_token)

    async def state_bytes(self, session_id: str) -> int:
        """Return the bytes of a session's state; 0 if it cannot be read, so that the call itself fails."""
        try:
            session = await self._cached_or_loaded(session_id)
        except UnavailableError:
            raise
        except RevoluteError:
            return 0
        return _bytes(session.model, session.batch)

    async def delete(self, session_id: str, ticket: Ticket) -> None:
        """Delete a session; calls that wait for it fail with NotFoundError.

        Raises:
            NotFoundError: the session was deleted, has expired, never existed, or belongs to another caller.
        """
        await delete_owned(self._store, SESSION, session_id, ticket, self.forget)

    def waiting(self, session_id: str) -> int:
        """Return the number of calls in this process that use a session or wait for it."""
        session = self._cache.get(session_id)
        return session.waiting if session else 0

    def forget(self, session_id: str) -> None:
        """Drop a session from the cache, because the store no longer has it."""
        self._cache.drop(session_id)

    def __len__(self) -> int:
        return self._store.count(SESSION)

    async def _make_state(self, model: Model, batch: int, make: Callable[[], State]) -> State:
        """Call `make`, which takes no steps; on a worker if the state is large."""
        if _bytes(model, batch) <= _AT_ONCE_BYTES:
            return make()
        return await self._pool.run(lambda _token: make())

    async def _open(
        self, model: Model, batch: int, lease: float, state: State, ticket: Ticket, *, durable: bool
    ) -> Session:
        """Commit a new session."""
        identifier = session_id(new_id(), durable=durable)
        session = Session(identifier, model, batch, lease, caller_name(), state, 1, expiry(lease))
        with self._budget.reserve("a session", _bytes_of(state)) as reservation:
            try:
                await shielded(self._store.commit(session.put(state, expect=0), *ticket.writes(session)))
            except Conflict as conflict:
                if conflict.kind != MODEL:
                    raise
                self._models.forget(model.id)
                raise NotFoundError.missing("model", model.id) from None
            return self._cache.add(session.id, session, reservation)

    async def _change(
        self, session_id: str, compute: Callable[[Session], Awaitable[State]], ticket: Ticket
    ) -> State:
        """Replace the state by the result of `compute`."""
        async with self._locked(session_id) as session:
            for _ in range(_ATTEMPTS):
                state = await compute(session)
                try:
                    replaced = self._replace(session, state, ticket)
                    # what is in memory alone is replaced without waiting, so that nothing can interrupt it
                    await (shielded(replaced) if session.durable else replaced)
                    return state
                except Conflict as conflict:
                    if conflict.kind != SESSION:
                        raise
                # another replica was faster, or the session was deleted
                await self._reload(session)
            raise UnavailableError.expected(
                "session", "one that other servers leave alone for a step", "their steps in between each time"
            )

    async def _replace(self, session: Session, state: State, ticket: Ticket) -> None:
        put = session.put(state, expect=session.version, fingerprint=ticket.fingerprint)
        record = ticket.writes(state, put.payload)
        dropped = session.answers_to_drop(put.size)
        with self._cache.replacing(session.id, _bytes_of(state)):
            await self._store.commit(put, *record, *(answer.drop() for answer in dropped))
        session.state, session.version, session.expires = state, session.version + 1, put.expires
        for _ in dropped:
            session.answers.popleft()
        if record and put.size > _LARGE_ANSWER:
            answer = KeptAnswer(ticket.key, ticket.fingerprint, record[0].expires, put.size)
            session.answers.append(answer)

    async def _current(self, session_id: str, *, must_renew: bool = False) -> Session:
        """Return a session as it is in the store now, and renew its lease.

        Args:
            session_id: the session.
            must_renew: whether a failed renewal is an error.
        """
        session = self._cache.get(session_id)
        entry = await self._store.look(SESSION, session_id)
        if entry is None or has_expired(entry.expires):
            self.forget(session_id)
            raise await not_found(self._store, SESSION, session_id)
        if not is_visible(entry.owner):
            raise await not_found(self._store, SESSION, session_id)
        if session is None:
            session = await self._loaded(entry)
        elif session.version < entry.version:
            # load a copy: only the holder of the lock may change the cached session
            session = await self._loaded(entry, cached=False)
        expires = await renew(self._store, entry, session.lease, must=must_renew)
        if expires is not None:
            session.expires = expires
        return session

    async def _cached_or_loaded(self, session_id: str) -> Session:
        """Return a session of the caller from the cache, or else from the store.

        Raises:
            NotFoundError: the session was deleted, has expired, never existed, or belongs to another caller.
        """
        session = self._cache.get(session_id)
        if session is None:
            session = await self._loaded(await find_owned(self._store, SESSION, session_id))
        if not is_visible(session.owner):
            raise await not_found(self._store, SESSION, session_id)
        return session

    async def _loaded(self, entry: Entry, *, cached: bool = True) -> Session:
        """Read a session from the store unless another call has done so; add it to the cache if `cached`.

        Calls read a session one after the other, so that there are not as many copies of it as calls.

        Raises:
            LimitError: there is no room for it.
        """
        async with self._turns.setdefault(entry.key, asyncio.Lock()):
            if cached and (there := self._cache.get(entry.key)) is not None:
                return there
            with self._budget.reserve("a session", entry.size) as reservation:
                session = await self._load(entry.key)
                reservation.grow(_bytes_of(session.state) - reservation.count)
                return self._cache.add(entry.key, session, reservation) if cached else session

    async def _load(self, session_id: str) -> Session:
        """Read a session from the store."""
        record = await self._record(session_id)
        document = decode(record.payload)
        model = await self._models.get(document["model_id"])
        state = State(**document["state"])
        known = {**record.summary, **document}
        return Session(
            session_id,
            model,
            batch=len(state.status),
            lease=known["lease"],
            owner=known.get("owner", ""),
            state=state,
            version=record.version,
            expires=record.expires,
        )

    async def _reload(self, session: Session) -> None:
        """Read the state of a session again, because another replica has changed it."""
        record = await self._record(session.id)
        state = State(**decode(record.payload)["state"])
        with self._cache.replacing(session.id, _bytes_of(state)):
            session.state, session.version, session.expires = state, record.version, record.expires

    async def _record(self, session_id: str) -> Record:
        record = await self._store.get(SESSION, session_id)
        if record is None or has_expired(record.expires):
            self.forget(session_id)
            raise await not_found(self._store, SESSION, session_id)
        return record

    @contextlib.asynccontextmanager
    async def _locked(self, session_id: str) -> AsyncIterator[Session]:
        """Lock a session of the caller for one call, first come, first served."""
        session = await self._cached_or_loaded(session_id)
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
                    if has_expired(session.expires) or self._cache.get(session_id) is not session:
                        await self._reload(session)
                    yield session
        finally:
            session.waiting -= 1


def _bytes(model: Model, batch: int) -> int:
    """Return the bytes of the state of a session without parameters."""
    # of each environment a status of 4 bytes, and three numbers of 8
    return batch * (8 * (model.nq + model.nqvel + model.nu + 7 * model.nmocap) + 28)


def _bytes_of(state: State) -> int:
    """Return the bytes of a state with its parameters."""
    arrays = (state.qpos, state.qvel, state.status, state.step_counts, state.unsettled_step, state.residual)
    last = () if state.ctrl is None else (state.ctrl,)
    return sum(array.nbytes for array in (*arrays, *last, *state.params.values(), *state.mocap.values()))

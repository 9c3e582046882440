"""Models, sessions and trajectories in the caller's own process: no store, leases, limits or event loop.

The verbs are coroutines. Here they never wait, so each one finishes at its first step (`finished`). Models,
sessions and trajectories behave as on a server; the subclasses below override only how they are kept.
"""

from __future__ import annotations

import contextlib
import dataclasses
import importlib.metadata
import itertools
import math
import secrets
import sys
import threading
import time
from collections.abc import (
    AsyncGenerator,
    AsyncIterator,
    Awaitable,
    Callable,
    Mapping,
    Sequence,
)
from concurrent.futures import ThreadPoolExecutor
from types import MappingProxyType
from typing import Any, TypeVar

from revolute.contract.controllers import PLAIN, Control
from revolute.contract.errors import ArgumentError, NotFoundError, RevoluteError
from revolute_engine import CancelToken, Engine, Model, load_model, native, to_mjcf_files
from revolute_engine.segments import Segment, SegmentedRollout

from ..compute.batching import Work
from ..compute.compile_helper import ModelFiles
from ..compute.stepping import State, advance
from ..settings import Settings
from ..store.split import session_id
from .derivatives import Derivatives
from .measurements import Measurements
from .models import Models, Source, check_source
from .pagination import Page
from .request_ids import Ticket
from .service import API_VERSIONS, FEATURES, ServerInfo, Service
from .sessions import Session, SessionInfo, Sessions
from .trajectories import Trajectories, Trajectory

Result = TypeVar("Result")

_PROCESS, _COUNTER = secrets.token_hex(8), itertools.count()

_LONG = 1000
"""Work of at least this many environment steps (some 10 ms) runs on another thread."""


def new_id() -> str:
    """Return a unique id. Only this process sees it, so counting is enough, and faster than a random one."""
    return f"{_PROCESS}{next(_COUNTER):016x}"


def finished(work: Any) -> Any:
    """Run a coroutine that never waits, and return its result."""
    try:
        work.send(None)
    except StopIteration as end:
        return end.value
    raise RuntimeError("a verb waited for something in a process that has no event loop")


class InProcessService(Service):
    """Models, sessions and trajectories in this process, kept until it ends.

    Args:
        threads: number of engine threads; None for one per core.
    """

    def __init__(self, threads: int | None) -> None:
        self.engine = Engine(threads=threads)
        # a server has these limits to protect other clients
        most = sys.maxsize
        self.settings = dataclasses.replace(Settings(), max_batch=most, max_model=most, max_mesh=most)
        self._kept_models = models = _Models(self._is_used)
        self._kept_sessions = _Sessions(self.engine, models)
        self._kept_trajectories = _Trajectories(self.engine, models)
        self.models, self.sessions = models, self._kept_sessions
        self.trajectories = self._kept_trajectories
        self.derivatives = Derivatives(self.engine, _POOL, _BUDGET, self.models)  # type: ignore[arg-type]
        self.measurements = Measurements(
            self.engine,
            _POOL,  # type: ignore[arg-type]
            _BUDGET,  # type: ignore[arg-type]
            self.models,
            self.trajectories,
            self.sessions,
        )
        self.requests = _Requests()  # type: ignore[assignment]
        self.info = ServerInfo(
            version=importlib.metadata.version("revolute-server"),
            api_versions=API_VERSIONS,
            features=FEATURES,
            limits={},
            build={
                "isa": native.isa,
                "lanes": native.lanes,
                "threads": self.engine.threads,
                "workers": 1,
            },
        )

    def forget_all(self) -> None:
        """Drop all models, sessions and trajectories."""
        self._kept_models.clear()
        self._kept_sessions.kept.clear()
        self._kept_trajectories.kept.clear()

    def _is_used(self, model: Model) -> bool:
        """Tell whether a session or a trajectory uses a model."""
        models = [session.model for session in list(self._kept_sessions.kept.values())]
        models += [trajectory.model for trajectory in list(self._kept_trajectories.kept.values())]
        return any(used is model for used in models)


class _Pool:
    """Runs engine calls in the caller's thread, or long ones of the main thread on another thread.

    The engine does not return to Python while it computes, so Ctrl-C would have no effect. When the main
    thread waits for another thread instead, Ctrl-C ends the wait and stops the work within one step.
    """

    queue = sys.maxsize

    async def run(self, call: Callable[[CancelToken], Result], steps: int = _LONG) -> Result:
        token = CancelToken()
        if steps < _LONG or threading.current_thread() is not threading.main_thread():
            return call(token)
        with ThreadPoolExecutor(1, "revolute") as worker:
            try:
                future = worker.submit(call, token)
            except RuntimeError:
                # the system cannot start a thread: compute here, without reacting to Ctrl-C
                return call(token)
            try:
                return future.result()
            except BaseException:
                token.cancel()
                raise

    async def run_work(self, work: Work) -> Any:
        (found,) = await self.run(lambda token: work.run((work.item,), token), work.steps)
        if isinstance(found, RevoluteError):
            raise found
        return found


class _Budget:
    """A memory budget without a limit, and its reservations.

    Sizes are not estimated, because that would slow down short calls in a loop.
    """

    count = 0

    def reserve(self, _what: str, _count: int | Callable[[], int] = 0) -> _Budget:
        return self

    def grow(self, _count: int) -> None:
        """Count nothing."""

    def __enter__(self) -> _Budget:
        return self

    def __exit__(self, *_error: object) -> None:
        """Release nothing."""


class _UnlimitedStore:
    """Replaces the store's check of limits."""

    def check_room(self, _kind: str, _client: str, _size: int) -> None:
        """Accept everything."""


class _NoCache:
    """Replaces the cache, which is not needed because everything is in memory."""

    def using(self, _key: str) -> _Budget:
        return _BUDGET


_POOL, _BUDGET, _STORE, _NO_CACHE = _Pool(), _Budget(), _UnlimitedStore(), _NoCache()
_TICKET = Ticket()


class _Requests:
    """Replaces the record of requests: in one process no answer is lost, so no request is repeated."""

    async def once(
        self,
        _request_id: str,
        _verb: str,
        _arguments: Mapping[str, Any],
        act: Callable[[Ticket], Awaitable[Result]],
        answer: Callable[[Result], dict[str, Any]],
        **_options: Any,
    ) -> dict[str, Any]:
        return answer(await act(_TICKET))

    @contextlib.asynccontextmanager
    async def open(self, *_arguments: Any) -> AsyncIterator[tuple[Ticket, None]]:
        yield _TICKET, None


class _Models(Models):
    """Models by id.

    Args:
        is_used: tells whether a session or a trajectory uses a model.
    """

    def __init__(self, is_used: Callable[[Model], bool]) -> None:
        self.kept: dict[str, Model] = {}
        self._sources: dict[str, Source] = {}
        self._is_used = is_used

    def clear(self) -> None:
        """Drop all models."""
        self.kept.clear()
        self._sources.clear()

    async def register(self, source: Source, ticket: Ticket) -> Model:
        check_source(source)
        model = load_model(
            # bytes are always a model's text, never a name or a path
            source.text.encode() if source.text else source.builtin,
            assets=source.assets or None,
            name=source.name or None,
            allow_files=False,
            # warnings are shown by the client
            warn=False,
            **source.options,
        )
        self._sources.setdefault(model.id, source)
        return self.kept.setdefault(model.id, model)

    async def get(self, model_id: str) -> Model:
        model = self.kept.get(model_id)
        if model is None:
            raise NotFoundError.missing("model", model_id)
        return model

    async def files(self, model_id: str) -> ModelFiles:
        await self.get(model_id)
        source = self._sources[model_id]
        text, assets = source.text.encode() or source.builtin, source.assets or None
        return ModelFiles(*to_mjcf_files(text, assets=assets, **source.options))

    async def page(self, size: int, token: str) -> Page[tuple[str, str]]:
        return Page([(model.id, model.name) for model in list(self.kept.values())], "")

    async def delete(self, model_id: str, ticket: Ticket) -> None:
        if self._is_used(await self.get(model_id)):
            raise ArgumentError.expected(
                "model_id",
                "a model that nothing uses",
                "one that sessions or trajectories use",
                advice="delete these first",
            )
        _remove("model", self.kept, model_id)
        self._sources.pop(model_id, None)


@dataclasses.dataclass
class _Session(Session):
    """A session; its mutex lets one thread at a time change it. Its lease is stored but has no effect."""

    created: float = dataclasses.field(default_factory=time.monotonic)
    mutex: threading.Lock = dataclasses.field(default_factory=threading.Lock)

    @property
    def info(self) -> SessionInfo:
        return SessionInfo(
            id=self.id,
            model_id=self.model.id,
            batch=self.batch,
            step_count=self.state.step_count,
            lease=self.lease,
            expires_in=math.inf,
            age=time.monotonic() - self.created,
            durable=self.durable,
        )


class _Sessions(Sessions):
    """Sessions by id."""

    def __init__(self, engine: Engine, models: Models) -> None:
        self._engine = engine
        self._pool = _POOL  # type: ignore[assignment]
        self._budget = _BUDGET  # type: ignore[assignment]
        self._models = models
        self._store = _STORE  # type: ignore[assignment]
        self._lease = self._max_lease = math.inf
        self.kept: dict[str, _Session] = {}

    async def info(self, session_id: str) -> SessionInfo:
        return self._session(session_id).info

    async def page(self, size: int, token: str) -> Page[SessionInfo]:
        return Page([session.info for session in list(self.kept.values())], "")

    async def state(self, session_id: str) -> State:
        return self._session(session_id).state

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
        session = self._session(session_id)
        with session.mutex:
            model, before = session.model, session.state
            session.state = await self._pool.run(
                lambda token: advance(self._engine, model, before, ctrl, steps, token, inputs, control),
                session.batch * steps,
            )
            return session.state

    async def delete(self, session_id: str, ticket: Ticket) -> None:
        _remove("session", self.kept, session_id)

    async def _open(
        self, model: Model, batch: int, lease: float, state: State, ticket: Ticket, *, durable: bool
    ) -> Session:
        session = _Session(session_id(new_id(), durable=durable), model, batch, lease, "", state, 1, None)
        self.kept[session.id] = session
        return session

    async def _change(
        self, session_id: str, compute: Callable[[Session], Awaitable[State]], ticket: Ticket
    ) -> State:
        session = self._session(session_id)
        with session.mutex:
            session.state = await compute(session)
            return session.state

    async def _current(self, session_id: str, *, must_renew: bool = False) -> Session:
        return self._session(session_id)

    def _session(self, session_id: str) -> _Session:
        session = self.kept.get(session_id)
        if session is None:
            raise NotFoundError.missing("session", session_id)
        return session


class _Trajectories(Trajectories):
    """Trajectories by id."""

    _new_id = staticmethod(new_id)

    def __init__(self, engine: Engine, models: Models) -> None:
        self._engine = engine
        self._pool = _POOL  # type: ignore[assignment]
        self._budget = _BUDGET  # type: ignore[assignment]
        self._models = models
        self._store = _STORE  # type: ignore[assignment]
        self._cache = _NO_CACHE  # type: ignore[assignment]
        self.kept: dict[str, Trajectory] = {}

    async def get(self, trajectory_id: str) -> Trajectory:
        trajectory = self.kept.get(trajectory_id)
        if trajectory is None:
            raise NotFoundError.missing("trajectory", trajectory_id)
        return trajectory

    async def stream_rollout(
        self,
        model_id: str,
        qpos: Any,
        qvel: Any,
        ctrl: Any,
        params: Mapping[str, Any] | None,
        segment_steps: int | None,
        ticket: Ticket,
        *,
        control: Control = PLAIN,
    ) -> AsyncGenerator[Segment | Trajectory, None]:
        model = await self._models.get(model_id)
        pieces = SegmentedRollout(model, qpos, qvel, ctrl, params or None, control=control)
        while not pieces.over:
            yield await self._segment(model, pieces, segment_steps)
        trajectory = Trajectory(new_id(), model, pieces.result())
        self.kept[trajectory.id] = trajectory
        yield trajectory

    async def delete(self, trajectory_id: str, ticket: Ticket) -> None:
        _remove("trajectory", self.kept, trajectory_id)

    async def _keep_for_caller(
        self, trajectory: Trajectory, _reservation: Any, ticket: Ticket, forget: Sequence[str] = ()
    ) -> None:
        self.kept[trajectory.id] = trajectory
        await self._forget_for_caller(forget)

    async def _forget_for_caller(self, trajectory_ids: Sequence[str]) -> None:
        for identifier in trajectory_ids:
            self.kept.pop(identifier, None)


def _remove(noun: str, kept: dict[str, Any], identifier: str) -> None:
    if kept.pop(identifier, None) is None:
        raise NotFoundError.missing(noun, identifier)

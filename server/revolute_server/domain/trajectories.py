"""Trajectories: rollouts that are kept in the store, and gradients through them."""

from __future__ import annotations

import asyncio
import contextlib
import dataclasses
import functools
import logging
import time
from collections.abc import AsyncGenerator, AsyncIterator, Awaitable, Callable, Mapping, Sequence
from typing import Any

import numpy as np

from revolute.contract.checkpoints import EVERY, Checkpoints
from revolute.contract.controllers import PLAIN, Control
from revolute.contract.errors import ArgumentError, NotFoundError, RevoluteError
from revolute.contract.gradient_method import EXACT, GradientMethod
from revolute_engine import Engine, Gradient, Jvp, Model, Rollout
from revolute_engine.merged_calls import BackwardCall, RolloutCall
from revolute_engine.segments import Segment, SegmentedRollout, segments_of

from ..access.call import current_client
from ..access.caller import caller_name, is_visible
from ..compute.memory_budget import MemoryBudget, Reservation
from ..compute.merged_calls import backward_work, rollout_work
from ..compute.pool import EnginePool
from ..compute.trajectory_bytes import gradient_bytes, kept_bytes, states_bytes
from ..store import MODEL, TRAJECTORY, Conflict, Delete, Entry, Put, Store, Touch, Write
from ..store.codec import decode, encode
from . import rollout_records
from .cache import Cache
from .deletion import delete_owned, existing_ids
from .identifiers import new_id
from .leases import expiry, find_owned, has_expired, not_found, renew
from .models import Models
from .request_ids import Ticket
from .shielded import shielded

_REPEAT_SECONDS = 600.0
"""Time for which a trajectory is kept for a repeat of the request if the client did not get the answer."""

_log = logging.getLogger("revolute.server")

Pull = Callable[..., Awaitable[Gradient]]


@dataclasses.dataclass(frozen=True)
class Trajectory:
    """A rollout with the id by which other calls refer to it; the id is empty if it is not kept."""

    id: str
    model: Model
    rollout: Rollout
    owner: str = dataclasses.field(default_factory=caller_name)


class Trajectories:
    """The verbs on trajectories: Rollout, StreamRollout, GetTrajectory, Backward, Jvp and DeleteTrajectory,
    and ValueAndGradient with a loss that the client evaluates."""

    _new_id = staticmethod(new_id)

    def __init__(
        self,
        engine: Engine,
        pool: EnginePool,
        budget: MemoryBudget,
        models: Models,
        store: Store,
        ttl: float,
    ) -> None:
        self._engine = engine
        self._pool = pool
        self._budget = budget
        self._models = models
        self._store = store
        self._ttl = ttl
        self._cache: Cache[Trajectory] = Cache(budget)
        self._undoing: set[asyncio.Task[None]] = set()

    async def rollout(
        self,
        model_id: str,
        qpos: Any,
        qvel: Any,
        ctrl: Any,
        params: Mapping[str, Any] | None,
        ticket: Ticket,
        *,
        control: Control = PLAIN,
        checkpoints: str = "every",
        states: str | None = None,
        forget: Sequence[str] = (),
        inspect: Callable[[Trajectory], Awaitable[None]] | None = None,
    ) -> Trajectory:
        """Simulate, and keep the trajectory unless `checkpoints` is "none".

        Args:
            model_id: the model.
            qpos: start configurations, [batch, nq] or [nq].
            qvel: start velocities, [batch, nv] or [nv].
            ctrl: controls, [batch, time, nu] or [time, nu].
            params: model parameters by name.
            ticket: ticket of the request.
            control: how the rows of ctrl act.
            checkpoints: which states are kept for gradients.
            states: which states the caller asks for, "all" or "final".
            forget: ids of trajectories of the caller to delete in the same transaction.
            inspect: is given the trajectory before it is kept; if it fails, nothing is kept.

        Returns:
            The trajectory with the states that the caller asks for. The kept part is durable.

        Raises:
            ArgumentError: shapes or values do not fit the model.
            NotFoundError: the model is not registered.
            LimitError: a limit leaves no room for the trajectory.
        """
        model = await self._models.get(model_id)
        policy = Checkpoints.parse(checkpoints)
        replayed = states == "all" and policy != EVERY
        with (
            self._budget.reserve(
                "a trajectory", lambda: kept_bytes(model, ctrl, policy, control)
            ) as reservation,
            self._budget.reserve(
                "all its states", lambda: states_bytes(model, ctrl, control) if replayed else 0
            ),
        ):
            if policy.differentiable:
                self._store.check_room(TRAJECTORY, current_client(), reservation.count)
            call = RolloutCall(qpos, qvel, ctrl, params or None, policy, states, control)
            rollout = await self._pool.run_work(rollout_work(self._engine, model, call))
            answered = dataclasses.replace(rollout, all_states=None) if states == "final" else rollout
            if not policy.differentiable:
                if forget:
                    await self._forget_for_caller(forget)
                return Trajectory("", model, answered)
            if inspect is not None:
                await inspect(Trajectory("", model, rollout))
            kept = Trajectory(self._new_id(), model, rollout.without_states())
            await self._keep_for_caller(kept, reservation, ticket, forget)
            return Trajectory(kept.id, model, answered, kept.owner)

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
        """Simulate segment by segment, at most one segment ahead of the reader; then keep the trajectory.

        Args:
            model_id: the model.
            qpos: start configurations, [batch, nq] or [nq].
            qvel: start velocities, [batch, nv] or [nv].
            ctrl: controls, [batch, time, nu] or [time, nu].
            params: model parameters by name.
            segment_steps: steps of one segment; None for a size that suits a network.
            ticket: ticket of the request.
            control: how the rows of ctrl act.

        Yields:
            The segments, then the kept trajectory.

        Raises:
            ArgumentError: shapes or values do not fit the model.
            NotFoundError: the model is not registered.
            LimitError: a limit leaves no room for the trajectory.
        """
        model = await self._models.get(model_id)
        size = kept_bytes(model, ctrl, EVERY, control)
        self._store.check_room(TRAJECTORY, current_client(), size)
        with self._budget.reserve("a trajectory", size) as reservation:
            pieces = await self._pool.run(
                lambda _token: SegmentedRollout(model, qpos, qvel, ctrl, params or None, control=control)
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
            await self._keep_for_caller(trajectory, reservation, ticket)
            yield trajectory

    async def stream_again(
        self, trajectory_id: str, segment_steps: int | None
    ) -> AsyncGenerator[Segment | Trajectory, None]:
        """Yield the segments of a kept trajectory, then the trajectory, like `stream_rollout`.

        Raises:
            NotFoundError: the trajectory was deleted or has expired.
            DataLossError: its record is damaged.
        """
        kept = await self.get(trajectory_id)
        with self._cache.using(trajectory_id):
            for segment in segments_of(kept.rollout, segment_steps):
                yield segment
        yield kept

    async def _segment(self, model: Model, pieces: SegmentedRollout, steps: int | None) -> Segment:
        return pieces.take(await self._pool.run_work(rollout_work(self._engine, model, pieces.call(steps))))

    async def get(self, trajectory_id: str) -> Trajectory:
        """Return a trajectory, and renew its expiry.

        Raises:
            NotFoundError: the trajectory was deleted, has expired, never existed, or belongs to another
                caller.
            DataLossError: its record is damaged.
        """
        trajectory = self._cache.get(trajectory_id)
        entry: Entry | None
        if trajectory is not None:
            entry = await self._store.look(TRAJECTORY, trajectory_id)
        else:
            entry, trajectory = await self._read(trajectory_id)
        if entry is None or has_expired(entry.expires):
            self.forget(trajectory_id)
            raise await not_found(self._store, TRAJECTORY, trajectory_id)
        if not is_visible(entry.owner):
            raise await not_found(self._store, TRAJECTORY, trajectory_id)
        await renew(self._store, entry, self._ttl)
        return trajectory

    async def with_states(self, trajectory_id: str, states: str | None = None) -> Trajectory:
        """Return a trajectory with all its states; states that are not kept are replayed.

        Args:
            trajectory_id: the trajectory.
            states: "all" or None; "final" leaves the states out.

        Raises:
            ArgumentError: `states` has another value.
            NotFoundError: the trajectory was deleted or never existed.
            LimitError: the states do not fit into memory.
        """
        kept = await self.get(trajectory_id)
        if states not in (None, "all", "final"):
            raise ArgumentError.expected("states", "'all' or 'final'", repr(states)[:60])
        if states == "final":
            return dataclasses.replace(kept, rollout=dataclasses.replace(kept.rollout, all_states=None))
        if kept.rollout.all_states is not None:
            return kept
        with self._budget.reserve("all its states", _states_bytes(kept)):
            found = await self._pool.run(
                lambda token: self._engine.states(kept.model, kept.rollout, cancel=token), _steps(kept)
            )
        return dataclasses.replace(kept, rollout=dataclasses.replace(kept.rollout, all_states=found))

    async def backward(
        self,
        trajectory_id: str,
        qpos_bar: Any,
        qvel_bar: Any,
        wrt: Sequence[str],
        *,
        ctrl_bar: Any = None,
        times: Sequence[int] | None = None,
        gradient: GradientMethod = EXACT,
        clip: float | None = None,
        on_diverged: str = "raise",
    ) -> Gradient:
        """Pull one or K cotangents back through a kept trajectory.

        Args:
            trajectory_id: the trajectory.
            qpos_bar: d loss / d qpos, [batch, time + 1, nq], with a leading axis K for K gradients; or None.
            qvel_bar: d loss / d qvel, [batch, time + 1, nv], with the same leading axis; or None.
            wrt: names of inputs and parameters to differentiate by.
            ctrl_bar: d loss / d ctrl at fixed states, [batch, periods, nu], with the same leading axis; or
                None.
            times: times of the states in `qpos_bar` and `qvel_bar`; None for all.
            gradient: how to differentiate.
            clip: largest norm of a state's cotangent; None for no bound.
            on_diverged: "raise" or "inf".

        Raises:
            ArgumentError: shapes do not fit the trajectory, or a name in `wrt` is unknown.
            NotFoundError: the trajectory was deleted or never existed.
            DivergedError: no environment stayed finite.
        """
        kept = await self.get(trajectory_id)
        return await self._pull(
            kept,
            qpos_bar,
            qvel_bar,
            wrt,
            times,
            gradient,
            ctrl_bar=ctrl_bar,
            clip=clip,
            on_diverged=on_diverged,
        )

    async def _pull(
        self,
        trajectory: Trajectory,
        qpos_bar: Any,
        qvel_bar: Any,
        wrt: Sequence[str],
        times: Sequence[int] | None = None,
        gradient: GradientMethod = EXACT,
        *,
        ctrl_bar: Any = None,
        clip: float | None = None,
        on_diverged: str = "raise",
    ) -> Gradient:
        model, rollout = trajectory.model, trajectory.rollout
        bars = qpos_bar, qvel_bar, tuple(wrt), times

        def size() -> int:
            return gradient_bytes(model, rollout, *bars) + 8 * np.size(ctrl_bar)

        with self._cache.using(trajectory.id), self._budget.reserve("a gradient", size):
            call = BackwardCall(rollout, *bars, clip, on_diverged, ctrl_bar, gradient)
            return await self._pool.run_work(backward_work(self._engine, model, call))

    async def jvp(self, trajectory_id: str, tangents: Mapping[str, Any]) -> Jvp:
        """Push a tangent of the inputs forward through a kept trajectory.

        Args:
            trajectory_id: the trajectory.
            tangents: qpos_tan, qvel_tan, ctrl_tan, params_tan and control_tan, each may be None.

        Raises:
            ArgumentError: shapes do not fit the trajectory, or a name of a parameter is unknown.
            NotFoundError: the trajectory was deleted or never existed.
            DivergedError: no environment stayed finite.
        """
        kept = await self.get(trajectory_id)
        controls = kept.rollout.ctrl.nbytes
        states = 8 * (kept.model.nv + kept.model.nqvel) * kept.rollout.batch * (kept.rollout.steps + 1)
        if kept.rollout.all_states is None:
            states += _states_bytes(kept)
        with self._cache.using(trajectory_id), self._budget.reserve("tangents", controls + states):
            return await self._pool.run(
                lambda token: self._engine.jvp(kept.model, kept.rollout, **tangents, cancel=token),
                _steps(kept),
            )

    @contextlib.asynccontextmanager
    async def unkept(
        self,
        model_id: str,
        qpos: Any,
        qvel: Any,
        ctrl: Any,
        params: Mapping[str, Any] | None = None,
        *,
        control: Control = PLAIN,
        checkpoints: str = "every",
    ) -> AsyncIterator[tuple[Trajectory, Pull]]:
        """Simulate a trajectory that is dropped at the end of the block.

        Yields:
            The trajectory, and a function that pulls (qpos_bar, qvel_bar, wrt, times, gradient) back through
            it, with `ctrl_bar`, `clip` and `on_diverged`.

        Raises:
            ArgumentError: shapes or values do not fit the model.
            NotFoundError: the model is not registered.
            LimitError: a limit leaves no room for the trajectory.
        """
        model, policy = await self._models.get(model_id), Checkpoints.parse(checkpoints)
        size = kept_bytes(model, ctrl, policy, control)
        if policy != EVERY:
            size += states_bytes(model, ctrl, control)
        with self._budget.reserve("a trajectory", size):
            call = RolloutCall(qpos, qvel, ctrl, params or None, policy, "all", control)
            rollout = await self._pool.run_work(rollout_work(self._engine, model, call))
            trajectory = Trajectory("", model, rollout)
            yield trajectory, functools.partial(self._pull, trajectory)

    async def delete(self, trajectory_id: str, ticket: Ticket) -> None:
        """Delete a trajectory.

        Raises:
            NotFoundError: the trajectory was deleted, has expired, never existed, or belongs to another
                caller.
        """
        await delete_owned(self._store, TRAJECTORY, trajectory_id, ticket, self.forget)

    def undo(self, trajectory_id: str) -> None:
        """Delete a trajectory in the background because the client did not get the answer.

        If the request has an id, the client may repeat it, so the trajectory is kept for a short time.
        """
        task = asyncio.ensure_future(self._undo(trajectory_id))
        self._undoing.add(task)
        task.add_done_callback(self._undoing.discard)

    def forget(self, trajectory_id: str) -> None:
        """Drop a trajectory from the cache, because the store no longer has it."""
        self._cache.drop(trajectory_id)

    def __len__(self) -> int:
        return self._store.count(TRAJECTORY)

    async def _keep_for_caller(
        self, trajectory: Trajectory, reservation: Reservation, ticket: Ticket, forget: Sequence[str] = ()
    ) -> None:
        """Keep a trajectory, delete those in `forget`; undo both if the client disconnects before the end."""
        try:
            await shielded(self._keep(trajectory, reservation, ticket, forget))
        except asyncio.CancelledError:
            # it was committed, but the client does not know its id
            self.undo(trajectory.id)
            raise

    async def _keep(
        self, trajectory: Trajectory, reservation: Reservation, ticket: Ticket, forget: Sequence[str]
    ) -> None:
        """Commit a trajectory with the record of its request, delete those in `forget`, and cache it."""
        rollout = trajectory.rollout
        summary = {
            "model_id": trajectory.model.id,
            "model": trajectory.model.name,
            "owner": trajectory.owner,
            "batch": rollout.status.size,
            "steps": rollout.steps,
            "repeatable": bool(ticket.key),
        }
        payload = encode({"model_id": trajectory.model.id, "rollout": rollout_records.to_document(rollout)})
        if self._store.in_memory:
            # the store counts the same arrays
            reservation.release()
        put = Put(
            TRAJECTORY,
            trajectory.id,
            payload,
            expires=expiry(self._ttl),
            summary=summary,
            parent=trajectory.model.id,
            client=current_client(),
            expect=0,
        )
        try:
            await self._forget(forget, put, *ticket.writes(trajectory))
        except Conflict as conflict:
            if conflict.kind != MODEL:
                raise
            self._models.forget(trajectory.model.id)
            raise NotFoundError.missing("model", trajectory.model.id) from None
        if not self._store.in_memory:
            self._cache.add(trajectory.id, trajectory, reservation)

    async def _forget_for_caller(self, trajectory_ids: Sequence[str]) -> None:
        """Delete existing trajectories of the caller, also if the client disconnects before the end."""
        await shielded(self._forget(trajectory_ids))

    async def _forget(self, trajectory_ids: Sequence[str], *writes: Write) -> None:
        """Delete existing trajectories of the caller, in one transaction with other writes."""
        deleted = await existing_ids(self._store, TRAJECTORY, trajectory_ids)
        while deleted or writes:
            try:
                deletes = (Delete(TRAJECTORY, identifier) for identifier in deleted)
                await self._store.commit(*deletes, *writes)
                break
            except Conflict as conflict:
                if conflict.kind != TRAJECTORY or conflict.key not in deleted:
                    raise
                # another call has deleted it in the meantime
                deleted.remove(conflict.key)
        for identifier in deleted:
            self.forget(identifier)

    async def _read(self, trajectory_id: str) -> tuple[Entry, Trajectory]:
        """Read a trajectory from the store, and cache it."""
        entry = await find_owned(self._store, TRAJECTORY, trajectory_id)
        size = 0 if self._store.in_memory else entry.size
        with self._budget.reserve("a trajectory", size) as reservation:
            record = await self._store.get(TRAJECTORY, trajectory_id)
            if record is None:
                raise await not_found(self._store, TRAJECTORY, trajectory_id)
            document = decode(record.payload)
            model = await self._models.get(document["model_id"])
            rollout = rollout_records.from_document(document["rollout"])
            trajectory = Trajectory(trajectory_id, model, rollout, record.owner)
            if not self._store.in_memory:
                trajectory = self._cache.add(trajectory_id, trajectory, reservation)
            return record, trajectory

    async def _undo(self, trajectory_id: str) -> None:
        try:
            entry = await self._store.look(TRAJECTORY, trajectory_id)
            if entry is None:
                return
            if entry.summary.get("repeatable"):
                await self._store.commit(Touch(TRAJECTORY, trajectory_id, time.time() + _REPEAT_SECONDS))
            else:
                await self._store.commit(Delete(TRAJECTORY, trajectory_id))
                self.forget(trajectory_id)
        except Conflict:
            return
        except RevoluteError as error:
            _log.warning("trajectory %s stays until it expires: %s", trajectory_id, error)


def _steps(trajectory: Trajectory) -> int:
    """Return the number of steps of a trajectory, summed over environments."""
    return trajectory.rollout.batch * trajectory.rollout.steps


def _states_bytes(trajectory: Trajectory) -> int:
    """Return the bytes of all states of a trajectory."""
    rollout = trajectory.rollout
    return states_bytes(trajectory.model, rollout.ctrl, rollout.control)

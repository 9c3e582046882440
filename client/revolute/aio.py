"""The API as coroutines: `await` each call, with many under way at once.

    import asyncio, revolute.aio

    async def main():
        async with await revolute.aio.connect("grpc://host:50051") as sim:
            model = await sim.load_model("laikago")
            first, second = await asyncio.gather(sim.rollout(model, …), sim.rollout(model, …))
            gradient = await first.backward(…)

The classes have the methods of `Simulator`, `Session`, `Trajectory` and `RolloutStream`, with the same
arguments, results and errors, and are made from them. Each call runs in a thread of a pool, where it waits
for the server or the engine without the GIL. A cancelled call continues there, and its result is dropped.
Loss functions and `progress` are called in these threads.
"""

from __future__ import annotations

import asyncio
import contextvars
import functools
import inspect
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING, Any

from . import connection
from .contract.errors import ArgumentError
from .contract.scalars import whole_number
from .rollout_stream import RolloutStream
from .session import Session
from .simulator import Simulator
from .trajectory import Trajectory

_CALLS = 32
_END = object()


async def connect(address: str | None = None, *, calls: int = _CALLS, **arguments: Any) -> AsyncSimulator:
    """Return a simulator whose methods are coroutines.

    Args:
        address: as for `revolute.connect`.
        calls: largest number of calls under way; more wait.
        **arguments: as for `revolute.connect`.

    Raises:
        RevoluteError: as `revolute.connect` does.
    """
    pool = ThreadPoolExecutor(whole_number("calls", calls, least=1), "revolute-aio")
    try:
        simulator = await _run(pool, functools.partial(connection.connect, address, **arguments))
    except BaseException:
        pool.shutdown(wait=False)
        raise
    return AsyncSimulator(simulator, pool)


async def _run(pool: ThreadPoolExecutor, call: Callable[[], Any]) -> Any:
    """Run a call on a thread, in the context of the caller."""
    context = contextvars.copy_context()
    return await asyncio.get_running_loop().run_in_executor(pool, context.run, call)


class _Async:
    """An object whose public methods are coroutines.

    Args:
        inner: the object with the methods.
        pool: threads in which they run.
    """

    def __init__(self, inner: Any, pool: ThreadPoolExecutor) -> None:
        self._inner = inner
        self._pool = pool

    def __getattr__(self, name: str) -> Any:
        if name.startswith("_"):
            raise AttributeError(name)
        return _wrapped(getattr(self._inner, name), self._pool)

    async def __aenter__(self) -> Any:
        return self

    async def __aexit__(self, *exception: Any) -> None:
        await _run(self._pool, functools.partial(self._inner.__exit__, *exception))

    def __repr__(self) -> str:
        return repr(self._inner).replace("<revolute", "<revolute async", 1)


def _of(kind: type) -> Callable[[type], type]:
    """Give a class a coroutine for each public method of another class that it does not define itself."""

    def decorate(own: type) -> type:
        for name, method in inspect.getmembers(kind, inspect.isfunction):
            if not name.startswith("_") and name not in vars(own):
                setattr(own, name, _coroutine(name, method))
        return own

    return decorate


def _coroutine(name: str, method: Any) -> Any:
    @functools.wraps(method)
    async def called(self: _Async, *arguments: Any, **named: Any) -> Any:
        call = functools.partial(getattr(self._inner, name), *arguments, **named)
        return _wrapped(await _run(self._pool, call), self._pool)

    return called


@_of(Simulator)
class AsyncSimulator(_Async):
    """`Simulator` with coroutines; `async with` closes its connection."""

    if TYPE_CHECKING:

        def __getattr__(self, name: str) -> Any: ...

    async def close(self) -> None:
        """Delete unused trajectories, then close the connection."""
        await self.__aexit__()

    async def __aexit__(self, *_exception: Any) -> None:
        await _run(self._pool, self._inner.close)
        self._pool.shutdown(wait=False)


@_of(Session)
class AsyncSession(_Async):
    """`Session` with coroutines; `async with` closes it."""


@_of(Trajectory)
class AsyncTrajectory(_Async):
    """`Trajectory` with coroutines; `async with` deletes it. Its arrays are attributes."""

    async def states(self) -> tuple[Any, Any]:
        """Return `qpos` and `qvel` of all times; replay them if the rollout returned only the final state."""
        found = await _run(self._pool, lambda: (self._inner.qpos, self._inner.qvel))
        return found[0], found[1]

    @property
    def qpos(self) -> Any:
        """Configurations at times 0 … T; for a rollout that returned only the final state await `states`."""
        return self._state("qpos")

    @property
    def qvel(self) -> Any:
        """Velocities at times 0 … T, as `qpos`."""
        return self._state("qvel")

    def detach(self) -> str:
        """Keep the trajectory until `delete` is called, and return its id; see `Trajectory.detach`."""
        identifier: str = self._inner.detach()
        return identifier

    def _state(self, name: str) -> Any:
        if not self._inner.has_states:
            raise ArgumentError.expected(
                name, "states that are here", "a rollout's final state alone", advice="await states() first"
            )
        return getattr(self._inner, name)


@_of(RolloutStream)
class AsyncRolloutStream(_Async):
    """`RolloutStream` for `async for`."""

    def __aiter__(self) -> AsyncRolloutStream:
        return self

    async def __anext__(self) -> Any:
        segment = await _run(self._pool, lambda: next(self._inner, _END))
        if segment is _END:
            raise StopAsyncIteration
        return segment


_KINDS: dict[type, type[_Async]] = {
    Session: AsyncSession,
    Trajectory: AsyncTrajectory,
    RolloutStream: AsyncRolloutStream,
}


def _wrapped(value: Any, pool: ThreadPoolExecutor) -> Any:
    """Return a session, a trajectory or a stream with coroutines; anything else as it is."""
    kind = _KINDS.get(type(value))
    return value if kind is None else kind(value, pool)

"""The coroutines of `revolute.aio`: the same results and errors, with calls under way at once."""

from __future__ import annotations

import asyncio
import inspect
import threading
from collections.abc import Awaitable, Callable
from typing import Any

import numpy as np
import pytest

import revolute
import revolute.aio
from revolute.rollout_stream import RolloutStream

START = [0.0, 0.1], [0.0, 0.0]
CTRL = np.full((6, 1), 0.3)

Run = Callable[[Callable[[Any], Awaitable[Any]]], Any]


@pytest.fixture(params=["in process", "grpc", "http"])
def run(request: pytest.FixtureRequest) -> Run:
    """Return a function that runs a coroutine function with an open simulator."""
    local = request.param == "in process"
    address = None if local else getattr(request.getfixturevalue("server"), request.param)

    def run_test(test: Callable[[Any], Awaitable[Any]]) -> Any:
        async def main() -> Any:
            async with await revolute.aio.connect(address) as sim:
                return await test(sim)

        return asyncio.run(main())

    return run_test


def test_results_are_those_of_the_plain_api(run: Run, in_process: revolute.Simulator) -> None:
    model = in_process.load_model("cartpole")
    expected = in_process.rollout(model, *START, CTRL)
    gradient = expected.backward(np.ones(expected.qpos.shape))

    async def test(sim: Any) -> None:
        model = await sim.load_model("cartpole")
        both = await asyncio.gather(*(sim.rollout(model, *START, CTRL) for _ in range(2)))
        for trajectory in both:
            assert trajectory.qpos.tobytes() == expected.qpos.tobytes()
            found = await trajectory.backward(np.ones(trajectory.qpos.shape))
            assert found.ctrl.tobytes() == gradient.ctrl.tobytes()
        async with both[0] as kept:
            assert kept.id and not repr(kept).startswith("<revolute trajectory")
        with pytest.raises(revolute.NotFoundError):
            await both[0].backward(np.ones(expected.qpos.shape))
        few = await sim.rollout(model, *START, CTRL, checkpoints="slots=2")
        with pytest.raises(revolute.ArgumentError, match="await states"):
            _ = few.qpos
        assert (await few.states())[0].tobytes() == expected.qpos.tobytes() == few.qpos.tobytes()

    run(test)


def test_sessions_and_streams(run: Run, in_process: revolute.Simulator) -> None:
    model = in_process.load_model("cartpole")
    expected = in_process.session(model).step([1.0], steps=3)

    async def test(sim: Any) -> None:
        model = await sim.load_model("cartpole")
        async with await sim.session(model) as session:
            assert (await session.step([1.0], steps=3)).qpos.tobytes() == expected.qpos.tobytes()
            fork = await session.fork()
            assert (await fork.state()).step_count == 3
            await fork.close()
        with pytest.raises(revolute.NotFoundError):
            await session.state()
        stream = await sim.stream_rollout(model, *START, CTRL, segment_steps=2)
        firsts = [segment.first async for segment in stream]
        assert firsts[0] == 0 and len(firsts) >= 3
        assert (await stream.trajectory.backward(np.ones((7, 2)))).ctrl.shape == (6, 1)

    run(test)


def test_calls_are_under_way_at_once(run: Run) -> None:
    """Two losses wait for each other, which calls one after the other could not."""
    barrier = threading.Barrier(2, timeout=30)

    def loss(states: revolute.States) -> tuple[float, np.ndarray, None]:
        barrier.wait()
        return 0.0, np.ones((7, 2)), None

    async def test(sim: Any) -> None:
        model = await sim.load_model("cartpole")
        await asyncio.gather(*(sim.value_and_gradient(model, *START, CTRL, loss) for _ in range(2)))

    run(test)


def test_errors_of_connect() -> None:
    with pytest.raises(revolute.UnavailableError):
        asyncio.run(revolute.aio.connect("grpc://127.0.0.1:1", retries=0))
    with pytest.raises(revolute.ArgumentError, match="calls"):
        asyncio.run(revolute.aio.connect(calls=0))


def test_every_method_is_there() -> None:
    kinds = {
        revolute.Simulator: revolute.aio.AsyncSimulator,
        revolute.Session: revolute.aio.AsyncSession,
        revolute.Trajectory: revolute.aio.AsyncTrajectory,
        RolloutStream: revolute.aio.AsyncRolloutStream,
    }
    for plain, own in kinds.items():
        names = [name for name, _ in inspect.getmembers(plain, inspect.isfunction) if name[0] != "_"]
        assert names
        for name in set(names) - {"detach"}:
            assert inspect.iscoroutinefunction(getattr(own, name)), name
            assert getattr(own, name).__doc__

"""The pool: bounded, refusing beyond its queue, stopping what nobody waits for."""

from __future__ import annotations

import asyncio
import threading
import time
from typing import Any

import pytest

from revolute.errors import LimitError, UnavailableError
from revolute_server.engine_pool import EnginePool


def test_calls_beyond_workers_and_queue_are_refused() -> None:
    async def scenario() -> None:
        pool, release = EnginePool(1, 2), threading.Event()
        calls = [asyncio.create_task(pool.run(lambda _token: release.wait(30.0))) for _ in range(3)]
        await asyncio.sleep(0)
        started = time.monotonic()
        with pytest.raises(LimitError, match="--queue"):
            await pool.run(lambda _token: True)
        assert time.monotonic() - started < 1.0
        release.set()
        assert await asyncio.gather(*calls) == [True] * 3
        await asyncio.sleep(0.05)
        assert pool.occupied == 0
        assert await pool.run(lambda _token: "room again") == "room again"
        pool.close()

    asyncio.run(scenario())


def test_a_cancelled_awaiter_cancels_the_token() -> None:
    async def scenario() -> None:
        pool, seen, began = EnginePool(1, 2), [], threading.Event()

        def call(token: Any) -> None:
            seen.append(token)
            began.set()
            while not token.cancelled:
                time.sleep(0.001)

        task = asyncio.create_task(pool.run(call))
        await asyncio.to_thread(began.wait, 10.0)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        assert seen[0].cancelled
        for _ in range(200):
            if pool.occupied == 0:
                break
            await asyncio.sleep(0.01)
        assert pool.occupied == 0
        pool.close()

    asyncio.run(scenario())


def test_a_call_that_waits_is_dropped_when_nobody_waits_for_it() -> None:
    async def scenario() -> None:
        pool, release, ran = EnginePool(1, 2), threading.Event(), []
        first = asyncio.create_task(pool.run(lambda _token: release.wait(30.0)))
        second = asyncio.create_task(pool.run(lambda _token: ran.append(1)))
        await asyncio.sleep(0.01)
        second.cancel()
        await asyncio.sleep(0.01)
        assert pool.occupied == 1
        release.set()
        await first
        assert ran == []
        pool.close()

    asyncio.run(scenario())


def test_a_closed_pool_is_unavailable() -> None:
    async def scenario() -> None:
        pool = EnginePool(1, 1)
        pool.close()
        with pytest.raises(UnavailableError):
            await pool.run(lambda _token: None)

    asyncio.run(scenario())


def test_errors_of_a_call_reach_its_awaiter() -> None:
    async def scenario() -> None:
        pool = EnginePool(1, 1)
        with pytest.raises(ZeroDivisionError):
            await pool.run(lambda _token: 1 // 0)
        pool.close()

    asyncio.run(scenario())

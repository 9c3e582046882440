"""The pool: bounded, refusing beyond its queue, gathering calls, stopping what nobody waits for."""

from __future__ import annotations

import asyncio
import gc
import os
import sys
import threading
import time
import weakref
from typing import Any

import pytest

from revolute.contract.errors import DeadlineError, LimitError, UnavailableError
from revolute_server.access.admission import Calls
from revolute_server.access.tokens import Access
from revolute_server.compute.batching import Work
from revolute_server.compute.pool import EnginePool
from revolute_server.compute.quotas import Quotas


def test_calls_beyond_workers_and_queue_are_refused() -> None:
    async def scenario() -> None:
        pool, release = EnginePool(1, 2), threading.Event()
        calls = [asyncio.create_task(pool.run(lambda _token: release.wait(30.0))) for _ in range(3)]
        await asyncio.sleep(0)
        started = time.monotonic()
        with pytest.raises(LimitError, match="--queue") as refused:
            await pool.run(lambda _token: True)
        assert refused.value.retry_after is not None and refused.value.retry_after > 0
        assert time.monotonic() - started < 10.0
        release.set()
        assert await asyncio.gather(*calls) == [True] * 3
        await asyncio.sleep(0.05)
        assert pool.waiting + pool.running == 0
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
            if pool.waiting + pool.running == 0:
                break
            await asyncio.sleep(0.01)
        assert pool.waiting + pool.running == 0
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
        assert pool.waiting + pool.running == 1
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


def test_nothing_of_a_call_stays_until_the_garbage_collector_comes() -> None:
    class Arrays:
        """Of a request and its result."""

    async def scenario() -> None:
        pool = EnginePool(1, 1)
        seen: list[weakref.ref[Arrays]] = []

        async def call() -> None:
            given = Arrays()
            found = await pool.run(lambda _token: (given, Arrays()))
            seen.extend(map(weakref.ref, found))

        await call()
        # the worker's thread lets go of what it ran when it gets the next
        await pool.run(lambda _token: None)
        assert [each() for each in seen] == [None, None]
        pool.close()

    gc.collect()
    gc.disable()
    try:
        asyncio.run(scenario())
    finally:
        gc.enable()


def summing(number: int) -> Work:
    """Return work whose result shows with which others it was computed."""
    return Work(lambda items, _token: [(item, tuple(items)) for item in items], number, key="sum")


def test_calls_with_one_key_are_gathered_while_workers_are_busy() -> None:
    async def scenario() -> None:
        pool, release = EnginePool(1, 20, batch_size=3), threading.Event()
        blocker = asyncio.create_task(pool.run(lambda _token: release.wait(30.0)))
        await asyncio.sleep(0)
        other = Work(lambda items, _token: [tuple(items)], 9, key="other")
        works = [summing(0), summing(1), other, summing(2), summing(3)]
        calls = [asyncio.create_task(pool.run_work(work)) for work in works]
        await asyncio.sleep(0)
        release.set()
        found = await asyncio.gather(*calls)
        together = (0, 1, 2)
        assert found == [(0, together), (1, together), (9,), (2, together), (3, (3,))]
        await blocker
        pool.close()

    asyncio.run(scenario())


def test_a_call_in_company_waits_for_others_and_one_alone_does_not() -> None:
    async def scenario() -> None:
        pool, release = EnginePool(2, 20, batch_delay=1.0, batch_size=3), threading.Event()

        def slow(items: Any, token: Any) -> Any:
            release.wait(0.2 if len(items) == 1 else 0.0)
            return [tuple(items) for _ in items]

        def work(number: int) -> Work:
            return Work(slow, number, key="slow")

        # the pool learns that such a call takes 0.2 s; nobody else is there, so that it starts at once
        assert await pool.run_work(work(0)) == (0,)
        first = asyncio.create_task(pool.run_work(work(1)))
        await asyncio.sleep(0.001)
        assert pool.running == 1
        # others come while it runs and a worker is idle: a short wait brings them together
        calls = [asyncio.create_task(pool.run_work(work(number))) for number in (2, 3)]
        await asyncio.sleep(0.001)
        assert (pool.running, pool.waiting) == (1, 2)
        assert await asyncio.gather(*calls) == [(2, 3), (2, 3)]
        assert await first == (1,)
        pool.close()

    asyncio.run(scenario())


def test_who_comes_again_is_waited_for_and_who_stays_away_once() -> None:
    async def scenario() -> None:
        pool, release = EnginePool(1, 20, batch_delay=5.0, batch_size=64), threading.Event()
        took = 0.2

        def slow(items: Any, token: Any) -> Any:
            time.sleep(took)
            return [tuple(items) for _ in items]

        def call(number: int) -> asyncio.Task[Any]:
            return asyncio.create_task(pool.run_work(Work(slow, number, key="slow")))

        blocker = asyncio.create_task(pool.run(lambda _token: release.wait(30.0)))
        await asyncio.sleep(0)
        calls = [call(number) for number in range(3)]
        await asyncio.sleep(0)
        release.set()
        assert await asyncio.gather(*calls) == [(0, 1, 2)] * 3
        await blocker
        # a worker is idle, and yet the first two wait; with the third all are there, and nobody waits longer
        calls = [call(3), call(4)]
        await asyncio.sleep(0.001)
        assert (pool.running, pool.waiting) == (0, 2)
        calls.append(call(5))
        await asyncio.sleep(0)
        assert (pool.running, pool.waiting) == (3, 0)
        assert await asyncio.gather(*calls) == [(3, 4, 5)] * 3
        # one has left: it is waited for, in vain, and then no more
        calls = [call(6), call(7)]
        await asyncio.sleep(0.001)
        assert pool.waiting == 2
        assert await asyncio.gather(*calls) == [(6, 7)] * 2
        calls = [call(8), call(9)]
        await asyncio.sleep(0.001)
        assert pool.waiting == 0
        assert await asyncio.gather(*calls) == [(8, 9)] * 2
        pool.close()

    asyncio.run(scenario())


def test_full_packs_go_and_the_rest_waits_for_others() -> None:
    async def scenario() -> None:
        pool, release = EnginePool(1, 20, batch_delay=5.0, batch_size=64, group=2), threading.Event()
        blocker = asyncio.create_task(pool.run(lambda _token: release.wait(30.0)))
        await asyncio.sleep(0)
        calls = [asyncio.create_task(pool.run_work(summing(number))) for number in range(5)]
        await asyncio.sleep(0)
        release.set()
        found = await asyncio.gather(*calls)
        assert [together for _, together in found] == [(0, 1, 2, 3)] * 4 + [(4,)]
        await blocker
        pool.close()

    asyncio.run(scenario())


def test_a_batch_stops_only_when_nobody_waits_for_any_of_its_calls() -> None:
    async def scenario() -> None:
        pool, release, tokens = EnginePool(1, 20), threading.Event(), []

        def until_cancelled(items: Any, token: Any) -> Any:
            tokens.append(token)
            while not token.cancelled and not release.is_set():
                time.sleep(0.001)
            return list(items)

        blocker = asyncio.create_task(pool.run(lambda _token: time.sleep(0.02)))
        await asyncio.sleep(0)
        works = [Work(until_cancelled, number, key="k") for number in range(2)]
        calls = [asyncio.create_task(pool.run_work(work)) for work in works]
        await blocker
        await asyncio.sleep(0.02)
        calls[0].cancel()
        await asyncio.sleep(0.02)
        assert not tokens[0].cancelled
        release.set()
        assert await calls[1] == 1

        release.clear()
        blocker = asyncio.create_task(pool.run(lambda _token: time.sleep(0.02)))
        await asyncio.sleep(0)
        calls = [asyncio.create_task(pool.run_work(work)) for work in works]
        await blocker
        await asyncio.sleep(0.02)
        for call in calls:
            call.cancel()
        await asyncio.wait(calls)
        assert tokens[1].cancelled
        for _ in range(500):
            if pool.waiting + pool.running == 0:
                break
            await asyncio.sleep(0.01)
        assert pool.waiting + pool.running == 0
        pool.close()

    asyncio.run(scenario())


def test_a_call_whose_deadline_passed_in_the_queue_is_not_started() -> None:
    async def scenario() -> None:
        calls, pool, ran = Calls(Access(None)), EnginePool(1, 2), []
        blocker = asyncio.create_task(pool.run(lambda _token: time.sleep(0.1)))
        await asyncio.sleep(0)
        with calls.open("grpc", {}, seconds=0.02), pytest.raises(DeadlineError):
            await pool.run(lambda _token: ran.append(1))
        await blocker
        assert ran == []
        pool.close()

    asyncio.run(scenario())


def test_each_client_has_its_share_of_calls() -> None:
    async def scenario() -> None:
        calls, release = Calls(Access(None)), threading.Event()
        pool = EnginePool(1, 10, quotas=Quotas(calls=2))

        async def one(client: str) -> Any:
            with calls.open("grpc", {}, host=client):
                return await pool.run(lambda _token: release.wait(30.0))

        greedy = [asyncio.create_task(one("greedy")) for _ in range(2)]
        await asyncio.sleep(0)
        with pytest.raises(LimitError, match="--max-client-calls") as refused:
            await one("greedy")
        assert refused.value.retry_after is not None
        modest = asyncio.create_task(one("modest"))
        await asyncio.sleep(0)
        release.set()
        assert await asyncio.gather(*greedy, modest) == [True] * 3
        assert await one("greedy")
        pool.close()

    asyncio.run(scenario())


@pytest.mark.skipif(sys.platform != "linux", reason="elsewhere priorities are those of processes")
def test_engine_threads_give_way_to_all_others() -> None:
    def priority(_token: Any) -> int:
        return os.getpriority(os.PRIO_PROCESS, threading.get_native_id())

    async def scenario() -> None:
        pool = EnginePool(1, 1, nice=3)
        before = priority(None)
        assert await pool.run(priority) == min(before + 3, 19)
        assert priority(None) == before
        pool.close()

    asyncio.run(scenario())

"""What every store does, whatever it keeps records in."""

from __future__ import annotations

import asyncio
import time
import tracemalloc
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from revolute.contract.errors import LimitError
from revolute_server.store import (
    MODEL,
    REQUEST,
    SESSION,
    Conflict,
    Delete,
    Limits,
    Put,
    Store,
    Touch,
    open_store,
    trim,
)
from revolute_server.store.codec import encode
from revolute_server.store.memory import RECORD_BYTES

Test = Callable[[Store], Awaitable[None]]
SMALL, LARGE = b"small", bytes(range(256)) * 400
"""Below and above the size from which SQLite's payloads lie in files."""


@pytest.fixture(params=["memory", "sqlite", "sqlite on disk", "redis"])
def run(request: pytest.FixtureRequest, tmp_path: Path) -> Callable[..., Any]:
    """Return a function that runs a test with each store, empty and open."""
    if request.param == "redis":
        import redis

        address = request.getfixturevalue("redis_address")
        redis.Redis.from_url(address).flushall()
    else:
        address = "memory:" if request.param == "memory" else f"sqlite:///{tmp_path}/folder/store.db"
    durability = "disk" if request.param == "sqlite on disk" else "process"

    def run_test(test: Test, limits: Limits | None = None) -> None:
        async def main() -> None:
            store = open_store(address, durability, limits or Limits())
            await store.open()
            try:
                await test(store)
            finally:
                await store.close()

        asyncio.run(main())

    return run_test


def content(record: Any) -> bytes:
    return b"".join(bytes(part) for part in record.payload)


@pytest.mark.parametrize("payload", [(SMALL,), (LARGE, SMALL, LARGE), (b"",)])
def test_what_is_put_is_there(run: Any, payload: tuple[bytes, ...]) -> None:
    async def test(store: Store) -> None:
        now = time.time()
        await store.commit(Put(SESSION, "a", payload, expires=now + 9, summary={"batch": 3}))
        record = await store.get(SESSION, "a")
        assert record is not None and content(record) == b"".join(payload)
        assert (record.version, record.size, record.summary) == (1, len(b"".join(payload)), {"batch": 3})
        assert record.expires == now + 9 and abs(record.created - now) < 60
        entry = await store.look(SESSION, "a")
        assert entry is not None and (entry.version, entry.expires) == (1, now + 9)
        assert await store.get(SESSION, "b") is None and await store.look(MODEL, "a") is None
        assert store.usage[SESSION, ""] == (1, record.size)

    run(test)


def test_a_version_is_replaced_only_once(run: Any) -> None:
    async def test(store: Store) -> None:
        await store.commit(Put(SESSION, "a", (SMALL,), expect=0))
        with pytest.raises(Conflict):
            await store.commit(Put(SESSION, "a", (LARGE,), expect=0))
        await store.commit(Put(SESSION, "a", (LARGE,), expect=1))
        with pytest.raises(Conflict) as caught:
            await store.commit(Put(SESSION, "a", (SMALL,), expect=1))
        assert (caught.value.kind, caught.value.key) == (SESSION, "a")
        record = await store.get(SESSION, "a")
        assert record is not None and record.version == 2 and content(record) == LARGE
        assert store.usage[SESSION, ""] == (1, len(LARGE))

    run(test)


def test_a_transaction_happens_whole_or_not_at_all(run: Any) -> None:
    async def test(store: Store) -> None:
        await store.commit(Put(SESSION, "a", (SMALL,)))
        with pytest.raises(Conflict):
            await store.commit(
                Put(SESSION, "a", (LARGE,)), Put(SESSION, "b", (LARGE,)), Delete(REQUEST, "none")
            )
        record = await store.get(SESSION, "a")
        assert record is not None and content(record) == SMALL and record.version == 1
        assert await store.look(SESSION, "b") is None
        await store.commit(Put(SESSION, "b", (SMALL,)), Delete(SESSION, "a"))
        assert await store.look(SESSION, "a") is None and await store.look(SESSION, "b") is not None
        assert store.usage[SESSION, ""] == (1, len(SMALL))

    run(test)


def test_one_of_many_at_once_wins(run: Any) -> None:
    async def test(store: Store) -> None:
        async def put(number: int) -> bool:
            try:
                await store.commit(
                    Put(SESSION, "a", (b"%d" % number,), expect=0), Put(REQUEST, str(number), (SMALL,))
                )
            except Conflict:
                return False
            return True

        won = await asyncio.gather(*(put(number) for number in range(50)))
        assert sum(won) == 1
        record = await store.get(SESSION, "a")
        assert record is not None and int(content(record)) == won.index(True)
        assert [entry.key for entry in await store.scan(REQUEST)] == [str(won.index(True))]

    run(test)


def test_a_model_in_use_stays(run: Any) -> None:
    async def test(store: Store) -> None:
        with pytest.raises(Conflict) as caught:
            await store.commit(Put(SESSION, "a", (SMALL,), parent="m"))
        assert (caught.value.kind, caught.value.key) == (MODEL, "m")
        await store.commit(Put(MODEL, "m", (SMALL,)))
        await store.commit(Put(SESSION, "a", (SMALL,), parent="m"))
        await store.commit(Put(SESSION, "a", (LARGE,), parent="m", expect=1))
        with pytest.raises(Conflict) as caught:
            await store.commit(Delete(MODEL, "m"))
        assert caught.value.referenced
        await store.commit(Delete(SESSION, "a"))
        await store.commit(Delete(MODEL, "m"))
        assert await store.look(MODEL, "m") is None

    run(test)


def test_listings_go_on_where_they_ended(run: Any) -> None:
    async def test(store: Store) -> None:
        for number in range(7):
            await store.commit(Put(SESSION, f"{number * 5 % 7}", (SMALL,), summary={"number": number}))
        await store.commit(Put(MODEL, "other", (SMALL,)))
        first = await store.scan(SESSION, limit=3)
        rest = await store.scan(SESSION, after=first[-1].sequence)
        assert [entry.summary["number"] for entry in (*first, *rest)] == list(range(7))
        assert await store.scan(SESSION, after=rest[-1].sequence) == []
        assert [entry.summary["number"] for entry in await store.newest(SESSION, 3)] == [6, 5, 4]
        await trim(store, SESSION, 2)
        assert [entry.summary["number"] for entry in await store.scan(SESSION)] == [5, 6]

    run(test)


def test_the_oldest_go_when_there_are_too_many_bytes(run: Any) -> None:
    async def test(store: Store) -> None:
        for number in range(20):
            await store.commit(Put(REQUEST, str(number), (bytes(1000 + number),)))
        await trim(store, REQUEST, None, 3100)
        assert [entry.key for entry in await store.scan(REQUEST)] == ["17", "18", "19"]
        await trim(store, REQUEST, 2, 3100)
        assert [entry.key for entry in await store.scan(REQUEST)] == ["18", "19"]
        await trim(store, REQUEST, None, 0)
        assert await store.scan(REQUEST) == []

    run(test)


def _request(key: str, client: str, payload: bytes = SMALL) -> Put:
    return Put(REQUEST, key, (payload,), summary={"client": client}, client=client)


@pytest.mark.parametrize("payload", [SMALL, bytes(3000)])
def test_a_client_displaces_no_requests_of_others(run: Any, payload: bytes) -> None:
    """Neither by their number nor by their bytes; the share of a client alone is everything."""
    limits = Limits(requests=40) if payload is SMALL else Limits(request_bytes=40 * len(payload) + 40_000)

    async def test(store: Store) -> None:
        for number in range(10):
            await store.commit(_request(f"few {number}", "few", payload))
        for number in range(60):
            await store.commit(_request(f"many {number}", "many", payload))
        await trim(store, REQUEST, limits.requests, limits.request_bytes)
        left = {entry.key for entry in await store.scan(REQUEST)}
        assert {f"few {number}" for number in range(10)} <= left
        assert "many 59" in left and "many 0" not in left
        assert 25 <= len(left) - 10 <= 43

    run(test, limits)


def test_requests_in_memory_are_bounded_and_counted() -> None:
    """At once, not when the sweeper comes; each record counts with the objects that hold it."""
    reserved = [0]

    def reserve(count: int) -> None:
        reserved[0] += count

    async def main() -> None:
        limits = Limits(requests=50, request_bytes=100_000)
        store = open_store("memory:", "process", limits, reserve)
        for number in range(200):
            await store.commit(Put(SESSION, str(number), (b"",)), Put(REQUEST, str(number), (bytes(100),)))
            await store.commit(Delete(SESSION, str(number)))
        assert [entry.key for entry in await store.scan(REQUEST)] == list(map(str, range(150, 200)))
        for number in range(200, 300):
            await store.commit(Put(REQUEST, str(number), (bytes(10_000),)))
            assert reserved[0] <= 100_000
        assert [entry.key for entry in await store.scan(REQUEST)] == list(map(str, range(291, 300)))
        assert reserved[0] == sum(10_000 + RECORD_BYTES for _ in range(9))
        # one alone that is too large is kept: it is the answer that is being given
        await store.commit(Put(REQUEST, "large", (bytes(200_000),)))
        assert [entry.key for entry in await store.scan(REQUEST)] == ["large"]

    asyncio.run(main())


def test_a_record_in_memory_takes_no_more_than_is_counted() -> None:
    async def main() -> None:
        counted = [0]

        def reserve(count: int) -> None:
            counted[0] += count

        store = open_store("memory:", "process", Limits(), reserve)
        tracemalloc.start()
        before = tracemalloc.get_traced_memory()[0]
        for number in range(1000):
            arrays = {str(place): np.full(3, float(number)) for place in range(5)}
            await store.commit(Put(REQUEST, f"{number:032}", encode({"fingerprint": "x" * 32, **arrays})))
        used = tracemalloc.get_traced_memory()[0] - before
        tracemalloc.stop()
        assert 0.5 * counted[0] < used < counted[0]

    asyncio.run(main())


def test_what_expires_is_listed_and_deleted_unless_it_was_renewed(run: Any) -> None:
    async def test(store: Store) -> None:
        for key, expires in (("a", 100.0), ("b", 200.0), ("c", None)):
            await store.commit(Put(SESSION, key, (SMALL,), expires=expires))
        assert [entry.key for entry in await store.expired(150.0)] == ["a"]
        await store.commit(Touch(SESSION, "a", 300.0))
        assert await store.expired(150.0) == []
        with pytest.raises(Conflict):
            await store.commit(Delete(SESSION, "a", expired_at=150.0))
        await store.commit(Delete(SESSION, "b", expired_at=200.0))
        entry = await store.look(SESSION, "a")
        assert entry is not None and (entry.expires, entry.version) == (300.0, 1)
        assert sorted(entry.key for entry in await store.scan(SESSION)) == ["a", "c"]
        with pytest.raises(Conflict):
            await store.commit(Delete(SESSION, "c", expired_at=1e12))
        with pytest.raises(Conflict):
            await store.commit(Touch(SESSION, "none", 1.0))

    run(test)


def test_limits_are_met_and_not_passed(run: Any) -> None:
    async def test(store: Store) -> None:
        await store.commit(Put(SESSION, "a", (bytes(60),)), Put(SESSION, "b", (bytes(10),)))
        with pytest.raises(LimitError, match="--max-sessions"):
            await store.commit(Put(SESSION, "c", (b"",)))
        with pytest.raises(LimitError, match="--store-bytes"):
            await store.commit(Put(SESSION, "b", (bytes(60),)))
        # what repeats are answered with is not refused
        await store.commit(Put(REQUEST, "r", (bytes(500),)))
        await store.commit(Delete(SESSION, "a"))
        await store.commit(Put(SESSION, "b", (bytes(60),)))
        assert store.usage[SESSION, ""] == (1, 60)

    run(test, Limits({SESSION: 2}, total=100))


def test_a_client_has_its_share(run: Any) -> None:
    async def test(store: Store) -> None:
        await store.commit(Put(SESSION, "a", (bytes(30),), client="one"))
        with pytest.raises(LimitError, match=r"of one client.*--max-client-sessions"):
            await store.commit(Put(SESSION, "b", (b"",), client="one"))
        with pytest.raises(LimitError, match="--max-client-memory"):
            await store.commit(Put(SESSION, "a", (bytes(51),), client="two"))
        await store.commit(Put(SESSION, "c", (bytes(50),), client="two words"))
        assert store.count(SESSION) == 2 and store.usage[SESSION, "two words"] == (1, 50)
        with pytest.raises(LimitError):
            store.check_room(SESSION, "one", 0)
        store.check_room(SESSION, "three", 50)
        await store.commit(Delete(SESSION, "a"))
        await store.commit(Put(SESSION, "b", (b"",), client="one"))
        assert (SESSION, "one") in store.usage
        await store.commit(Delete(SESSION, "b"))
        assert (SESSION, "one") not in store.usage

    run(test, Limits(client_counts={SESSION: 1}, client_total=50))

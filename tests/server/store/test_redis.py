"""What only a Redis server can do: have no room, hang up, lose everything."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Iterator

import pytest

from revolute.errors import LimitError, UnavailableError
from revolute_server.store import SESSION, TRAJECTORY, Delete, Limits, Put, Store, open_store

redis = pytest.importorskip("redis")

LARGE = bytes(range(256)) * 4000


@pytest.fixture
def admin(redis_address: str) -> Iterator[redis.Redis]:
    """Return a connection that may change the settings of an empty Redis server."""
    found = redis.Redis.from_url(redis_address)
    found.flushall()
    yield found
    found.config_set("maxmemory", 0)
    found.close()


def use(address: str, work: Callable[[Store], Awaitable[None]]) -> None:
    async def main() -> None:
        store = open_store(address, "process", Limits())
        await store.open()
        try:
            await work(store)
        finally:
            await store.close()

    asyncio.run(main())


def test_a_server_without_room_refuses_reads_and_deletes(redis_address: str, admin: redis.Redis) -> None:
    async def work(store: Store) -> None:
        await store.commit(Put(TRAJECTORY, "kept", (LARGE,)), Put(SESSION, "s", (b"small",)))
        admin.config_set("maxmemory", 1)
        admin.config_set("maxmemory-policy", "noeviction")
        for put in (Put(TRAJECTORY, "new", (LARGE,)), Put(SESSION, "new", (b"small",))):
            with pytest.raises(LimitError, match="store: expected room for what is to be kept"):
                await store.commit(put)
            assert await store.look(put.kind, put.key) is None
        found = await store.get(TRAJECTORY, "kept")
        assert found is not None and found.payload == (LARGE,)
        await store.commit(Delete(TRAJECTORY, "kept"))
        assert store.count(TRAJECTORY) == 0
        admin.config_set("maxmemory", 0)
        await store.commit(Put(TRAJECTORY, "new", (LARGE,)))
        assert await store.get(TRAJECTORY, "new") is not None

    use(redis_address, work)


def test_reading_does_not_notice_that_an_idle_connection_was_closed(
    redis_address: str, admin: redis.Redis
) -> None:
    async def work(store: Store) -> None:
        await store.commit(Put(SESSION, "s", (b"small",)))
        reads: list[Callable[[], Awaitable[object]]] = [
            lambda: store.get(SESSION, "s"),
            lambda: store.look(SESSION, "s"),
            lambda: store.scan(SESSION),
            lambda: store.newest(SESSION, 3),
        ]
        for read in reads:
            admin.client_kill_filter(_type="normal", skipme=True)
            assert await read()
        # what changes something is not sent twice, as it may have happened the first time
        admin.client_kill_filter(_type="normal", skipme=True)
        try:
            await store.commit(Put(SESSION, "s", (b"other",), expect=1))
        except UnavailableError:
            entry = await store.look(SESSION, "s")
            assert entry is not None and entry.version == 1
            await store.commit(Put(SESSION, "s", (b"other",), expect=1))

    use(redis_address, work)


def test_what_the_server_has_lost_is_not_there(redis_address: str, admin: redis.Redis) -> None:
    async def work(store: Store) -> None:
        await store.commit(Put(SESSION, "s", (b"small",)))
        admin.flushall()
        assert await store.get(SESSION, "s") is None and await store.scan(SESSION) == []
        await store.commit(Put(SESSION, "s", (b"small",), expect=0))
        assert store.count(SESSION) == 1

    use(redis_address, work)

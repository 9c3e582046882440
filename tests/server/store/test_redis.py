"""What only a Redis server can do: have no room, hang up, lose everything."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Iterator
from pathlib import Path

import pytest

from revolute.contract.errors import LimitError, UnavailableError
from revolute_server.store import SESSION, TRAJECTORY, Conflict, Delete, Limits, Put, Store, open_store

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


def test_nobody_notices_that_idle_connections_were_closed(redis_address: str, admin: redis.Redis) -> None:
    async def work(store: Store) -> None:
        await store.commit(Put(SESSION, "s", (b"small",)))
        uses: list[Callable[[], Awaitable[object]]] = [
            lambda: store.get(SESSION, "s"),
            lambda: store.look(SESSION, "s"),
            lambda: store.scan(SESSION),
            lambda: store.newest(SESSION, 3),
            lambda: store.commit(Put(SESSION, "s", (b"other",), expect=1)),
        ]
        for use_store in uses:
            # several connections, all of which are closed
            await asyncio.gather(*(store.look(SESSION, "s") for _ in range(5)))
            admin.client_kill_filter(_type="normal", skipme=True)
            await use_store()
        entry = await store.look(SESSION, "s")
        assert entry is not None and entry.version == 2

    use(redis_address, work)


class _Wire:
    """Stands between a store and its Redis server, and cuts connections."""

    def __init__(self, address: str) -> None:
        self._path = address.removeprefix("unix://").partition("?")[0]
        self.cut_requests, self.cut_answers = 0, 0

    async def serve(self, path: Path) -> asyncio.AbstractServer:
        return await asyncio.start_unix_server(self._carry, path)

    async def _carry(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        to_redis, from_redis = None, None
        try:
            from_redis, to_redis = await asyncio.open_unix_connection(self._path)
            while request := await reader.read(1 << 20):
                is_commit = b"EVALSHA" in request
                if is_commit and self.cut_requests:
                    self.cut_requests -= 1
                    return
                to_redis.write(request)
                answer = await from_redis.read(1 << 20)
                if is_commit and self.cut_answers:
                    self.cut_answers -= 1
                    return
                writer.write(answer)
        finally:
            writer.close()
            if to_redis is not None:
                to_redis.close()


def test_a_transaction_whose_connection_breaks_happens_once(
    redis_address: str, admin: redis.Redis, tmp_path: Path
) -> None:
    wire = _Wire(redis_address)

    async def work(store: Store) -> None:
        await store.commit(Put(SESSION, "s", (b"0",)))
        for version in range(1, 20):
            wire.cut_requests, wire.cut_answers = version % 2, (version + 1) % 2
            await store.commit(Put(SESSION, "s", (b"%d" % version,), expect=version))
            assert wire.cut_requests == wire.cut_answers == 0
            entry = await store.look(SESSION, "s")
            assert entry is not None and entry.version == version + 1
        # twice in a row is for the caller
        wire.cut_requests = 2
        with pytest.raises(UnavailableError, match="same request_id"):
            await store.commit(Put(SESSION, "s", (b"",), expect=20))
        with pytest.raises(Conflict):
            await store.commit(Put(SESSION, "s", (b"",), expect=19))
        assert store.count(SESSION) == 1

    async def main() -> None:
        path = tmp_path / "wire.sock"
        async with await wire.serve(path):
            store = open_store(f"unix://{path}?db=0", "process", Limits())
            await store.open()
            await work(store)
            await store.close()

    asyncio.run(main())


def test_what_the_server_has_lost_is_not_there(redis_address: str, admin: redis.Redis) -> None:
    async def work(store: Store) -> None:
        await store.commit(Put(SESSION, "s", (b"small",)))
        admin.flushall()
        assert await store.get(SESSION, "s") is None and await store.scan(SESSION) == []
        await store.commit(Put(SESSION, "s", (b"small",), expect=0))
        assert store.count(SESSION) == 1

    use(redis_address, work)

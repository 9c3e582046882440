"""Two stores in one: sessions with `durable=False` are kept in memory, and everything else in the store.

Their ids and the keys of their requests have prefixes, so every record belongs to one of the two stores. A
transaction belongs to one store, too: a session's record and that of the request are in the same.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from .interface import (
    MODEL,
    REQUEST,
    SESSION,
    TOMBSTONE,
    Conflict,
    Delete,
    Entry,
    Put,
    Record,
    Store,
    Usage,
    Write,
    trim,
)
from .memory import MemoryStore

_SESSION_PREFIX = "memory-"
"""Begins the ids of sessions that are not durable."""

_REQUEST_PREFIX = "memory  "
"""Begins the keys of their requests; clients cannot send such a key, which has two spaces."""

_PREFIXES = {
    SESSION: _SESSION_PREFIX,
    REQUEST: _REQUEST_PREFIX,
    TOMBSTONE: f"{SESSION} {_SESSION_PREFIX}",
}

_AFTER_ALL = 10**17
"""Added to the sequence numbers of records in memory: lists have them after the others."""

_MOST_TOMBSTONES = 1000


def session_id(identifier: str, *, durable: bool) -> str:
    """Return the id of a new session."""
    return identifier if durable else _SESSION_PREFIX + identifier


def is_durable(identifier: str) -> bool:
    """Tell whether a session is kept in the store."""
    return not identifier.startswith(_SESSION_PREFIX)


def request_key(key: str, arguments: Mapping[str, Any]) -> str:
    """Return the key of a request's record: that of a session which is not durable lies in memory as well."""
    named = str(arguments.get("session_id", "") or arguments.get("id", ""))
    durable = is_durable(named) and arguments.get("durable", True)
    return key if durable else _REQUEST_PREFIX + key


class SplitStore(Store):
    """A store, and the memory beside it.

    Args:
        durable: the store.
        memory: records of sessions that are not durable. Models that these use have an empty record there, so
            that they cannot be deleted.
    """

    def __init__(self, durable: Store, memory: MemoryStore) -> None:
        self._durable = durable
        self._memory = memory
        self.in_memory = durable.in_memory
        self.limits = durable.limits

    @property
    def usage(self) -> Usage:  # type: ignore[override]
        """Number and bytes by kind and client; of the records in memory only those of sessions."""
        total = dict(self._durable.usage)
        for (kind, client), (count, size) in self._memory.usage.items():
            if kind == SESSION:
                number, held = total.get((kind, client), (0, 0))
                total[kind, client] = number + count, held + size
        return total

    async def open(self) -> None:
        await self._durable.open()

    async def check(self) -> None:
        await self._durable.check()

    async def get(self, kind: str, key: str) -> Record | None:
        return await self._of(kind, key).get(kind, key)

    async def look(self, kind: str, key: str) -> Entry | None:
        return await self._of(kind, key).look(kind, key)

    async def commit(self, *writes: Write) -> None:
        if not any(_is_in_memory(write.kind, write.key) for write in writes):
            for write in writes:
                if isinstance(write, Delete) and write.kind == MODEL:
                    await self._release_model(write)
            await self._durable.commit(*writes)
            return
        parents = {write.parent for write in writes if isinstance(write, Put) and write.parent}
        new = [parent for parent in parents if await self._memory.look(MODEL, parent) is None]
        for parent in new:
            if await self._durable.look(MODEL, parent) is None:
                raise Conflict(MODEL, parent)
        await self._memory.commit(*(Put(MODEL, parent, (b"",)) for parent in new), *writes)
        if any(write.kind == TOMBSTONE for write in writes):
            await trim(self._memory, TOMBSTONE, _MOST_TOMBSTONES)

    async def scan(self, kind: str, after: int = 0, limit: int = 1000) -> list[Entry]:
        found = [] if after >= _AFTER_ALL else await self._durable.scan(kind, after, limit)
        if kind != SESSION or len(found) >= limit:
            return found
        rest = await self._memory.scan(kind, max(0, after - _AFTER_ALL), limit - len(found))
        return found + [_after_all(entry) for entry in rest]

    async def newest(self, kind: str, limit: int) -> list[Entry]:
        found = await self._durable.newest(kind, limit)
        if kind == SESSION:
            found += await self._memory.newest(kind, limit)
            found.sort(key=lambda entry: -entry.created)
        return found[:limit]

    async def expired(self, now: float, limit: int = 1000) -> list[Entry]:
        return await self._memory.expired(now, limit) or await self._durable.expired(now, limit)

    async def close(self) -> None:
        await self._durable.close()

    def _of(self, kind: str, key: str) -> Store:
        return self._memory if _is_in_memory(kind, key) else self._durable

    async def _release_model(self, write: Delete) -> None:
        """Delete the record in memory of a model that is to be deleted.

        Raises:
            Conflict: a session in memory uses the model.
        """
        if await self._memory.look(MODEL, write.key) is not None:
            await self._memory.commit(write)


def _is_in_memory(kind: str, key: str) -> bool:
    prefix = _PREFIXES.get(kind)
    return prefix is not None and key.startswith(prefix)


def _after_all(entry: Entry) -> Entry:
    known = {name: getattr(entry, name) for name in Entry.__dataclass_fields__}
    return Entry(**{**known, "sequence": entry.sequence + _AFTER_ALL})

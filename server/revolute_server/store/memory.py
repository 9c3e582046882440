"""`memory:`: records in the memory of this process, lost when it ends; for tests and short-lived servers."""

from __future__ import annotations

import collections
import dataclasses
import itertools
import time
from collections.abc import Callable

from .interface import (
    MODEL,
    REQUEST,
    Conflict,
    Delete,
    Entry,
    Excess,
    Limits,
    Put,
    Record,
    Store,
    Touch,
    Write,
    add_to_usage,
    joined,
)

RECORD_BYTES = 1024
"""Approximate bytes of a record besides its payload: Python objects, key and summary."""

_JOINED_BYTES = 16 * 1024
"""Payloads up to this size are joined; an object per buffer would take more memory than the bytes."""


@dataclasses.dataclass(frozen=True)
class _Kept:
    """A record, its parent, and the client whose limits it counts towards."""

    record: Record
    parent: str
    client: str


class MemoryStore(Store):
    """Records in one dictionary per kind, in the order of creation.

    Args:
        limits: limits on the records. Old remembered requests are deleted as soon as there are too many.
        reserve: called with the change of the bytes in memory; raises LimitError if they do not fit.
    """

    in_memory = True

    def __init__(self, limits: Limits, reserve: Callable[[int], None] = lambda _count: None) -> None:
        self.limits = limits
        self._reserve = reserve
        self._kinds: dict[str, dict[str, _Kept]] = collections.defaultdict(collections.OrderedDict)
        self._requests: dict[str, dict[str, None]] = collections.defaultdict(collections.OrderedDict)
        self._children: collections.Counter[str] = collections.Counter()
        self._sequence = 0
        self.usage: dict[tuple[str, str], tuple[int, int]] = {}

    async def open(self) -> None:
        """Nothing to do."""

    async def check(self) -> None:
        """Nothing to check."""

    async def get(self, kind: str, key: str) -> Record | None:
        found = self._kinds[kind].get(key)
        return found.record if found else None

    async def look(self, kind: str, key: str) -> Entry | None:
        return await self.get(kind, key)

    async def commit(self, *writes: Write) -> None:
        stage = _Stage(self._kinds, self._children, self.usage, self.limits, self._sequence)
        for write in writes:
            stage.apply(write)
        if any(write.kind == REQUEST for write in writes):
            self._forget_requests(stage)
        self._reserve(stage.grown)
        for (kind, key), kept in stage.changes.items():
            old = self._kinds[kind].pop(key, None) if kept is None else self._kinds[kind].get(key)
            if kept is not None:
                self._kinds[kind][key] = kept
            if kind == REQUEST:
                self._note_request(key, old, kept)
        if stage.children:
            self._children.update(stage.children)
        self.usage, self._sequence = stage.usage, stage.sequence

    async def scan(self, kind: str, after: int = 0, limit: int = 1000) -> list[Entry]:
        later = (kept.record for kept in self._kinds[kind].values() if kept.record.sequence > after)
        return list(itertools.islice(later, limit))

    async def newest(self, kind: str, limit: int) -> list[Entry]:
        return [kept.record for kept in itertools.islice(reversed(self._kinds[kind].values()), limit)]

    async def expired(self, now: float, limit: int = 1000) -> list[Entry]:
        records = (kept.record for kind in self._kinds.values() for kept in kind.values())
        return list(itertools.islice((entry for entry in records if _has_expired(entry, now)), limit))

    async def close(self) -> None:
        """Nothing to do."""

    def _note_request(self, key: str, old: _Kept | None, new: _Kept | None) -> None:
        """Keep the list of each client's requests."""
        if new is not None:
            self._requests[new.client][key] = None
        elif old is not None:
            self._requests[old.client].pop(key, None)
            if not self._requests[old.client]:
                del self._requests[old.client]

    def _forget_requests(self, stage: _Stage) -> None:
        """Delete old remembered requests until the others are within the limits; see `trim`."""
        limits = self.limits
        while excess := Excess.of(stage.usage, REQUEST, limits.requests, limits.request_bytes, RECORD_BYTES):
            client = max(excess.clients, key=lambda name: max(excess.clients[name]))
            own = (key for key in self._requests[client] if (REQUEST, key) not in stage.changes)
            oldest = next(own, None)
            if oldest is None:
                return
            stage.apply(Delete(REQUEST, oldest))


class _Stage:
    """The changes of a transaction, before they are applied; `grown` counts the bytes that they add."""

    def __init__(
        self,
        kinds: dict[str, dict[str, _Kept]],
        children: collections.Counter[str],
        usage: dict[tuple[str, str], tuple[int, int]],
        limits: Limits,
        sequence: int,
    ) -> None:
        self._kinds = kinds
        self._all_children = children
        self._limits = limits
        self.changes: dict[tuple[str, str], _Kept | None] = {}
        self.children: collections.Counter[str] = collections.Counter()
        self.usage = dict(usage)
        self.grown = 0
        self.sequence = sequence

    def apply(self, write: Write) -> None:
        """Stage one write.

        Raises:
            Conflict: a record is not in the state that the write expects.
            LimitError: a limit would be exceeded.
        """
        name = write.kind, write.key
        old = self._find(name)
        if isinstance(write, Put):
            self._put(write, old)
        elif old is None:
            raise Conflict(*name)
        elif isinstance(write, Touch):
            touched = dataclasses.replace(old.record, expires=write.expires)
            self.changes[name] = dataclasses.replace(old, record=touched)
        else:
            self._delete(write, old)

    def _find(self, name: tuple[str, str]) -> _Kept | None:
        return self.changes[name] if name in self.changes else self._kinds[name[0]].get(name[1])

    def _put(self, write: Put, kept: _Kept | None) -> None:
        name = write.kind, write.key
        old = kept.record if kept else None
        if write.expect is not None and write.expect != (old.version if old else 0):
            raise Conflict(*name)
        if old is None and write.parent:
            if self._find((MODEL, write.parent)) is None:
                raise Conflict(MODEL, write.parent)
            self.children[write.parent] += 1
        client = kept.client if kept else write.client
        grown = write.size - (old.size if old else 0)
        self._limits.check(self.usage, write.kind, client, int(old is None), grown)
        if old is None:
            self.sequence += 1
        record = Record(
            write.kind,
            write.key,
            version=old.version + 1 if old else 1,
            sequence=old.sequence if old else self.sequence,
            created=old.created if old else time.time(),
            expires=write.expires,
            size=write.size,
            summary=dict(write.summary),
            parent=kept.parent if kept else write.parent,
            client=client,
            payload=(joined(write.payload),) if write.size <= _JOINED_BYTES else write.payload,
        )
        self.changes[name] = _Kept(record, kept.parent if kept else write.parent, client)
        self._count(write.kind, client, int(old is None), grown)

    def _delete(self, write: Delete, kept: _Kept) -> None:
        if write.expired_at is not None and not _has_expired(kept.record, write.expired_at):
            raise Conflict(write.kind, write.key)
        if write.kind == MODEL and self._all_children[write.key] + self.children[write.key] > 0:
            raise Conflict(write.kind, write.key, referenced=True)
        if kept.parent:
            self.children[kept.parent] -= 1
        self.changes[write.kind, write.key] = None
        self._count(write.kind, kept.client, -1, -kept.record.size)

    def _count(self, kind: str, client: str, number: int, size: int) -> None:
        add_to_usage(self.usage, kind, client, number, size)
        self.grown += size + RECORD_BYTES * number


def _has_expired(entry: Entry, now: float) -> bool:
    return entry.expires is not None and entry.expires <= now

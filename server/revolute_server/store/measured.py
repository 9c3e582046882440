"""A wrapper around a store that measures its operations."""

from __future__ import annotations

from ..observe.telemetry import Telemetry
from .interface import Entry, Record, Store, Usage, Write


class MeasuredStore(Store):
    """Forwards to another store, and records the time of each operation as the stage "store".

    Args:
        inner: the store.
        telemetry: receives the times.
    """

    def __init__(self, inner: Store, telemetry: Telemetry) -> None:
        self._inner = inner
        self._telemetry = telemetry
        self.in_memory = inner.in_memory
        self.limits = inner.limits

    @property
    def usage(self) -> Usage:  # type: ignore[override]
        """Number and bytes by kind and client, as last seen."""
        return self._inner.usage

    async def open(self) -> None:
        await self._inner.open()

    async def check(self) -> None:
        await self._inner.check()

    async def get(self, kind: str, key: str) -> Record | None:
        with self._telemetry.measure("store", operation="get"):
            return await self._inner.get(kind, key)

    async def look(self, kind: str, key: str) -> Entry | None:
        with self._telemetry.measure("store", operation="look"):
            return await self._inner.look(kind, key)

    async def commit(self, *writes: Write) -> None:
        with self._telemetry.measure("store", operation="commit"):
            await self._inner.commit(*writes)

    async def scan(self, kind: str, after: int = 0, limit: int = 1000) -> list[Entry]:
        with self._telemetry.measure("store", operation="scan"):
            return await self._inner.scan(kind, after, limit)

    async def newest(self, kind: str, limit: int) -> list[Entry]:
        with self._telemetry.measure("store", operation="scan"):
            return await self._inner.newest(kind, limit)

    async def expired(self, now: float, limit: int = 1000) -> list[Entry]:
        return await self._inner.expired(now, limit)

    async def close(self) -> None:
        await self._inner.close()

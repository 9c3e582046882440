"""Expiry of unused records: sessions after their lease, trajectories after `--trajectory-ttl`.

The store has the time at which a record expires. That time is set a tenth later than promised, and renewed
only when less than the promised duration is left, so that most uses of a record write nothing.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
import math
import time
from collections.abc import Callable, Mapping
from typing import Any

from revolute.contract.errors import (
    ArgumentError,
    LimitError,
    NotFoundError,
    RevoluteError,
    UnavailableError,
)

from ..access.caller import is_visible
from ..store import (
    REQUEST,
    SESSION,
    TOMBSTONE,
    TRAJECTORY,
    Conflict,
    Delete,
    Entry,
    Put,
    Store,
    Touch,
    delete_each,
    trim,
)
from .expiry_clock import ExpiryClock

_log = logging.getLogger("revolute.server")

_SLACK = 1.1
_SWEEP_SECONDS = 1.0
_MOST_ROUNDS = 20  # of one sweep; the rest waits for the next sweep
_TOMBSTONE_SECONDS = 24 * 3600.0
_MAX_TOMBSTONES = 10_000

_clock = ExpiryClock()


def expiry(duration: float) -> float:
    """Return the time of expiry of a record that is used now, in s since 1970."""
    return time.time() + _SLACK * duration


async def renew(store: Store, entry: Entry, duration: float, *, must: bool = False) -> float | None:
    """Renew the expiry of a record that is used now.

    Args:
        store: the store.
        entry: the record.
        duration: promised time in s without use until it expires.
        must: whether to raise an error if the store cannot write, e.g. because its disk is full; a call that
            only reads does not need the renewal.

    Returns:
        The new time of expiry; None if it was not changed.
    """
    if entry.expires is None or entry.expires >= _clock.now() + duration:
        return None
    expires = expiry(duration)
    try:
        await store.commit(Touch(entry.kind, entry.key, expires))
    except Conflict:
        # deleted in the meantime; this use began before
        return None
    except (LimitError, UnavailableError) as error:
        if must:
            raise
        _log.warning("%s %s is not kept longer: %s", entry.kind, entry.key[:8], error)
        return None
    return expires


def seconds_left(expires: float | None) -> float:
    """Return the seconds until a record expires."""
    now = _clock.now()
    return max(0.0, (now if expires is None else expires) - now)


def has_expired(expires: float | None) -> bool:
    """Tell whether a record has expired."""
    return expires is not None and expires <= _clock.now()


def lease_duration(lease: float | None, default: float, most: float) -> float:
    """Return the duration in s of a lease that a client asks for; None asks for the default.

    Raises:
        ArgumentError: it is not positive, or longer than `--max-lease`.
    """
    if lease is None:
        return min(default, most)
    if not 0 < lease <= most:
        raise ArgumentError.expected(
            "lease", f"above 0 and at most {most:g} s", f"{lease:g}" if math.isfinite(lease) else lease
        )
    return lease


async def find_owned(store: Store, kind: str, identifier: str) -> Entry:
    """Return the entry of a session or trajectory of the caller.

    Raises:
        NotFoundError: it was deleted, has expired, never existed, or belongs to another caller.
    """
    entry = await store.look(kind, identifier)
    if entry is None or has_expired(entry.expires) or not is_visible(entry.owner):
        raise await not_found(store, kind, identifier)
    return entry


async def not_found(store: Store, noun: str, identifier: str) -> NotFoundError:
    """Return the error for an unknown id.

    The error tells whether a record of the caller had this id and has expired. A record of another caller is
    not revealed.
    """
    entry = await store.look(noun, identifier) or await store.look(TOMBSTONE, f"{noun} {identifier}")
    ended = entry is not None and (entry.kind == TOMBSTONE or has_expired(entry.expires))
    if entry is None or not ended or not is_visible(entry.owner):
        return NotFoundError.missing(noun, identifier)
    unused = float(entry.summary.get("lease", 0.0))
    reasons = {
        SESSION: f"its lease of {unused:g} s ended; any call on a session renews it, as KeepAlive does",
        TRAJECTORY: "it expired; it was not used for the server's --trajectory-ttl",
    }
    return NotFoundError.missing(noun, identifier, reasons[noun])


class Sweeper:
    """Deletes expired records, and the oldest remembered requests beyond the store's limits.

    Args:
        store: the store.
        forget: called with kind and id of each deleted record.
    """

    def __init__(self, store: Store, forget: Callable[[str, str], None]) -> None:
        self._store = store
        self._forget = forget
        self._task: asyncio.Task[None] | None = None

    def start(self) -> None:
        """Sweep once a second, until `stop`."""
        self._task = asyncio.create_task(self._sweep_forever(), name="sweeper")

    async def stop(self) -> None:
        """Stop sweeping."""
        if self._task:
            self._task.cancel()
            with contextlib.suppress(asyncio.CancelledError):
                await self._task

    async def sweep(self) -> None:
        """Delete the records that have expired by now."""
        now = _clock.now()
        for _ in range(_MOST_ROUNDS):
            expired = await self._store.expired(now)
            if not expired:
                break
            plain = [entry for entry in expired if entry.kind not in (SESSION, TRAJECTORY)]
            if plain:
                await delete_each(self._store, [_delete(entry, now) for entry in plain])
            for entry in expired:
                if entry not in plain:
                    await self._expire(entry, now)
        await trim(self._store, REQUEST, self._store.limits.requests, self._store.limits.request_bytes)
        await trim(self._store, TOMBSTONE, _MAX_TOMBSTONES)

    async def _expire(self, entry: Entry, now: float) -> None:
        """Replace an expired session or trajectory by a tombstone, for the error text of `not_found`."""
        kept: Mapping[str, Any] = {"lease": entry.summary.get("lease", 0.0), "owner": entry.owner}
        tombstone = Put(
            TOMBSTONE,
            f"{entry.kind} {entry.key}",
            (b"",),
            expires=time.time() + _TOMBSTONE_SECONDS,
            summary=kept,
        )
        # renewed or deleted in the meantime; nothing to do
        with contextlib.suppress(Conflict):
            await self._store.commit(_delete(entry, now), tombstone)
            self._forget(entry.kind, entry.key)

    async def _sweep_forever(self) -> None:
        while True:
            try:
                await self.sweep()
            except RevoluteError as error:
                _log.warning("what has expired stays for now: %s", error)
            except Exception:
                _log.exception("what has expired stays for now")
            await asyncio.sleep(_SWEEP_SECONDS)


def _delete(entry: Entry, now: float) -> Delete:
    return Delete(entry.kind, entry.key, expired_at=now)

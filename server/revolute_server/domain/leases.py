"""How long things are kept that nobody uses: sessions by their lease, trajectories by `--trajectory-ttl`.

The store has the time at which a record expires. So that not every use writes, it is set a tenth further than
promised, and moved only when less than what is promised is left.
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
_MOST_ROUNDS = 20  # of one sweep; what is left waits for the next
_TOMBSTONE_SECONDS = 24 * 3600.0
_MAX_TOMBSTONES = 10_000

_clock = ExpiryClock()


def expiry(duration: float) -> float:
    """Return the time until which to keep what is used now."""
    return time.time() + _SLACK * duration


async def renew(store: Store, entry: Entry, duration: float, *, must: bool = False) -> float | None:
    """Keep what is used now for another while.

    Args:
        store: where it is.
        entry: what is used.
        duration: seconds for which it is promised to be kept.
        must: whether a store that does not take the new time, such as a full disk, is an error; what is read
            can be read without.

    Returns:
        The new time of expiry; None if the one it has is good enough, or stays.
    """
    if entry.expires is None or entry.expires >= _clock.now() + duration:
        return None
    expires = expiry(duration)
    try:
        await store.commit(Touch(entry.kind, entry.key, expires))
    except Conflict:
        # deleted meanwhile: this use began before
        return None
    except (LimitError, UnavailableError) as error:
        if must:
            raise
        _log.warning("%s %s is not kept longer: %s", entry.kind, entry.key[:8], error)
        return None
    return expires


def seconds_left(expires: float | None) -> float:
    """Return in how many seconds a record expires, as far as the clock goes on as it does."""
    now = _clock.now()
    return max(0.0, (now if expires is None else expires) - now)


def is_over(expires: float | None) -> bool:
    """Tell whether a record has expired."""
    return expires is not None and expires <= _clock.now()


def checked_lease(lease: float | None, default: float, most: float) -> float:
    """Return the duration of a lease that a client asks for.

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


async def alive(store: Store, kind: str, identifier: str) -> Entry:
    """Look up a session or trajectory of the caller's.

    Raises:
        NotFoundError: it was deleted, has expired, was never there, or is another caller's.
    """
    entry = await store.look(kind, identifier)
    if entry is None or is_over(entry.expires) or not is_visible(entry.owner):
        raise await missing(store, kind, identifier)
    return entry


async def missing(store: Store, noun: str, identifier: str) -> NotFoundError:
    """Return the error for an id that nothing of the caller's has.

    It says so if something of the caller's had it until it expired. For an id of another caller it is the
    error for an id that nothing ever had.
    """
    entry = await store.look(noun, identifier) or await store.look(TOMBSTONE, f"{noun} {identifier}")
    ended = entry is not None and (entry.kind == TOMBSTONE or is_over(entry.expires))
    if entry is None or not ended or not is_visible(entry.owner):
        return NotFoundError.missing(noun, identifier)
    unused = float(entry.summary.get("lease", 0.0))
    reasons = {
        SESSION: f"its lease of {unused:g} s ended; any call on a session renews it, as KeepAlive does",
        TRAJECTORY: "it expired; it was not used for the server's --trajectory-ttl",
    }
    return NotFoundError.missing(noun, identifier, reasons[noun])


class Sweeper:
    """Deletes what has expired, and the oldest requests beyond the store's limits.

    Args:
        store: from where.
        forget: called with kind and id of what was deleted.
    """

    def __init__(self, store: Store, forget: Callable[[str, str], None]) -> None:
        self._store = store
        self._forget = forget
        self._task: asyncio.Task[None] | None = None

    def start(self) -> None:
        """Sweep from time to time, until `stop`."""
        self._task = asyncio.create_task(self._sweep_always(), name="sweeper")

    async def stop(self) -> None:
        """Sweep no more."""
        if self._task:
            self._task.cancel()
            with contextlib.suppress(asyncio.CancelledError):
                await self._task

    async def sweep(self) -> None:
        """Delete what has expired by now."""
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
                    await self._end(entry, now)
        await trim(self._store, REQUEST, self._store.limits.requests, self._store.limits.request_bytes)
        await trim(self._store, TOMBSTONE, _MAX_TOMBSTONES)

    async def _end(self, entry: Entry, now: float) -> None:
        """Delete a session or trajectory and leave a note that it has expired."""
        kept: Mapping[str, Any] = {"lease": entry.summary.get("lease", 0.0), "owner": entry.owner}
        note = Put(
            TOMBSTONE,
            f"{entry.kind} {entry.key}",
            (b"",),
            expires=time.time() + _TOMBSTONE_SECONDS,
            summary=kept,
        )
        # renewed or deleted meanwhile: the better
        with contextlib.suppress(Conflict):
            await self._store.commit(_delete(entry, now), note)
            self._forget(entry.kind, entry.key)

    async def _sweep_always(self) -> None:
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

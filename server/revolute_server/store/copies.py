"""Copies of a store: a backup of a store in use, its restoration, and the move to a store of another kind.

Each record is copied with its checksum verified, models before the records that refer to them. A record that
is written or deleted during the copy may be missing from the copy; all others are in it. A copied record has
its id, summary, expiry and client; its version and time of creation are new.
"""

from __future__ import annotations

import logging
from collections import Counter

from revolute.contract.errors import ArgumentError, DataLossError

from .interface import MODEL, REQUEST, SESSION, TOMBSTONE, TRAJECTORY, Conflict, Put, Store

_ORDER = (MODEL, SESSION, TRAJECTORY, REQUEST, TOMBSTONE)

_log = logging.getLogger("revolute.server")


async def copy_records(source: Store, target: Store) -> tuple[Counter[str], int]:
    """Copy all records to an empty store.

    Args:
        source: an open store; others may use it.
        target: an open store without records.

    Returns:
        The number of copied records, by kind, and the number of damaged ones, which are not copied.

    Raises:
        ArgumentError: the target has records.
        UnavailableError: one of the stores cannot be reached.
        LimitError: the target's disk is full.
    """
    for kind in _ORDER:
        if await target.scan(kind, limit=1):
            raise ArgumentError.expected("target", "an empty store", f"one with a {kind}")
    copied: Counter[str] = Counter()
    damaged = 0
    for kind in _ORDER:
        after = 0
        while entries := await source.scan(kind, after):
            for entry in entries:
                try:
                    copied[kind] += await _copy(source, target, kind, entry.key)
                except DataLossError as error:
                    _log.warning("not copied: %s", error)
                    damaged += 1
            after = entries[-1].sequence
    return copied, damaged


async def _copy(source: Store, target: Store, kind: str, key: str) -> bool:
    """Copy one record; return False if it is gone.

    Raises:
        DataLossError: it is damaged.
    """
    record = await source.get(kind, key)
    if record is None:
        return False
    put = Put(
        kind,
        key,
        record.payload,
        expires=record.expires,
        summary=record.summary,
        parent=record.parent,
        client=record.client,
        expect=0,
    )
    try:
        await target.commit(put)
    except Conflict:
        # its model was deleted before the copy came to it
        _log.warning("not copied: %s %s, whose model is gone", kind, key)
        return False
    return True

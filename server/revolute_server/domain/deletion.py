"""Deletion of records that callers own: sessions and trajectories."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Sequence

from revolute.contract.errors import NotFoundError

from ..store import Conflict, Delete, Store
from .leases import find_owned, not_found
from .request_ids import Ticket
from .shielded import shielded


async def existing_ids(store: Store, kind: str, identifiers: Sequence[str]) -> list[str]:
    """Return the ids of existing records of the caller, each once."""
    found = []
    for identifier in dict.fromkeys(identifiers):
        with contextlib.suppress(NotFoundError):
            await find_owned(store, kind, identifier)
            found.append(identifier)
    return found


async def delete_owned(
    store: Store, kind: str, identifier: str, ticket: Ticket, forget: Callable[[str], None]
) -> None:
    """Delete a record of the caller.

    Args:
        store: the store.
        kind: SESSION or TRAJECTORY.
        identifier: id of the record.
        ticket: ticket of the request.
        forget: called with the id after the store was asked, also on failure.

    Raises:
        NotFoundError: the record was deleted, has expired, never existed, or belongs to another caller.
    """
    await find_owned(store, kind, identifier)
    try:
        await shielded(store.commit(Delete(kind, identifier), *ticket.writes(None)))
    except Conflict as conflict:
        if conflict.kind != kind:
            raise
        raise await not_found(store, kind, identifier) from None
    finally:
        forget(identifier)

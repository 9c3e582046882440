"""Deleting what callers own: sessions and trajectories."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Sequence

from revolute.contract.errors import NotFoundError

from ..store import Conflict, Delete, Store
from .leases import alive, missing
from .request_ids import Ticket
from .shielded import shielded


async def owned(store: Store, kind: str, identifiers: Sequence[str]) -> list[str]:
    """Return those of some ids that are there and the caller's own, each once."""
    found = []
    for identifier in dict.fromkeys(identifiers):
        with contextlib.suppress(NotFoundError):
            await alive(store, kind, identifier)
            found.append(identifier)
    return found


async def delete_owned(
    store: Store, kind: str, identifier: str, ticket: Ticket, forget: Callable[[str], None]
) -> None:
    """Delete a record of the caller's.

    Args:
        store: from where.
        kind: SESSION or TRAJECTORY.
        identifier: its id.
        ticket: of the request.
        forget: called with the id when the store has been asked, whatever it said.

    Raises:
        NotFoundError: it was deleted before, has expired, was never there, or is another caller's.
    """
    await alive(store, kind, identifier)
    try:
        await shielded(store.commit(Delete(kind, identifier), *ticket.writes(None)))
    except Conflict as conflict:
        if conflict.kind != kind:
            raise
        raise await missing(store, kind, identifier) from None
    finally:
        forget(identifier)

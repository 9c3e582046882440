"""Paged lists: the token of a page is the sequence number of its last entry."""

from __future__ import annotations

import dataclasses
import json
from typing import Generic, TypeVar

from revolute.contract.errors import ArgumentError

from ..access.caller import is_visible
from ..store import MODEL, Entry, Store
from .leases import has_expired

Item = TypeVar("Item")

MOST = 1000
"""Largest number of entries of a page."""

MOST_BYTES = 1024**2
"""Largest size of a page in bytes; a gRPC message takes 4 MiB."""


@dataclasses.dataclass(frozen=True)
class Page(Generic[Item]):
    """One page of a list.

    Attributes:
        entries: its entries, oldest first.
        next_token: token of the next page; empty on the last page.
    """

    entries: list[Item]
    next_token: str


async def page(store: Store, kind: str, size: int, token: str) -> Page[Entry]:
    """Return a page of the records of a kind that the caller may see: all models, or its own sessions.

    Args:
        store: the store.
        kind: kind of the records.
        size: largest number of entries, 1 to MOST; the page also ends at MOST_BYTES.
        token: `next_token` of the previous page; empty for the first page.

    Raises:
        ArgumentError: the size is out of range, or the token is malformed.
    """
    if not 1 <= size <= MOST:
        raise ArgumentError.expected("page_size", f"1 to {MOST}", size)
    if token and not (token.isascii() and token.isdigit() and len(token) < 19):
        raise ArgumentError.expected("page_token", "a next_page_token, or nothing", repr(token[:40]))
    entries: list[Entry] = []
    after, used, most = int(token or 0), 0, size + 1
    while found := await store.scan(kind, after, most):
        for entry in found:
            if has_expired(entry.expires) or not (kind == MODEL or is_visible(entry.owner)):
                after = entry.sequence
                continue
            used += entry_bytes(entry)
            if len(entries) == size or (entries and used > MOST_BYTES):
                return Page(entries, str(after))
            entries.append(entry)
            after = entry.sequence
        if len(found) < most:
            break
        # most of these entries belong to other callers: read larger batches
        most = MOST
    return Page(entries, "")


def entry_bytes(entry: Entry) -> int:
    """Return the approximate size in bytes of an entry in a list."""
    return len(entry.key) + len(json.dumps(dict(entry.summary)))

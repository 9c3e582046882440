"""Lists page by page: a page's token is the place in the order of creation where it ended."""

from __future__ import annotations

import dataclasses
import json
from typing import Generic, TypeVar

from revolute.contract.errors import ArgumentError

from ..access.caller import is_visible
from ..store import MODEL, Entry, Store
from .leases import is_over

Item = TypeVar("Item")

MOST = 1000
"""Entries of a page."""

MOST_BYTES = 1024**2
"""Bytes of what a page says of its entries; a gRPC message takes 4 MiB."""


@dataclasses.dataclass(frozen=True)
class Page(Generic[Item]):
    """A part of a list.

    Attributes:
        entries: what it has, oldest first.
        next_token: where the next page begins; empty on the last one.
    """

    entries: list[Item]
    next_token: str


async def page(store: Store, kind: str, size: int, token: str) -> Page[Entry]:
    """Read a page of those records of a kind that the caller may see: all models, and sessions of its own.

    Args:
        store: from where.
        kind: of what.
        size: entries of the page, 1 to MOST; it has fewer where they have more than MOST_BYTES.
        token: `next_token` of the page before; empty for the first.

    Raises:
        ArgumentError: the size is out of range, or the token is none.
    """
    if not 1 <= size <= MOST:
        raise ArgumentError.expected("page_size", f"1 to {MOST}", size)
    if token and not (token.isascii() and token.isdigit() and len(token) < 19):
        raise ArgumentError.expected("page_token", "a next_page_token, or nothing", repr(token[:40]))
    entries: list[Entry] = []
    after, used, most = int(token or 0), 0, size + 1
    while found := await store.scan(kind, after, most):
        for entry in found:
            if is_over(entry.expires) or not (kind == MODEL or is_visible(entry.owner)):
                after = entry.sequence
                continue
            used += entry_bytes(entry)
            if len(entries) == size or (entries and used > MOST_BYTES):
                return Page(entries, str(after))
            entries.append(entry)
            after = entry.sequence
        if len(found) < most:
            break
        # most of them are other callers'
        most = MOST
    return Page(entries, "")


def entry_bytes(entry: Entry) -> int:
    """Return the bytes of what a list says of an entry, about."""
    return len(entry.key) + len(json.dumps(dict(entry.summary)))

"""Lists page by page: a page's token is the place in the order of creation where it ended."""

from __future__ import annotations

import dataclasses

from revolute.errors import ArgumentError

from .leases import is_over
from .store import Entry, Store

MOST = 1000
"""Entries of a page."""


@dataclasses.dataclass(frozen=True)
class Page:
    """A part of a list.

    Attributes:
        entries: what it has, oldest first.
        next_token: where the next page begins; empty on the last one.
    """

    entries: list[Entry]
    next_token: str


async def page(store: Store, kind: str, size: int, token: str) -> Page:
    """Read a page of the records of a kind.

    Args:
        store: from where.
        kind: of what.
        size: entries of the page, 1 to MOST.
        token: `next_token` of the page before; empty for the first.

    Raises:
        ArgumentError: the size is out of range, or the token is none.
    """
    if not 1 <= size <= MOST:
        raise ArgumentError.expected("page_size", f"1 to {MOST}", size)
    if token and not (token.isascii() and token.isdigit() and len(token) < 19):
        raise ArgumentError.expected("page_token", "a next_page_token, or nothing", repr(token[:40]))
    found = await store.scan(kind, int(token or 0), size + 1)
    rest = str(found[size - 1].sequence) if len(found) > size else ""
    return Page([entry for entry in found[:size] if not is_over(entry.expires)], rest)

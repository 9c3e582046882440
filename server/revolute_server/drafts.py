"""Answers that are sent while they are made.

What is known of an answer may travel while the rest is computed, and while what it acknowledges becomes
durable. It acknowledges nothing before it is whole, and whoever sends it holds its last bytes back until
the verb is through: a caller has an answer or an error, as without.
"""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from typing import Any

Document = dict[str, Any]


class Draft:
    """An answer under way. Everything here runs on the event loop.

    Args:
        gradual: whether arrays that are not complete are of use.

    Attributes:
        gradual: the same.
        document: the answer as far as it is known; None before anything is. Its arrays have their memory and
            shape, of those in `known` only the first bytes are there yet.
        known: bytes that are there by field path, of arrays that are not complete.
    """

    def __init__(self, *, gradual: bool = True) -> None:
        self.gradual = gradual
        self.document: Document | None = None
        self.known: Mapping[str, int] = {}
        self._changed = asyncio.Event()
        self._watched = False

    def update(self, document: Document, known: Mapping[str, int] | None = None) -> None:
        """Say what is known; the arrays' shapes and what was known before stay."""
        self.document, self.known = document, known or {}
        self._changed.set()

    async def changed(self, work: asyncio.Future[Any]) -> None:
        """Wait until more is known, or until the verb is through."""
        if not self._watched:
            self._watched = True
            work.add_done_callback(lambda _work: self._changed.set())
        await self._changed.wait()
        self._changed.clear()

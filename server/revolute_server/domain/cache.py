"""What the store keeps and this process holds as well, so that it need not be read again.

Entries are let go, the longest unused first, when the memory is needed for something else; those in use are
not. Everything here runs on the event loop, so no lock is needed.
"""

from __future__ import annotations

import contextlib
from collections import OrderedDict
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Generic, TypeVar

from ..compute.memory_budget import MemoryBudget, Reservation

Entry = TypeVar("Entry")


@dataclass
class _Held(Generic[Entry]):
    """An entry, its bytes, and how many use it."""

    entry: Entry
    reservation: Reservation
    users: int = 0


class Cache(Generic[Entry]):
    """Entries by id, in the order of their last use.

    Args:
        budget: may ask for the bytes of entries that nobody uses.
    """

    def __init__(self, budget: MemoryBudget) -> None:
        self._held: OrderedDict[str, _Held[Entry]] = OrderedDict()
        budget.reclaim_from(self.let_go)

    def get(self, key: str) -> Entry | None:
        """Return an entry; None if it is not here."""
        held = self._held.get(key)
        if held is None:
            return None
        self._held.move_to_end(key)
        return held.entry

    def add(self, key: str, entry: Entry, reservation: Reservation) -> Entry:
        """Put an entry in, with the bytes reserved for it; one that is there already wins and is returned."""
        if (there := self.get(key)) is not None:
            return there
        self._held[key] = _Held(entry, reservation.shared().keep())
        return entry

    def drop(self, key: str) -> None:
        """Take an entry out, if it is here."""
        if held := self._held.pop(key, None):
            held.reservation.release()

    @contextlib.contextmanager
    def using(self, key: str) -> Iterator[None]:
        """Hold an entry for the length of a block, if it is here."""
        held = self._held.get(key)
        if held is not None:
            held.users += 1
        try:
            yield
        finally:
            if held is not None:
                held.users -= 1

    def let_go(self, count: int) -> None:
        """Free at least `count` bytes, as far as entries that nobody uses have them."""
        idle = [key for key, held in self._held.items() if not held.users]
        for key in idle:
            if count <= 0:
                return
            count -= self._held[key].reservation.count
            self.drop(key)

    def __len__(self) -> int:
        return len(self._held)

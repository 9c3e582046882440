"""A cache of records of the store, least recently used first out.

Entries are evicted when their memory is needed for something else, unless they are in use. Everything here
runs on the event loop, so no lock is needed.
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
class _Slot(Generic[Entry]):
    """An entry, the reservation of its bytes, and the number of calls that use it."""

    entry: Entry
    reservation: Reservation
    users: int = 0


class Cache(Generic[Entry]):
    """Entries by id, in the order of their last use.

    Args:
        budget: evicts unused entries when it needs their bytes.
    """

    def __init__(self, budget: MemoryBudget) -> None:
        self._slots: OrderedDict[str, _Slot[Entry]] = OrderedDict()
        budget.reclaim_from(self.evict)

    def get(self, key: str) -> Entry | None:
        """Return an entry; None if it is not cached."""
        slot = self._slots.get(key)
        if slot is None:
            return None
        self._slots.move_to_end(key)
        return slot.entry

    def add(self, key: str, entry: Entry, reservation: Reservation) -> Entry:
        """Add an entry with the bytes reserved for it, and return it; return the old one if there is one."""
        if (there := self.get(key)) is not None:
            return there
        self._slots[key] = _Slot(entry, reservation.shared().keep())
        return entry

    def drop(self, key: str) -> None:
        """Remove an entry if it is cached."""
        if slot := self._slots.pop(key, None):
            slot.reservation.release()

    @contextlib.contextmanager
    def using(self, key: str) -> Iterator[None]:
        """Protect an entry from eviction for the length of a block."""
        slot = self._slots.get(key)
        if slot is not None:
            slot.users += 1
        try:
            yield
        finally:
            if slot is not None:
                slot.users -= 1

    @contextlib.contextmanager
    def replacing(self, key: str, count: int) -> Iterator[None]:
        """Count an entry as `count` bytes from now on; as before if the block fails.

        Raises:
            LimitError: there is no room for it.
        """
        slot = self._slots.get(key)
        if slot is None:
            yield
            return
        more = count - slot.reservation.count
        slot.reservation.grow(max(0, more))
        try:
            yield
        except BaseException:
            more = -more
            raise
        finally:
            # a slot that was dropped in the meantime is released already
            if self._slots.get(key) is slot:
                slot.reservation.give_back(max(0, -more))

    def evict(self, count: int) -> None:
        """Free at least `count` bytes, or as many as unused entries have."""
        idle = [key for key, slot in self._slots.items() if not slot.users]
        for key in idle:
            if count <= 0:
                return
            count -= self._slots[key].reservation.count
            self.drop(key)

    def __len__(self) -> int:
        return len(self._slots)

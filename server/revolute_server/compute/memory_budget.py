"""Counts the bytes of models, sessions, trajectories and arrays of running calls, against one limit.

Bytes are reserved before the arrays exist, so that a request that does not fit is refused and does not kill
the process. Everything here runs on the event loop, so no lock is needed.
"""

from __future__ import annotations

from collections.abc import Callable
from types import TracebackType

from revolute.contract.errors import LimitError

from ..access.call import current_client
from ..settings import format_bytes
from .quotas import Quotas
from .resident_memory import FreedMemory

_LARGE = 1024**2
"""Reservations of at least this many bytes first return freed memory to the system, if it is needed."""


class MemoryBudget:
    """The bytes in use and the limit on them.

    Args:
        limit: largest number of bytes of all clients together.
        quotas: bounds the bytes of each client; None for no bound.
    """

    def __init__(self, limit: int, quotas: Quotas | None = None) -> None:
        self.limit = limit
        self.quotas = quotas or Quotas()
        self.used = 0
        self._freed = FreedMemory(limit)
        self._caches: list[Callable[[int], None]] = []

    def reclaim_from(self, evict: Callable[[int], None]) -> None:
        """Register a cache; `evict` frees up to the given number of bytes when they are needed."""
        self._caches.append(evict)

    def make_room(self, count: int) -> None:
        """Evict cached entries until `count` more bytes fit, if possible."""
        if count >= _LARGE:
            self._freed.make_room(count)
        for evict in self._caches:
            if self.used + count > self.limit:
                evict(self.used + count - self.limit)

    def reserve(self, what: str, count: int | Callable[[], int] = 0) -> Reservation:
        """Reserve bytes.

        Args:
            what: names their use in errors.
            count: number of bytes, or a function that returns it. A budget without a limit does not call it.

        Raises:
            LimitError: the bytes in use would exceed the limit, or the client's own would exceed its quota.
        """
        reservation = Reservation(self, what)
        reservation.grow(count() if callable(count) else count)
        return reservation


class Reservation:
    """Reserved bytes; freed by `release`, or at the end of a `with` block unless `keep` was called."""

    def __init__(self, budget: MemoryBudget, what: str) -> None:
        self._budget = budget
        self._what = what
        self._kept = False
        self.client: str | None = current_client()
        self.count = 0

    def grow(self, count: int) -> None:
        """Reserve further bytes.

        Raises:
            LimitError: the bytes in use would exceed the limit, or the client's own would exceed its quota.
        """
        # most calls reserve nothing at first
        if not count:
            return
        self._make_room(count)
        self._budget.quotas.add_memory(self.client, count, self._what)
        self._budget.used += count
        self.count += count

    def check(self, count: int) -> None:
        """Raise the error of `grow` if this many further bytes do not fit now."""
        if count > 0:
            self.grow(count)
            self.grow(-count)

    def _make_room(self, count: int) -> None:
        budget = self._budget
        if count > 0:
            budget.make_room(count)
        if budget.used + count > budget.limit:
            raise LimitError(
                f"memory: expected at most {format_bytes(budget.limit)} in use, "
                f"got {format_bytes(budget.used)} and {format_bytes(count)} more for {self._what}; "
                "delete trajectories or sessions, or start the server with a larger --memory",
                argument="memory",
            )

    def give_back(self, count: int) -> None:
        """Free some of the reserved bytes."""
        if not count:
            return
        self._budget.used -= count
        self._budget.quotas.remove_memory(self.client, count)
        self.count -= count

    def beside(self, what: str) -> Reservation:
        """Return another reservation, for temporary memory that is charged to no client."""
        return Reservation(self._budget, what).shared()

    def shared(self) -> Reservation:
        """Charge no client for the bytes, now and later: all clients share them."""
        self._budget.quotas.remove_memory(self.client, self.count)
        self.client = None
        return self

    def keep(self) -> Reservation:
        """Keep the bytes reserved after the `with` block, until `release`."""
        self._kept = True
        return self

    def release(self) -> None:
        """Free all reserved bytes; a second call does nothing."""
        self.give_back(self.count)

    def __enter__(self) -> Reservation:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if not self._kept:
            self.release()

"""What one client may use of the server, so that one that asks for everything leaves room for others.

A client is the holder of a token; on a server without tokens, everybody on the same host. Nothing that a
caller may choose counts. What it keeps is counted by the store, see `store.Limits`.
Everything here runs on the event loop, so no lock is needed.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from revolute.contract.errors import LimitError

from ..access.call import current_client
from ..settings import format_bytes


class Quotas:
    """Counts what each client uses.

    Args:
        calls: engine calls of one client under way; None for no bound.
        memory: bytes of one client; None for no bound.
    """

    def __init__(self, calls: int | None = None, memory: int | None = None) -> None:
        self.calls = calls
        self.memory = memory
        self._calls: Counter[str] = Counter()
        self._memory: Counter[str] = Counter()

    @contextmanager
    def call(self, retry_after: Callable[[], float]) -> Iterator[None]:
        """Count an engine call of the current client while the block runs.

        Args:
            retry_after: gives the seconds after which a refused call may come again.

        Raises:
            LimitError: the client has too many under way.
        """
        client = current_client()
        if self.calls is not None and self._calls[client] >= self.calls:
            raise LimitError(
                f"calls: expected at most {self.calls} calls of one client under way, got one more; "
                "wait for an answer first, or start the server with a larger --max-client-calls",
                argument="calls",
                retry_after=retry_after(),
            )
        self._calls[client] += 1
        try:
            yield
        finally:
            _take(self._calls, client, 1)

    def add_memory(self, client: str | None, count: int, what: str) -> None:
        """Count bytes of a client; None for those of nobody in particular.

        Raises:
            LimitError: it has too many.
        """
        if client is None:
            return
        used = self._memory[client]
        if self.memory is not None and used + count > self.memory:
            raise LimitError(
                f"memory: expected at most {format_bytes(self.memory)} of one client, "
                f"got {format_bytes(used)} and {format_bytes(count)} more for {what}; "
                "delete trajectories or sessions, or start the server with a larger --max-client-memory",
                argument="memory",
            )
        self._memory[client] += count

    def remove_memory(self, client: str | None, count: int) -> None:
        """Count bytes of a client no more."""
        if client is not None:
            _take(self._memory, client, count)


def _take(counter: Counter[str], client: str, count: int) -> None:
    """Subtract, and forget clients that use nothing."""
    counter[client] -= count
    if counter[client] <= 0:
        del counter[client]

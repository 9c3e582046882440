"""Limits on the calls and the memory of one client, so that no client can take the whole server.

A client is the holder of a token; on a server without tokens, all callers on one host are one client. Callers
cannot choose their identity. The store counts the records of a client, see `store.Limits`. Everything here
runs on the event loop, so no lock is needed.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from revolute.contract.errors import LimitError

from ..access.call import current_client
from ..access.rates import Rates
from ..settings import format_bytes


class Quotas:
    """Counts the engine calls and the bytes of each client.

    Args:
        calls: most engine calls of one client at a time; None for no bound.
        memory: most bytes of one client; None for no bound.
        rates: is told the steps of each client; None for no bound.
    """

    def __init__(
        self, calls: int | None = None, memory: int | None = None, rates: Rates | None = None
    ) -> None:
        self._rates = rates or Rates()
        self.calls = calls
        self.memory = memory
        self._calls: Counter[str] = Counter()
        self._memory: Counter[str] = Counter()

    @contextmanager
    def call(self, retry_after: Callable[[], float], steps: int = 0) -> Iterator[None]:
        """Count an engine call of the current client while the block runs.

        Args:
            retry_after: returns the seconds after which a refused call may be retried.
            steps: steps that it takes, which count for the client's rate.

        Raises:
            LimitError: the client has too many calls in flight.
        """
        client = current_client()
        if self.calls is not None and self._calls[client] >= self.calls:
            raise LimitError(
                f"calls: expected at most {self.calls} calls of one client under way, got one more; "
                "wait for an answer first, or start the server with a larger --max-client-calls",
                argument="calls",
                retry_after=retry_after(),
            )
        self._rates.use_steps(steps)
        self._calls[client] += 1
        try:
            yield
        finally:
            _subtract(self._calls, client, 1)

    def add_memory(self, client: str | None, count: int, what: str) -> None:
        """Count bytes of a client; None for shared bytes, which are not counted.

        Raises:
            LimitError: the client would exceed its quota.
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
        """Stop counting bytes of a client."""
        if client is not None:
            _subtract(self._memory, client, count)


def _subtract(counter: Counter[str], client: str, count: int) -> None:
    """Subtract, and drop clients at zero."""
    counter[client] -= count
    if counter[client] <= 0:
        del counter[client]

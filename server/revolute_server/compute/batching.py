"""Which calls of different clients may be computed as one batch, and how long a call waits for others.

The engine computes environments in packs, and one environment costs nearly as much as a full pack. Calls with
the same key are gathered while they wait for a worker. If a worker is free and several clients have called
recently, a call waits a moment for the others. A call of a single client never waits.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable, Hashable, Sequence
from dataclasses import dataclass
from typing import Any

from revolute.contract.errors import RevoluteError
from revolute_engine import CancelToken

_SHARE = 0.5
"""A call waits for others at most this share of the time that the last such batch took."""

_REMEMBERED = 256
"""Number of keys whose concurrency is remembered."""


@dataclass(frozen=True)
class Work:
    """A call of the engine.

    Attributes:
        run: takes the items of all gathered calls; returns a result or an error for each.
        item: the arguments of this call.
        key: calls with the same key may be gathered; None for a call that is computed alone.
        size: number of environments; 0 if the call has none.
        steps: approximate number of steps, summed over environments; 0 for few.
    """

    run: Callable[[Sequence[Any], CancelToken], Sequence[Any | RevoluteError]]
    item: Any
    key: Hashable = None
    size: int = 1
    steps: int = 0


def alone(call: Callable[[CancelToken], Any], steps: int = 0) -> Work:
    """Return a call that is not gathered with others."""
    return Work(lambda items, token: [items[0](token)], call, size=0, steps=steps)


@dataclass
class _Concurrency:
    """How many calls with one key are in flight at once.

    Attributes:
        in_flight: calls that wait or run now.
        peak: largest recent value of `in_flight`; as many calls are expected again.
        peak_at_last_batch: value of `peak` when the last batch finished.
        seconds: compute time of the last batch.
    """

    in_flight: int = 0
    peak: int = 0
    peak_at_last_batch: int = 0
    seconds: float = 0.0


class BatchDelay:
    """Decides how long a call waits for others to join its batch.

    Clients whose calls were computed together call again one after the other. A batch that starts with the
    first of them would leave most of a pack empty. So a call waits until as many calls are in flight as
    recently, until they fill the packs, or until half of the compute time has passed.

    Args:
        longest: longest wait of a call in s.
    """

    def __init__(self, longest: float) -> None:
        self._longest = longest
        self._by_key: OrderedDict[Hashable, _Concurrency] = OrderedDict()

    def arrive(self, key: Hashable) -> float:
        """Count a new call, and return the longest time in s that it may wait."""
        if key is None:
            return 0.0
        known = self._by_key.setdefault(key, _Concurrency())
        self._by_key.move_to_end(key)
        self._forget_unused()
        known.in_flight += 1
        known.peak = max(known.peak, known.in_flight)
        # a single client does not wait
        if known.in_flight == known.peak == 1:
            return 0.0
        return min(self._longest, _SHARE * known.seconds)

    def is_complete(self, key: Hashable) -> bool:
        """Tell whether no further call is expected soon: as many are in flight as at the last batch."""
        known = self._by_key.get(key)
        return known is None or known.in_flight == known.peak_at_last_batch

    def expire(self, key: Hashable) -> None:
        """Lower the expected concurrency to the current one, because the wait is over."""
        if (known := self._by_key.get(key)) is not None:
            known.peak = known.peak_at_last_batch = known.in_flight

    def leave(self, key: Hashable, seconds: float | None = None) -> None:
        """Stop counting a call that has ended or was abandoned.

        Args:
            key: its key.
            seconds: compute time of its batch; None if it was not computed.
        """
        known = self._by_key.get(key)
        if known is None:
            return
        known.in_flight -= 1
        if seconds is not None:
            known.seconds = seconds
            known.peak_at_last_batch = known.peak

    def _forget_unused(self) -> None:
        """Forget the key that was unused for longest, if there are too many."""
        if len(self._by_key) <= _REMEMBERED:
            return
        for key, known in self._by_key.items():
            if not known.in_flight:
                del self._by_key[key]
                return

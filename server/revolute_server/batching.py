"""Which calls of different clients may become one call of the engine, and how long they wait for each other.

The engine computes environments in packs, and one alone costs nearly as much as a whole pack. Calls with the
same key are gathered while they wait for a worker; when a worker is free but others of the same key are under
way, a call waits a moment for those that are about to come. Alone it never waits.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable, Hashable, Sequence
from dataclasses import dataclass
from typing import Any

from revolute.errors import RevoluteError
from revolute_engine import CancelToken

_SHARE = 0.25
"""Of the time that such a call took last, at most this is spent on waiting for others."""

_REMEMBERED = 256
"""Kinds of calls whose time is remembered."""


@dataclass(frozen=True)
class Work:
    """A call of the engine.

    Attributes:
        run: takes the items of all calls that were gathered; returns a result or an error for each.
        item: what this call adds.
        key: calls with the same key may be gathered; None for a call that stays alone.
        size: environments; 0 where that means nothing.
    """

    run: Callable[[Sequence[Any], CancelToken], Sequence[Any | RevoluteError]]
    item: Any
    key: Hashable = None
    size: int = 1


def alone(call: Callable[[CancelToken], Any]) -> Work:
    """Return a call that is not gathered with others."""
    return Work(lambda items, token: [items[0](token)], call, size=0)


class Waiting:
    """Decides how long a call waits for others.

    Args:
        longest: seconds that a call waits at most.
    """

    def __init__(self, longest: float) -> None:
        self._longest = longest
        self._seconds: OrderedDict[Hashable, float] = OrderedDict()

    def seconds(self, key: Hashable, *, company: bool) -> float:
        """Return how long a new call may wait.

        Args:
            key: its key.
            company: whether others with this key wait or run, so that more may be about to come.
        """
        if key is None or not company:
            return 0.0
        return min(self._longest, _SHARE * self._seconds.get(key, 0.0))

    def note(self, key: Hashable, seconds: float) -> None:
        """Remember how long the engine took."""
        if key is None:
            return
        self._seconds[key] = seconds
        self._seconds.move_to_end(key)
        if len(self._seconds) > _REMEMBERED:
            self._seconds.popitem(last=False)

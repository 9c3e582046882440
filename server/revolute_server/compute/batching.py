"""Which calls of different clients may become one call of the engine, and how long they wait for each other.

The engine computes environments in packs, and one alone costs nearly as much as a whole pack. Calls with the
same key are gathered while they wait for a worker; when a worker is free but others were there of late, a
call waits a moment for those that are about to come. Alone it never waits.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable, Hashable, Sequence
from dataclasses import dataclass
from typing import Any

from revolute.contract.errors import RevoluteError
from revolute_engine import CancelToken

_SHARE = 0.5
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
        steps: steps of single environments, about; 0 for few.
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
class _Crowd:
    """What is known of calls with one key.

    Attributes:
        under_way: calls that wait or run.
        most: the largest number that was under way at once of late; so many are likely to come again.
        usual: the same, as far as calls have come through since: new ones beyond it may have company.
        seconds: how long the engine took last.
    """

    under_way: int = 0
    most: int = 0
    usual: int = 0
    seconds: float = 0.0


class Waiting:
    """Decides how long a call waits for others.

    Clients that call again and again come back one by one when their calls were computed together. Whoever
    went on with the first of them would leave most of a pack empty; so a call waits until as many are under
    way as of late, until they fill packs, or until waiting has cost half of what computing does.

    Args:
        longest: seconds that a call waits at most.
    """

    def __init__(self, longest: float) -> None:
        self._longest = longest
        self._crowds: OrderedDict[Hashable, _Crowd] = OrderedDict()

    def come(self, key: Hashable) -> float:
        """Count a new call, and return how long it may wait."""
        if key is None:
            return 0.0
        crowd = self._crowds.setdefault(key, _Crowd())
        self._crowds.move_to_end(key)
        self._forget()
        crowd.under_way += 1
        crowd.most = max(crowd.most, crowd.under_way)
        # one that was alone of late and is alone again waits for nobody
        if crowd.under_way == crowd.most == 1:
            return 0.0
        return min(self._longest, _SHARE * crowd.seconds)

    def complete(self, key: Hashable) -> bool:
        """Tell whether nobody else is likely to come soon: as many are under way as of late."""
        crowd = self._crowds.get(key)
        return crowd is None or crowd.under_way == crowd.usual

    def given_up(self, key: Hashable) -> None:
        """Note that calls have waited long enough: who has not come by now is not expected the next time."""
        if (crowd := self._crowds.get(key)) is not None:
            crowd.most = crowd.usual = crowd.under_way

    def gone(self, key: Hashable, seconds: float | None = None) -> None:
        """Count a call out that has ended or was given up.

        Args:
            key: its key.
            seconds: how long the engine took, if it was computed.
        """
        crowd = self._crowds.get(key)
        if crowd is None:
            return
        crowd.under_way -= 1
        if seconds is not None:
            crowd.seconds = seconds
            crowd.usual = crowd.most

    def _forget(self) -> None:
        """Let go of kinds of calls that nobody has used for long."""
        if len(self._crowds) <= _REMEMBERED:
            return
        for key, crowd in self._crowds.items():
            if not crowd.under_way:
                del self._crowds[key]
                return

"""Objects that belong to one process: to pickle or copy them is an error that says what to do instead.

Workers (multiprocessing, Ray, joblib) pickle what they are given, what their functions close over, and what
they return. Connections, engines and what they keep do not travel; arrays, `ModelHandle`, `Gradient`, `State`
and errors do.
"""

from __future__ import annotations

from typing import ClassVar, NoReturn, SupportsIndex


class Unpicklable:
    """Base of a class whose objects cannot be pickled or copied."""

    _instead: ClassVar[str]
    """What to do instead, for the error text."""

    def __reduce_ex__(self, protocol: SupportsIndex) -> NoReturn:
        # a TypeError, as Python's own for what cannot be pickled, so that other libraries recognise it
        raise TypeError(f"cannot pickle or copy {self!r}: it belongs to this process; {self._instead}")

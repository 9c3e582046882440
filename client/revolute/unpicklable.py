"""Base class of objects that belong to one process: pickling or copying one raises an error with advice.

Workers (multiprocessing, Ray, joblib) pickle arguments, closures and results. Connections, engines, sessions
and trajectories cannot be pickled; arrays, `ModelHandle`, `Gradient`, `State` and errors can.
"""

from __future__ import annotations

from typing import ClassVar, NoReturn, SupportsIndex


class Unpicklable:
    """Base of a class whose objects cannot be pickled or copied."""

    _pickle_advice: ClassVar[str]
    """Advice for the error text."""

    def __reduce_ex__(self, protocol: SupportsIndex) -> NoReturn:
        # Python's pickle raises TypeError too; other libraries catch it
        raise TypeError(f"cannot pickle or copy {self!r}: it belongs to this process; {self._pickle_advice}")

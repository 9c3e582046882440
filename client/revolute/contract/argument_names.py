"""Arguments by a name that a function does not have are errors of ours, which name the one that was meant."""

from __future__ import annotations

import difflib
import functools
import inspect
from collections.abc import Callable
from typing import ParamSpec, TypeVar

from .errors import ArgumentError

_P = ParamSpec("_P")
_R = TypeVar("_R")

_LIKENESS = 0.6
"""From 0 to 1; names less alike are not suggested."""


def known_arguments(function: Callable[_P, _R]) -> Callable[_P, _R]:
    """Let a function refuse an unknown keyword by an ArgumentError instead of a bare TypeError."""
    names = [
        name
        for name, parameter in inspect.signature(function).parameters.items()
        if parameter.kind is not parameter.POSITIONAL_ONLY and name != "self"
    ]

    @functools.wraps(function)
    def checked(*args: _P.args, **kwargs: _P.kwargs) -> _R:
        for name in kwargs:
            if name not in names:
                meant = difflib.get_close_matches(name, names, 1, _LIKENESS)
                advice = f"did you mean {meant[0]}?" if meant else f"it has {', '.join(names)}"
                what = f"the name of an argument of {function.__name__}"
                raise ArgumentError.expected(name, what, repr(name), advice=advice)
        return function(*args, **kwargs)

    return checked

"""Unknown keyword arguments raise an ArgumentError that suggests the right name."""

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
"""Smallest similarity (difflib ratio, 0 to 1) of a suggested name."""


def reject_unknown_arguments(function: Callable[_P, _R]) -> Callable[_P, _R]:
    """Make a function raise an ArgumentError, not a TypeError, for an unknown keyword argument."""
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

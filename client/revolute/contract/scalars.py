"""Checks of single numbers."""

from __future__ import annotations

import math
import numbers
from typing import Any

from .errors import ArgumentError

_MOST = 2**62


def positive_number(
    name: str, value: Any, expected: str = "a positive number", below: float = math.inf
) -> float:
    """Return `value` as a float above 0 and below a bound.

    Args:
        name: the argument's name, for the error text.
        value: the number.
        expected: what the error text says is expected.
        below: the bound.

    Raises:
        ArgumentError: `value` is not a number, or is outside this range.
    """
    if isinstance(value, numbers.Real) and not isinstance(value, bool) and 0 < float(value) < below:
        return float(value)
    raise ArgumentError.expected(name, expected, repr(value)[:60])


def whole_number(name: str, value: Any, *, least: int, most: int = _MOST) -> int:
    """Return `value` as an int from `least` to `most`.

    Raises:
        ArgumentError: `value` is not a whole number, or is outside this range.
    """
    # the test of the type alone saves time for the usual case
    if type(value) is int and least <= value <= most:
        return value
    if isinstance(value, numbers.Integral) and not isinstance(value, bool) and least <= int(value) <= most:
        return int(value)
    above = isinstance(value, numbers.Integral) and int(value) > most
    bound = f"at most {most}" if above else f"at least {least}"
    raise ArgumentError.expected(name, f"a whole number of {bound}", repr(value))

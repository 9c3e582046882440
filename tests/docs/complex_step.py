"""Exact derivatives of small numpy functions by complex steps, the judge of every formula on the pages, and
the cross product as a matrix, which several of them have.

f(x + i eps) = f(x) + i eps f'(x) + O(eps^2): no difference is taken, so eps can be 1e-30 and the derivative
has all its digits. Functions must be analytic: no conjugation, and comparisons by the real part only.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

Array = npt.NDArray[Any]
EPSILON = 1e-30
ROUNDING = 1e-11  # relative; formulas are sums of a few dozen products of numbers of order one
PLAINLY_WRONG = 1e-2  # relative; a misprint changes the result in its leading digits


def gradient(scalar: Callable[..., Any], inputs: Sequence[Array]) -> list[Array]:
    """Return d scalar / d input for every input, entry by entry.

    Args:
        scalar: analytic function of the inputs, with one number as its value.
        inputs: where to differentiate.
    """
    result = []
    for which, value in enumerate(inputs):
        bar = np.zeros(np.shape(value))
        for entry in np.ndindex(bar.shape):
            moved = [np.array(x, dtype=complex) for x in inputs]
            moved[which][entry] += 1j * EPSILON
            bar[entry] = np.imag(scalar(*moved)) / EPSILON
        result.append(bar)
    return result


def pulled_back(forward: Callable[..., Any], inputs: Sequence[Array], bars: Sequence[Array]) -> list[Array]:
    """Return the cotangents of the inputs for cotangents `bars` of the outputs."""

    def scalar(*moved: Array) -> Any:
        outputs = forward(*moved)
        outputs = outputs if isinstance(outputs, tuple) else (outputs,)
        return sum(np.sum(bar * output) for bar, output in zip(bars, outputs, strict=True))

    return gradient(scalar, inputs)


def distance(got: Any, expected: Any) -> float:
    """Return the largest difference, relative to the largest expected entry."""
    scale = np.max(np.abs(expected))
    return float(np.max(np.abs(np.asarray(got) - expected)) / scale)


def assert_right(got: Sequence[Any], expected: Sequence[Any]) -> None:
    """Check every cotangent against its exact value."""
    for position, (ours, exact) in enumerate(zip(got, expected, strict=True)):
        assert distance(ours, exact) < ROUNDING, f"cotangent {position}"


def assert_wrong(printed: Any, expected: Any) -> None:
    """Check that a printed formula is not a rounding of the right one."""
    assert not distance(printed, expected) < PLAINLY_WRONG


def skew(v: Array) -> Array:
    """Return v_x, with v_x a = v x a."""
    o = 0 * v[0]
    return np.array([[o, -v[2], v[1]], [v[2], o, -v[0]], [-v[1], v[0], o]])


def skew_adjoint(m: Array) -> Array:
    """Return vee*(M): the adjoint of v -> v_x."""
    return np.array([m[2, 1] - m[1, 2], m[0, 2] - m[2, 0], m[1, 0] - m[0, 1]])

"""The types of array that the compiled engine reads."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

Arrays = dict[str, Any]
"""Arrays and numbers of a model, by the compiled engine's names."""


def real(values: npt.ArrayLike) -> npt.NDArray[np.float64]:
    """Return a copy as float64 in C order."""
    return np.array(values, dtype=np.float64, order="C")


def integer(values: npt.ArrayLike) -> npt.NDArray[np.int32]:
    """Return a copy as int32 in C order."""
    return np.array(values, dtype=np.int32, order="C")

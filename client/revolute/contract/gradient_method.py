"""How the backward pass differentiates a motion: exactly, or with contact seen from a distance."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any, Literal

from .errors import ArgumentError

OnDiverged = Literal["raise", "inf"]
"""What a call does where environments diverged: raise an error if all did, or return infinity and NaN."""

FROM_DISTANCE = "contact_from_distance"
DEFAULT_DISTANCE = 0.1
"""Gap in metres up to which contact is seen, if none is given."""


@dataclass(frozen=True)
class GradientMethod:
    """A method: "exact", "contact_from_distance" or "contact_from_distance=0.3" (metres) as text.

    Attributes:
        distance: gap in metres up to which shapes that do not touch have a derivative; 0 for "exact".
    """

    distance: float = 0.0

    @classmethod
    def parse(cls, value: Any, name: str = "gradient") -> GradientMethod:
        """Parse a method.

        Args:
            value: the text, or a GradientMethod.
            name: the argument's name, for the error text.

        Raises:
            ArgumentError: `value` is not a method.
        """
        if isinstance(value, GradientMethod):
            return value
        if value == "exact":
            return EXACT
        if isinstance(value, str):
            kind, _, given = value.partition("=")
            distance = DEFAULT_DISTANCE if value == FROM_DISTANCE else _number(given)
            if kind == FROM_DISTANCE and 0 < distance < math.inf:
                return cls(distance)
        raise ArgumentError.expected(
            name, f"'exact', '{FROM_DISTANCE}' or '{FROM_DISTANCE}=0.1', with metres > 0", repr(value)[:80]
        )

    @property
    def is_exact(self) -> bool:
        return self.distance == 0

    def __str__(self) -> str:
        return "exact" if self.is_exact else f"{FROM_DISTANCE}={self.distance!r}"


EXACT = GradientMethod()


def _number(text: str) -> float:
    """Return a number, or NaN."""
    try:
        return float(text)
    except ValueError:
        return math.nan

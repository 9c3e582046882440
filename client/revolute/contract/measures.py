"""Table of what can be measured at a state: poses, velocities, centres of mass, and sensors.

A quantity has a row per element (body, geom, site or sensor); "site_pos:hand" is the row of one element, and
"site_pos:hand@body:chassis" the same in the frame of a body, geom or site.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from .errors import ArgumentError


@dataclass(frozen=True)
class Measure:
    """A measured quantity.

    Attributes:
        kind: kind of its elements.
        size: numbers per element; 0 for sensors, which have their own sizes.
        probe: name of the engine's probe.
        text: what it is, in one line.
        of_velocity: whether it depends on qvel.
        elements: number of elements that one value belongs to: 2 for a distance, otherwise 1.
    """

    kind: str
    size: int
    probe: str
    text: str
    of_velocity: bool = False
    elements: int = 1


def _of_frames(kind: str, what: str) -> dict[str, Measure]:
    return {
        f"{kind}_pos": Measure(kind, 3, "position", f"position of the {what}, m"),
        f"{kind}_quat": Measure(kind, 4, "quaternion", f"orientation of the {what}, w x y z"),
        f"{kind}_mat": Measure(kind, 9, "rotation", f"rotation matrix of the {what}, row by row"),
        f"{kind}_linvel": Measure(kind, 3, "linear_velocity", f"velocity of the {what}, m/s", True),
        f"{kind}_angvel": Measure(
            kind, 3, "angular_velocity", f"angular velocity of the {what}, rad/s", True
        ),
        f"{kind}_distance": Measure(kind, 1, "distance", f"distance between two {kind}s, m", elements=2),
    }


MEASURES: dict[str, Measure] = {
    **_of_frames("body", "body's frame"),
    **_of_frames("geom", "shape's frame"),
    **_of_frames("site", "site"),
    "body_com": Measure("body", 3, "position", "mass centre of the body, m"),
    "subtree_com": Measure("body", 3, "subtree_com", "mass centre of the body and all beyond it, m"),
    "subtree_linvel": Measure(
        "body", 3, "subtree_linear_velocity", "velocity of this mass centre, m/s", True
    ),
    "subtree_angmom": Measure(
        "body", 3, "subtree_angular_momentum", "angular momentum about this mass centre, kg m²/s", True
    ),
    "sensor": Measure("sensor", 0, "", "readings of the file's sensors, in MuJoCo's units", True),
}
"""Quantities by name, in the world frame."""

KINDS = ("joint", "body", "geom", "site", "sensor", "actuator")
"""Kinds of elements that have names."""


FRAMES = ("body", "geom", "site")
"""Kinds of elements that have a frame."""


class Named(NamedTuple):
    """What the name of a measured quantity says.

    Attributes:
        quantity: name of the quantity, such as "site_pos".
        element: name of one element, or None for all.
        relative_to: frame to measure in, such as "body:chassis", or None for the world.
    """

    quantity: str
    element: str | None
    relative_to: str | None

    @property
    def measure(self) -> Measure:
        """The quantity."""
        return MEASURES[self.quantity]


def measure_of(argument: str, name: str) -> Named:
    """Return what the name of a quantity says.

    Raises:
        ArgumentError: there is no such quantity, or it has no frame to measure in.
    """
    place = max(name.rfind(f"@{kind}:") for kind in FRAMES)
    own, relative_to = (name, None) if place < 0 else (name[:place], name[place + 1 :])
    quantity, colon, element = own.partition(":")
    if quantity not in MEASURES:
        raise ArgumentError.expected(argument, f"names among {', '.join(MEASURES)}", repr(name)[:80])
    check_relative(argument, quantity, relative_to)
    return Named(quantity, element if colon else None, relative_to)


def check_relative(argument: str, quantity: str, relative_to: Any) -> None:
    """Check the frame that a quantity is measured in; None is the world's.

    Raises:
        ArgumentError: the quantity has none, or it is no frame.
    """
    if relative_to is None:
        return
    measure = MEASURES.get(quantity)
    if measure is None or measure.kind not in FRAMES or measure.elements > 1 or quantity[:7] == "subtree":
        raise ArgumentError.expected(argument, f"none for {quantity}", repr(relative_to)[:60])
    kind, colon, _ = relative_to.partition(":") if isinstance(relative_to, str) else ("", "", "")
    if kind not in FRAMES or not colon:
        raise ArgumentError.expected(
            argument, "a frame such as 'body:chassis' or 'site:hand'", repr(relative_to)[:60]
        )


def as_elements(argument: str, value: Any) -> tuple[str, ...]:
    """Return names or numbers of elements as texts.

    Args:
        argument: name for the error text.
        value: a name, a number from 0, or a sequence of these.

    Raises:
        ArgumentError: the value is anything else, or empty.
    """
    values = [value] if isinstance(value, (str, int, np.integer)) else value
    good = isinstance(values, (Sequence, np.ndarray)) and len(values) > 0
    if not good or not all(_is_element(entry) for entry in values):
        text = repr(value)
        raise ArgumentError.expected(
            argument,
            "a name, a number from 0, or a list of these",
            text if len(text) <= 60 else f"{text[:57]}...",
        )
    return tuple(str(entry) for entry in values)


def _is_element(entry: Any) -> bool:
    if isinstance(entry, (bool, np.bool_)):
        return False
    return isinstance(entry, str) or (isinstance(entry, (int, np.integer)) and bool(entry >= 0))


def find_elements(argument: str, kind: str, names: Sequence[str], wanted: Sequence[str]) -> list[int]:
    """Return the indices of elements.

    Args:
        argument: name for the error text.
        kind: kind of the elements, for the error text.
        names: names of all elements of this kind.
        wanted: names, or numbers for elements that no name fits.

    Raises:
        ArgumentError: there is no such element.
    """
    places = {name: index for index, name in enumerate(names)}
    found = []
    for name in wanted:
        index = places.get(name, int(name) if name.isascii() and name.isdigit() else -1)
        if not 0 <= index < len(names):
            known = ", ".join(names[:12]) + (", …" if len(names) > 12 else "")
            expected = f"a {kind} among {known}" if names else f"a model with a {kind}"
            raise ArgumentError.expected(argument, expected, repr(name)[:80])
        found.append(index)
    return found

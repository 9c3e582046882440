"""The options of `load_model`, checked and with defaults filled in."""

from __future__ import annotations

import math
import numbers
from dataclasses import dataclass
from typing import Any

import numpy as np

from revolute.contract.errors import ArgumentError

SOLVERS = ("pgs",)
BASES = ("fixed", "free")
CONTACT_MODELS = ("hard", "mujoco")
CONES = ("pyramidal", "elliptic")
MAX_ITERATIONS = 100_000


@dataclass(frozen=True)
class Options:
    """How a model is loaded and simulated; the fields are `load_model`'s arguments of the same names."""

    base: str | None = None
    ground: bool = False
    fuse_fixed: bool = False
    timestep: float | None = None
    contact_model: str = "hard"
    cone: str | None = None
    solver: str = "pgs"
    iterations: int = 50
    contact: bool = True
    limits: bool = True
    dry_friction: bool = True
    erp: float = 0.2
    cfm: float = 0.0
    restitution: float = 0.0
    margin: float = 0.01

    def checked(self) -> Options:
        """Return the same options in plain Python types.

        Raises:
            ArgumentError: an option has the wrong type or lies outside its range.
        """
        for name in ("ground", "fuse_fixed", "contact", "limits", "dry_friction"):
            if not isinstance(getattr(self, name), (bool, np.bool_)):
                raise ArgumentError.expected(name, "True or False", repr(getattr(self, name)))
        if self.base not in (None, *BASES):
            raise ArgumentError.expected("base", "'fixed', 'free' or None", repr(self.base))
        if self.solver not in SOLVERS:
            raise ArgumentError.expected("solver", "'pgs'", repr(self.solver))
        if self.contact_model not in CONTACT_MODELS:
            raise ArgumentError.expected("contact_model", "'hard' or 'mujoco'", repr(self.contact_model))
        if self.cone not in (None, *CONES):
            raise ArgumentError.expected("cone", "'pyramidal', 'elliptic' or None", repr(self.cone))
        if self.timestep is not None:
            _real("timestep", self.timestep, "seconds > 0", lambda value: value > 0)
        _real("erp", self.erp, "a number from 0 to 1", lambda value: 0 <= value <= 1)
        _real("cfm", self.cfm, "a number >= 0", lambda value: value >= 0)
        _real("restitution", self.restitution, "a number from 0 to 1", lambda value: 0 <= value <= 1)
        _real("margin", self.margin, "metres >= 0", lambda value: value >= 0)
        return Options(
            base=self.base,
            ground=bool(self.ground),
            fuse_fixed=bool(self.fuse_fixed),
            timestep=None if self.timestep is None else float(self.timestep),
            contact_model=self.contact_model,
            cone=self.cone,
            solver=self.solver,
            iterations=positive_integer("iterations", self.iterations, MAX_ITERATIONS),
            contact=bool(self.contact),
            limits=bool(self.limits),
            dry_friction=bool(self.dry_friction),
            erp=float(self.erp),
            cfm=float(self.cfm),
            restitution=float(self.restitution),
            margin=float(self.margin),
        )


def positive_integer(name: str, value: Any, most: int) -> int:
    """Return `value` as an int when it is an integer from 1 to `most`."""
    if isinstance(value, bool) or not isinstance(value, numbers.Integral) or not 1 <= int(value) <= most:
        raise ArgumentError.expected(name, f"an integer from 1 to {most}", repr(value))
    return int(value)


def _real(name: str, value: Any, what: str, accepts: Any) -> None:
    """Check a finite real number."""
    is_number = isinstance(value, numbers.Real) and not isinstance(value, (bool, np.bool_))
    if not is_number or not math.isfinite(value) or not accepts(value):
        raise ArgumentError.expected(name, what, repr(value))

"""The warning that constraints were not solved."""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np

from .model import ModelHandle


class UnsettledWarning(UserWarning):
    """The constraint solver did not settle: contacts, limits or equalities of some step are not solved."""


def warn_unsettled(
    verb: str, model: ModelHandle, unsettled_step: Any, residual: Any, stacklevel: int, *, since: int = 0
) -> None:
    """Warn if the solver did not settle in some environment.

    Args:
        verb: name of the call, for the text.
        model: the model that was simulated.
        unsettled_step: first step that did not settle, or -1, [batch]; None if an old server does not tell.
        residual: largest violation that was left, m/s or rad/s, [batch].
        stacklevel: as for `warnings.warn`; 1 is the caller of this function.
        since: first step of this call; earlier ones are not of interest.
    """
    if unsettled_step is None or not np.count_nonzero(unsettled_step >= since):
        return
    steps = np.atleast_1d(unsettled_step)
    bad = steps >= since
    where = f"{bad.sum()} of {len(steps)} environments" if len(steps) > 1 else "the environment"
    options = model.options
    cure = "look at solref, solimp and the masses"
    if options.get("contact_model") == "hard":
        largest = f" and leaves up to {np.atleast_1d(residual).max():.2g} m/s"
        exact = options.get("solver") == "exact"
        cure = 'give more iterations or solver="exact"'
        if exact:
            cure = "look at masses, time step, and equalities against each other"
    else:
        largest = ""
    warnings.warn(
        f"{verb}: the constraint solver does not settle in {where}, first at step {steps[bad].min()}"
        f"{largest}; {cure}",
        UnsettledWarning,
        stacklevel=stacklevel + 1,
    )

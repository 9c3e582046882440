"""Upper bound of the memory of a gradient check, for limits that are checked in advance."""

from __future__ import annotations

from .._model import Model
from .differences import FINE_STEPS, PART_NUMBERS
from .one_input import ENTRIES_WHEN_WRONG
from .opposed import NUDGES

_COPIES = 4
"""Number of copies of a batch's perturbed inputs: tangents, perturbed inputs, the engine's copy, states."""


def held_bytes(model: Model, steps: int, directions: int) -> int:
    """Return an upper bound of the memory of `check_gradient` in bytes.

    Args:
        model: the model.
        steps: length of the trajectory.
        directions: random directions per input.
    """
    state, tangent = model.nq + model.nqvel, model.nv + model.nqvel
    one_direction = steps * (state + model.nu) * (2 * len(FINE_STEPS) + 1)
    entries = 2 * ENTRIES_WHEN_WRONG
    at_once = min(max(PART_NUMBERS, one_direction), max(directions, entries) * one_direction)
    # directions of the input, gradient and their product; forward derivatives; weights of the states
    each_direction = steps * (4 * model.nu + 2 * tangent + 2 * state)
    repeated = NUDGES * steps * (state + 2 * tangent + model.nu)
    return 8 * (_COPIES * at_once + directions * each_direction + repeated + entries * steps * model.nu)

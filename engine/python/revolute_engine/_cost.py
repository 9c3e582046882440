"""A note about models whose steps take long on this machine."""

from __future__ import annotations

import time

import mujoco
import numpy as np

from . import native as _native
from ._native_arrays import Arrays
from ._start import FEW_PAIRS

SLOW = 3e-4
"""Seconds of a step from which it is worth a note."""

_LONG = 0.02  # seconds of a step that is not repeated
_TRIALS = 3  # the fastest counts, as others may use the processor
_MESH = int(mujoco.mjtGeom.mjGEOM_MESH)


def notes_on_cost(model: mujoco.MjModel, arrays: Arrays, native: _native.Model) -> list[str]:
    """Return a note about the time of a step from qpos0 at rest, or an empty list if it is short.

    Models of very many pairs of shapes are left out, as in `first_step_warnings`.

    Args:
        model: the compiled model.
        arrays: its arrays for the compiled engine.
        native: the compiled engine's copy.
    """
    if len(arrays["pair_geom1"]) > FEW_PAIRS or arrays["unlisted_pairs"]:
        return []
    seconds = _step_seconds(model, arrays, native)
    return [note_of(model, arrays, seconds)] if seconds >= SLOW else []


def note_of(model: mujoco.MjModel, arrays: Arrays, seconds: float) -> str:
    """Return the note for a step that takes some seconds."""
    types = model.geom_type[np.column_stack([arrays["pair_geom1"], arrays["pair_geom2"]])]
    with_mesh = int((types == _MESH).any(axis=1).sum())
    what = f"a step from the zero pose takes about {_milliseconds(seconds)} ms here"
    if not with_mesh:
        return what
    return (
        f"{what}; {with_mesh} of {len(types)} watched pairs of shapes have a mesh: capsules, boxes and "
        "spheres in their place, or fewer pairs that may touch, make steps faster"
    )


def _milliseconds(seconds: float) -> str:
    """Return a time with two digits at most."""
    return f"{float(f'{1e3 * seconds:.1e}'):g}"


def _step_seconds(model: mujoco.MjModel, arrays: Arrays, native: _native.Model) -> float:
    """Return the time of a step of one environment."""
    start = arrays["qpos0"][None], np.zeros((1, model.nv + model.na)), np.zeros((1, model.nu))
    fastest = np.inf
    for _ in range(_TRIALS):
        began = time.perf_counter()
        _native.advance(native, *start, 1, None, 1, None)
        fastest = min(fastest, time.perf_counter() - began)
        if not SLOW <= fastest < _LONG:
            break
    return float(fastest)

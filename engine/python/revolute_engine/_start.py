"""Warnings of a model's own start, the pose qpos0 at rest.

They name joints beyond their limits, and the body that makes the first step not finite.
"""

from __future__ import annotations

import re
from collections.abc import Iterable

import mujoco
import numpy as np

from . import native as _native
from ._arrays import Arrays
from ._massless import dofs_without_inertia
from ._names import element_name
from ._pairs import no_pairs

_NAMED = 3  # of the joints, how many a warning names
_ROUNDING = 1e-9  # by which a position may pass a limit, relative to 1
_FEW_PAIRS = 10_000  # up to which the first step is tried with contacts
_SINGULAR = re.compile(r"Inertia matrix is too close to singular.* at DOF (\d+)", re.DOTALL)
"""What MuJoCo's compiler warns of; the number is all that it says of the place."""


def limit_warnings(model: mujoco.MjModel) -> list[str]:
    """Return a warning that names the joints which qpos0 puts beyond their limits, or none.

    Args:
        model: the compiled model.
    """
    start = model.qpos0[model.jnt_qposadr]
    low, high = model.jnt_range.T
    scalar = np.isin(model.jnt_type, [int(mujoco.mjtJoint.mjJNT_SLIDE), int(mujoco.mjtJoint.mjJNT_HINGE)])
    beyond = (start < low - _ROUNDING * (1 + np.abs(low))) | (start > high + _ROUNDING * (1 + np.abs(high)))
    chosen = np.flatnonzero(scalar & beyond & np.asarray(model.jnt_limited, dtype=bool))
    if not chosen.size:
        return []
    named = [
        f"{element_name(model, 'joint', int(joint))} at {start[joint]:g}, "
        f"range [{low[joint]:g}, {high[joint]:g}]"
        for joint in chosen[:_NAMED]
    ]
    more = [f"and {chosen.size - _NAMED} more"] if chosen.size > _NAMED else []
    what = "1 joint" if chosen.size == 1 else f"{chosen.size} joints"
    return [
        f"the zero pose is beyond the limits of {what}: {'; '.join([*named, *more])}; start from another qpos"
    ]


def named_warnings(model: mujoco.MjModel, texts: Iterable[str]) -> list[str]:
    """Return MuJoCo's warnings, each once; one of a number of a degree of freedom names body and joint."""
    named = []
    for text in texts:
        found = _SINGULAR.search(text)
        if found:
            place = _place(model, int(found.group(1)))
            text = f"{place}: almost no inertia; check its mass and moments of inertia"
        named.append(text)
    return list(dict.fromkeys(named))


def first_step_warnings(model: mujoco.MjModel, arrays: Arrays, native: _native.Model) -> list[str]:
    """Return a warning that names a body when the first step from qpos0 at rest is not finite, or none.

    Args:
        model: the compiled model.
        arrays: its arrays, as the compiled engine reads them.
        native: the compiled engine's copy.
    """
    if len(arrays["pair_geom1"]) > _FEW_PAIRS:
        native = _native.Model({**arrays, **no_pairs()})
    start = arrays["qpos0"][None]
    qpos, qvel, _ = _native.advance(
        native, start, np.zeros((1, model.nv)), np.zeros((1, model.nu)), 1, 1, None
    )
    if np.isfinite(qpos).all() and np.isfinite(qvel).all():
        return []
    massless = dofs_without_inertia(model)
    not_finite = np.flatnonzero(~np.isfinite(qvel[0]))
    dof = int(massless[-1]) if massless.size else int(not_finite[-1]) if not_finite.size else 0
    return [
        f"{_place(model, dof)}: the first step from the zero pose at rest is not finite; check its inertia"
    ]


def _place(model: mujoco.MjModel, dof: int) -> str:
    """Return how warnings name the place of a degree of freedom."""
    body = element_name(model, "body", int(model.dof_bodyid[dof]))
    return f"{body}, {element_name(model, 'joint', int(model.dof_jntid[dof])).partition(' of ')[0]}"

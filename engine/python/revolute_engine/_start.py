"""Warnings about a model's default start, the pose qpos0 at rest.

They name joints beyond their limits, and a body that makes the first step non-finite.
"""

from __future__ import annotations

import re
from collections.abc import Iterable

import mujoco
import numpy as np

from . import native as _native
from ._massless import dofs_without_inertia
from ._names import element_name
from ._native_arrays import Arrays
from ._pairs import no_pairs

_NAMED = 3  # largest number of joints that a warning names
_ROUNDING = 1e-9  # tolerance of a limit, relative to 1 plus its size
FEW_PAIRS = 10_000  # largest number of pairs for which the first step is computed with contacts
_SINGULAR = re.compile(r"Inertia matrix is too close to singular.* at DOF (\d+)", re.DOTALL)
"""Warning of MuJoCo's compiler; it identifies the joint only by the number of the degree of freedom."""


def limit_warnings(model: mujoco.MjModel) -> list[str]:
    """Return a warning that names joints beyond their limits in qpos0, or an empty list.

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
    """Return MuJoCo's warnings without duplicates, with names of body and joint for numbers."""
    named = []
    for text in texts:
        found = _SINGULAR.search(text)
        if found:
            place = _place(model, int(found.group(1)))
            text = f"{place}: almost no inertia; check its mass and moments of inertia"
        named.append(text)
    return list(dict.fromkeys(named))


def first_step_warnings(model: mujoco.MjModel, arrays: Arrays, native: _native.Model) -> list[str]:
    """Return a warning that names a body if the first step from qpos0 at rest is not finite, or an empty
    list.

    Args:
        model: the compiled model.
        arrays: its arrays for the compiled engine.
        native: the compiled engine's copy.
    """
    if len(arrays["pair_geom1"]) > FEW_PAIRS or arrays["unlisted_pairs"]:
        native = _native.Model({**arrays, **no_pairs()})
    start = arrays["qpos0"][None]
    qpos, qvel, *_ = _native.advance(
        native, start, np.zeros((1, model.nv + model.na)), np.zeros((1, model.nu)), 1, None, 1, None
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
    """Return body and joint of a degree of freedom, for warnings."""
    body = element_name(model, "body", int(model.dof_bodyid[dof]))
    return f"{body}, {element_name(model, 'joint', int(model.dof_jntid[dof])).partition(' of ')[0]}"

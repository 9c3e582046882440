"""Equality constraints: checks their types, and converts them to arrays for the compiled engine.

The engine simulates connect and weld between two bodies, joint, and tendon. A constraint between sites
becomes one between their bodies: connect holds the sites' origins together, weld holds their frames together.
"""

from __future__ import annotations

from typing import Any

import mujoco
import numpy as np
import numpy.typing as npt

from revolute.contract.errors import ModelError

from ._kinds import check_kinds
from ._names import element_name

_CONNECT, _WELD = mujoco.mjtEq.mjEQ_CONNECT, mujoco.mjtEq.mjEQ_WELD
_DATA = 11
"""Numbers per constraint: anchors and pose of bodies, polynomial of joints."""

_TORQUE_SCALE = 10
"""Index of a weld's torquescale among these numbers."""


def check_equalities(model: mujoco.MjModel, label: str) -> None:
    """Raise an error for unsupported constraints.

    Raises:
        ModelError: names the first one that is not supported.
    """
    check_kinds(model, label, "equality", "mjtEq", model.eq_type)
    for index in range(model.neq):
        kind = int(model.eq_type[index])
        element = f"{label}: {element_name(model, 'equality', index)}"
        if not np.isfinite(model.eq_data[index]).all():
            raise ModelError(f"{element}: expected finite numbers, got {model.eq_data[index]} in its data")
        if kind == int(_WELD) and model.eq_data[index, _TORQUE_SCALE] == 0:
            raise ModelError(
                f"{element}: a weld that leaves rotation free (torquescale 0) is not supported; use connect"
            )


def active_equalities(model: mujoco.MjModel) -> list[int]:
    """Return the indices of the constraints that are active at the start."""
    off = int(mujoco.mjtDisableBit.mjDSBL_EQUALITY) | int(mujoco.mjtDisableBit.mjDSBL_CONSTRAINT)
    return [
        index for index in range(model.neq) if model.eq_active0[index] and not model.opt.disableflags & off
    ]


def equality_arrays(model: mujoco.MjModel) -> dict[str, npt.NDArray[Any]]:
    """Return the arrays of the constraints that are active at the start."""
    rows = [_between_bodies(model, index) for index in active_equalities(model)]
    return {
        "eq_type": np.array([row[0] for row in rows], dtype=np.int32),
        "eq_obj1": np.array([row[1] for row in rows], dtype=np.int32),
        "eq_obj2": np.array([row[2] for row in rows], dtype=np.int32),
        "eq_data": np.array([row[3] for row in rows], dtype=np.float64).reshape(-1, _DATA),
    }


def _between_bodies(model: mujoco.MjModel, index: int) -> tuple[int, int, int, npt.NDArray[np.float64]]:
    """Return type, both objects and data of one constraint, with bodies in place of sites."""
    kind, data = int(model.eq_type[index]), np.array(model.eq_data[index, :_DATA])
    first, second = int(model.eq_obj1id[index]), int(model.eq_obj2id[index])
    if model.eq_objtype[index] != int(mujoco.mjtObj.mjOBJ_SITE):
        return kind, first, second, data
    anchors = model.site_pos[[first, second]]
    if kind == int(_CONNECT):
        data[:6] = anchors.ravel()
    else:
        # the frames coincide: orientation of body 2 in body 1 = site 1 * conjugate(site 2)
        data[:6] = anchors[::-1].ravel()
        conjugate = np.zeros(4)
        mujoco.mju_negQuat(conjugate, model.site_quat[second])
        mujoco.mju_mulQuat(data[6:10], model.site_quat[first], conjugate)
    return kind, int(model.site_bodyid[first]), int(model.site_bodyid[second]), data

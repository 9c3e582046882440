"""Shapes and checks of the inputs of a step besides state, control and parameters, `STEP_INPUTS`."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from revolute.contract.arrays import Float64Array, as_float64
from revolute.contract.controllers import MOCAP_INPUTS, STEP_INPUTS
from revolute.contract.errors import ArgumentError

from ._model import Model
from .parameters import check_finite


def input_shape(model: Model, name: str) -> tuple[int, ...]:
    """Return the axes of one of `STEP_INPUTS` besides batch and time.

    Raises:
        ArgumentError: it places mocap bodies, and the model has none.
    """
    if name.startswith("mocap") and not model.nmocap:
        raise ArgumentError.expected(
            name,
            "none, as the model has no mocap bodies",
            "an array",
            advice='a body of the file with mocap="true" is one',
        )
    return {
        "qfrc_applied": (model.nv,),
        "xfrc_applied": (model.nbody, 6),
        "mocap_pos": (model.nmocap, 3),
        "mocap_quat": (model.nmocap, 4),
    }[name]


def inputs_of(model: Model) -> tuple[str, ...]:
    """Return the names of those of `STEP_INPUTS` that a model has."""
    return tuple(name for name in STEP_INPUTS if model.nmocap or name not in MOCAP_INPUTS)


def step_inputs(
    model: Model, given: Mapping[str, Any] | None, batch: int, batched: bool
) -> dict[str, Float64Array]:
    """Return inputs of one step by name, each [batch, size].

    Args:
        model: the model.
        given: of `STEP_INPUTS` by name, [size], or [batch, size] if ctrl has a batch axis.
        batch: number of environments.
        batched: whether ctrl has a batch axis.

    Raises:
        ArgumentError: a shape or a number is wrong.
    """
    found = {}
    for name, value in (given or {}).items():
        own = input_shape(model, name)
        array = as_float64(name, value)
        check_finite(name, array)
        if array.shape != own and not (batched and array.shape in ((1, *own), (batch, *own))):
            first = f" or {[batch, *own]}" if batched else ""
            raise ArgumentError.expected(name, f"shape {list(own)}{first}", list(array.shape))
        if name == "mocap_quat":
            check_mocap_quat(array)
        rows = np.broadcast_to(array, (batch, *own))
        found[name] = np.ascontiguousarray(rows).reshape(batch, int(np.prod(own)))
    return found


def check_mocap_quat(array: Float64Array | None) -> None:
    """Check that quaternions have a direction.

    Raises:
        ArgumentError: one of them is zero.
    """
    if array is not None and not (np.linalg.norm(array, axis=-1) > 0).all():
        raise ArgumentError.expected("mocap_quat", "quaternions (w x y z) of non-zero length", "one of zeros")

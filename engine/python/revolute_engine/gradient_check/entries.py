"""Compares single entries of a gradient with central differences, and names them."""

from __future__ import annotations

import numpy as np

from revolute.contract.arrays import Float64Array
from revolute.contract.gradient_report import EntryCheck

from .._cotangents import INPUTS
from .._model import Model
from ..parameters import AXES, PARAMETERS
from .differences import FINE_STEPS, Cotangents, PerturbedInput, plateau


def worst_entry(
    perturbed: PerturbedInput,
    gradient: Float64Array,
    cotangents: Cotangents,
    count: int,
    random: np.random.Generator,
) -> EntryCheck | None:
    """Compare the largest entries of a gradient, and some random ones, with differences.

    Args:
        perturbed: the input; entries whose unit is 0 are left out.
        gradient: the gradient by this input, in tangent coordinates.
        cotangents: weights of the states; the first set is used.
        count: number of largest entries, and number of random entries.
        random: random number generator.

    Returns:
        The entry with the largest error relative to the largest entry; None if no entry was compared.
    """
    scale = perturbed.units
    weight = np.abs(gradient * scale).ravel()
    movable = np.flatnonzero(scale.ravel())
    if not len(movable):
        return None
    largest = movable[np.argsort(-weight[movable], kind="stable")[:count]]
    some = random.choice(movable, size=min(count, len(movable)), replace=False)
    chosen = np.unique(np.concatenate([largest, some]))
    directions = np.zeros((len(chosen), gradient.size))
    directions[np.arange(len(chosen)), chosen] = scale.ravel()[chosen]
    first = Cotangents(cotangents.times, cotangents.qpos_bar[:1], cotangents.qvel_bar[:1])
    found = perturbed.differences(directions.reshape(-1, *gradient.shape), first, FINE_STEPS).central
    plateaus = [plateau(each, FINE_STEPS) for each in found]
    difference = np.array([each.value if each else np.nan for each in plateaus])
    exact = (gradient * scale).ravel()[chosen]
    top = max(float(np.abs(exact).max()), float(np.nanmax(np.abs(difference), initial=0.0)))
    if top == 0:
        return None
    errors = np.where(np.isfinite(difference), np.abs(exact - difference), 0.0) / top
    worst = int(errors.argmax())
    unit = float(scale.ravel()[chosen[worst]])
    index = tuple(int(i) for i in np.unravel_index(chosen[worst], gradient.shape))
    return EntryCheck(
        name=entry_name(perturbed.model, perturbed.name, index),
        gradient=float(exact[worst]) / unit,
        difference=float(difference[worst]) / unit,
        error=float(errors[worst]),
    )


def entry_name(model: Model, name: str, index: tuple[int, ...]) -> str:
    """Return the name of an entry: "ctrl[137, FL_hip]", "body_ipos[trunk, z]", "restitution"."""
    if not index:
        return name
    if name == "ctrl":
        time, actuator = index
        return f"ctrl[{time}, {model.actuator_names[actuator]}]"
    if name not in PARAMETERS and name not in INPUTS:
        return f"{name}[{', '.join(map(str, index))}]"
    if name in INPUTS:
        of_qvel = [*model.dof_names, *(f"act {number}" for number in range(model.na))]
        return f"{name}[{of_qvel[index[0]]}]"
    counted, columns = PARAMETERS[name].axes[0], PARAMETERS[name].columns
    names = {
        "ngeom": model.geom_names,
        "nbody": model.body_names,
        "njnt": model.joint_names,
        "nu": model.actuator_names,
        "nv": model.dof_names,
        3: AXES,
    }.get(counted)
    first = names[index[0]] if names else str(index[0])
    return f"{name}[{', '.join([first, *(columns[column] for column in index[1:])])}]"

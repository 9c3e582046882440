"""Finds the pairs of shapes that can touch, by MuJoCo's rules. A mesh counts as its convex hull.

Two shapes are a candidate pair when neither their bodies nor the bodies they are welded to are the same, or
parent and child (unless the parent is the world), no exclude names their bodies, and contype and conaffinity
match. Explicit `<pair>` elements pass all filters. The sliding friction of a pair is the larger of the two,
that of the shape with the higher priority, or the pair's own.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator
from dataclasses import dataclass

import mujoco
import numpy as np
import numpy.typing as npt

from revolute.errors import ModelError

from ._names import element_name

_PLANE, _MESH = 0, 7  # MuJoCo's numbers of shape types
_SOFT_NUMBERS = 14  # of Pair.own_softness
_NAMED = 3  # of the pairs that are left out, how many a note names

BOTH, FIRST, SECOND = 0, 1, 2
"""Values of `Pair.mu_from`."""


@dataclass(frozen=True)
class Pair:
    """One candidate pair of shapes.

    Attributes:
        geom1: index of the shape with the smaller type.
        geom2: index of the other.
        friction: sliding (nan: combined from the shapes'), torsional and rolling friction coefficients.
        mu_from: BOTH (the larger coefficient counts), FIRST or SECOND (that shape's priority is higher).
        condim: 1 without friction, 3 sliding, 4 with torsion, 6 with torsion and rolling.
        margin: distance in metres below which MuJoCo's contact acts.
        gap: MuJoCo looks for contacts up to this much farther away than the margin.
        weight: share of the first shape in the mixed softness; nan for a `<pair>` element, which has its own.
        own_softness: of such a pair: solref, solreffriction, solimp and the five friction coefficients.
        element: how messages name the pair.
    """

    geom1: int
    geom2: int
    friction: tuple[float, float, float]
    mu_from: int
    condim: int
    margin: float
    gap: float
    weight: float
    own_softness: tuple[float, ...]
    element: str


def candidate_pairs(
    model: mujoco.MjModel, label: str, *, is_urdf: bool, contact_model: str
) -> tuple[list[Pair], list[str]]:
    """Return the pairs of shapes to watch for contact.

    Args:
        model: the compiled model.
        label: what messages call the file.
        is_urdf: a URDF cannot say which shapes should not meet, so those that overlap in its zero pose are
            left out with a note.
        contact_model: "hard" knows one friction coefficient for all sliding directions.

    Returns:
        The pairs in the order in which the solver goes through them, and notes.

    Raises:
        ModelError: a mesh that can touch has no convex hull.
    """
    pairs: list[Pair] = []
    left_out: list[str] = []
    overlapping = _overlapping(model) if is_urdf else set()
    one_sliding = contact_model == "hard"
    for pair in [*_explicit_pairs(model, label, one_sliding), *_filtered_pairs(model)]:
        planes = [model.geom_type[geom] == _PLANE for geom in (pair.geom1, pair.geom2)]
        if all(planes):
            continue
        if not any(planes) and frozenset((pair.geom1, pair.geom2)) in overlapping:
            left_out.append(pair.element)
            continue
        _check_hulls(model, label, pair)
        pairs.append(pair)
    return sorted(pairs, key=lambda pair: _solver_order(model, pair)), _left_out_note(left_out)


def _solver_order(model: mujoco.MjModel, pair: Pair) -> tuple[bool, int, int]:
    """Return the sorting key of a pair: contacts with the fixed world after those of moving bodies.

    The solver goes through the contacts in this order, so that a sweep ends with what carries all the rest. A
    box of 1000 kg on one of 1 kg then stands after 50 sweeps; in the other order it sinks.
    """
    bodies = model.geom_bodyid[[pair.geom1, pair.geom2]]
    return bool((model.body_weldid[bodies] == 0).any()), pair.geom1, pair.geom2


def _left_out_note(elements: list[str]) -> list[str]:
    """Return a note that names the first of the pairs that are not watched, or none."""
    if not elements:
        return []
    more = len(elements) - _NAMED
    named = "; ".join([*elements[:_NAMED], *([f"and {more} more"] if more > 0 else [])])
    what = "1 pair that overlaps" if len(elements) == 1 else f"{len(elements)} pairs that overlap"
    verb = "is" if len(elements) == 1 else "are"
    return [f"{what} in the zero pose {verb} not watched for contact: {named}"]


def _overlapping(model: mujoco.MjModel) -> set[frozenset[int]]:
    """Return the pairs of shapes that touch or overlap in the pose qpos0."""
    data = mujoco.MjData(model)
    mujoco.mj_fwdPosition(model, data)
    return {frozenset(contact.geom.tolist()) for contact in data.contact if contact.dist <= 0}


def _check_hulls(model: mujoco.MjModel, label: str, pair: Pair) -> None:
    """Refuse a mesh that has no convex hull to collide with."""
    for geom in (pair.geom1, pair.geom2):
        if model.geom_type[geom] == _MESH and model.mesh_graphadr[model.geom_dataid[geom]] < 0:
            name = element_name(model, "geom", geom)
            raise ModelError(f"{label}: {name}: expected a mesh with a convex hull; give the mesh a volume")


def _explicit_pairs(model: mujoco.MjModel, label: str, one_sliding: bool) -> Iterator[Pair]:
    """Yield the `<pair>` elements; refuse friction that differs by direction if `one_sliding`."""
    for index in range(model.npair):
        first, second = int(model.pair_geom1[index]), int(model.pair_geom2[index])
        if _welded(model, first, second):
            continue
        element = f"{element_name(model, 'pair', index)} of {_names(model, first, second)}"
        friction = model.pair_friction[index]
        condim = int(model.pair_dim[index])
        for one, other in ((0, 1), (3, 4)) if condim == 6 else ((0, 1),) if condim > 1 else ():
            if one_sliding and friction[one] != friction[other]:
                raise ModelError(
                    f"{label}: {element}: friction that differs by direction is not supported; "
                    f"give two equal numbers, not {friction[one]:g} and {friction[other]:g}"
                )
        first, second = _ordered(model, first, second)
        own = (float(friction[0]), float(friction[2]), float(friction[3]))
        margin, gap = float(model.pair_margin[index]), float(model.pair_gap[index])
        softness = (
            *model.pair_solref[index].tolist(),
            *model.pair_solreffriction[index].tolist(),
            *model.pair_solimp[index].tolist(),
            *friction.tolist(),
        )
        yield Pair(first, second, own, BOTH, condim, margin, gap, math.nan, softness, element)


def _filtered_pairs(model: mujoco.MjModel) -> Iterator[Pair]:
    """Yield the pairs that pass MuJoCo's filters and are not named by a `<pair>`."""
    explicit = {
        frozenset(ends) for ends in zip(model.pair_geom1.tolist(), model.pair_geom2.tolist(), strict=True)
    }
    touching = [
        index for index in range(model.ngeom) if model.geom_contype[index] or model.geom_conaffinity[index]
    ]
    excluded = set(model.exclude_signature.tolist())
    for position, one in enumerate(touching):
        for other in touching[position + 1 :]:
            if frozenset((one, other)) not in explicit and _passes(model, one, other, excluded):
                yield _combined(model, one, other)


def _passes(model: mujoco.MjModel, one: int, other: int, excluded: Iterable[int]) -> bool:
    """Whether MuJoCo's filters let two shapes meet."""
    body1, body2 = sorted((int(model.geom_bodyid[one]), int(model.geom_bodyid[other])))
    weld1, weld2 = int(model.body_weldid[body1]), int(model.body_weldid[body2])
    if weld1 == weld2 or (body1 << 16) + body2 in excluded:
        return False
    filters_parent = not model.opt.disableflags & int(mujoco.mjtDisableBit.mjDSBL_FILTERPARENT)
    if filters_parent and weld1 and weld2:
        parent1 = int(model.body_weldid[model.body_parentid[weld1]])
        parent2 = int(model.body_weldid[model.body_parentid[weld2]])
        if weld1 == parent2 or weld2 == parent1:
            return False
    contype, conaffinity = model.geom_contype, model.geom_conaffinity
    return bool(contype[one] & conaffinity[other] or contype[other] & conaffinity[one])


def _combined(model: mujoco.MjModel, one: int, other: int) -> Pair:
    """Combine the contact properties of two shapes."""
    first, second = _ordered(model, one, other)
    condims = (int(model.geom_condim[first]), int(model.geom_condim[second]))
    priorities = (int(model.geom_priority[first]), int(model.geom_priority[second]))
    mu_from = BOTH if priorities[0] == priorities[1] else FIRST if priorities[0] > priorities[1] else SECOND
    condim = (max(condims), *condims)[mu_from]
    coefficients = model.geom_friction[[first, second]]
    rotational = (coefficients.max(axis=0), *coefficients)[mu_from][1:]
    friction = (float("nan"), float(rotational[0]), float(rotational[1]))
    margin, gap = (float(values[first] + values[second]) for values in (model.geom_margin, model.geom_gap))
    weight = (_mixing_weight(model, first, second), 1.0, 0.0)[mu_from]
    none = (0.0,) * _SOFT_NUMBERS
    return Pair(
        first, second, friction, mu_from, condim, margin, gap, weight, none, _names(model, first, second)
    )


def _mixing_weight(model: mujoco.MjModel, first: int, second: int) -> float:
    """Return the share of the first shape's softness by solmix, where priorities are equal."""
    one, other = (float(model.geom_solmix[geom]) for geom in (first, second))
    if one >= mujoco.mjMINVAL and other >= mujoco.mjMINVAL:
        return one / (one + other)
    return 0.5 if (one < mujoco.mjMINVAL) == (other < mujoco.mjMINVAL) else float(other < mujoco.mjMINVAL)


def _ordered(model: mujoco.MjModel, one: int, other: int) -> tuple[int, int]:
    """Put the shape with the smaller type first; equal types stay in the order of their indices."""
    if one > other:
        one, other = other, one
    return (one, other) if model.geom_type[one] <= model.geom_type[other] else (other, one)


def _welded(model: mujoco.MjModel, one: int, other: int) -> bool:
    """Whether two shapes can never move relative to each other."""
    weld = model.body_weldid[model.geom_bodyid[[one, other]]]
    return bool(weld[0] == weld[1])


def _names(model: mujoco.MjModel, one: int, other: int) -> str:
    return f"{element_name(model, 'geom', one)} and {element_name(model, 'geom', other)}"


def pair_arrays(pairs: list[Pair]) -> dict[str, npt.NDArray]:
    """Return the pairs as the arrays the compiled engine reads."""
    return {
        "pair_geom1": np.array([pair.geom1 for pair in pairs], dtype=np.int32),
        "pair_geom2": np.array([pair.geom2 for pair in pairs], dtype=np.int32),
        "pair_friction": np.array([pair.friction for pair in pairs], dtype=float).reshape(-1, 3),
        "pair_margin": np.array([pair.margin for pair in pairs], dtype=float),
        "pair_gap": np.array([pair.gap for pair in pairs], dtype=float),
        "pair_mu_from": np.array([pair.mu_from for pair in pairs], dtype=np.int32),
        "pair_condim": np.array([pair.condim for pair in pairs], dtype=np.int32),
    }


def soft_pair_arrays(pairs: list[Pair]) -> dict[str, npt.NDArray]:
    """Return what the contact model "mujoco" reads of the pairs besides."""
    own = np.array([pair.own_softness for pair in pairs], dtype=float).reshape(-1, _SOFT_NUMBERS)
    return {
        "pair_weight": np.array([pair.weight for pair in pairs], dtype=float),
        "pair_solref": own[:, 0:2].copy(),
        "pair_solreffriction": own[:, 2:4].copy(),
        "pair_solimp": own[:, 4:9].copy(),
        "pair_friction5": own[:, 9:14].copy(),
    }

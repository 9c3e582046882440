"""Finds the pairs of shapes that can touch, by MuJoCo's rules. A mesh is replaced by its convex hull.

The compiled engine lists the pairs that pass MuJoCo's filters and can come together
(`revolute/model/contact_pairs.hpp`). A model of many shapes lists only the pairs with the ground, which are
planes and height fields; the compiled engine applies the filters to those that come near each other in a
step (`revolute/stages/unlisted_pairs.hpp`). Explicit `<pair>` elements skip the
filters. The sliding friction of a pair is its own if it is explicit, else that of the shape with higher
priority, else the larger of the two shapes'.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import mujoco
import numpy as np
import numpy.typing as npt

from revolute.contract.errors import ModelError

from . import native
from ._names import element_name
from ._static_bodies import static_bodies

MAX_LISTED = 20_000
"""Largest number of pairs that are listed; more are found in each step."""

BOTH, FIRST, SECOND = 0, 1, 2
"""Values of `pair_mu_from`: the larger friction coefficient counts, or that of the first or second shape."""

_GROUND = (0, 1)  # MuJoCo's numbers of planes and height fields
_MESH = 7
_NAMED = 3  # largest number of pairs that a note names
_DEEP = 1e-3  # smallest penetration at the start, in metres, that causes a warning

IntArray = npt.NDArray[np.int64]
Arrays = dict[str, npt.NDArray]

_NUMBERS = {
    **dict.fromkeys(("geom1", "geom2", "mu_from", "condim"), np.int32),
    **dict.fromkeys(("margin", "gap", "weight"), np.float64),
}
_ROWS = {"friction": 3, "solref": 2, "solreffriction": 2, "solimp": 5, "friction5": 5}
"""The compiled engine's arrays of pairs: one number per pair with its type, or a row with its length."""

_SOFT = ("weight", "solref", "solreffriction", "solimp", "friction5")
"""Arrays that only the contact model "mujoco" reads."""

_FILTERS_INTEGER = ("geom_contype", "geom_conaffinity", "geom_priority", "geom_condim")
_FILTERS_REAL = ("geom_margin", "geom_gap", "geom_solmix")
"""Arrays that the compiled engine needs to find pairs in each step."""

_SEARCHED = (
    *("nbody", "njnt", "ngeom", "body_parentid", "body_pos", "body_quat", "body_weldid", "body_mocapid"),
    *("jnt_type", "jnt_bodyid", "jnt_pos", "jnt_axis"),
    *("geom_type", "geom_bodyid", "geom_pos", "geom_rbound", "geom_contype", "geom_conaffinity"),
    *("exclude_signature", "pair_geom1", "pair_geom2"),
)


def candidate_pairs(
    model: mujoco.MjModel, label: str, *, is_urdf: bool, contact_model: str, margin: float
) -> tuple[dict[str, Any], list[str], list[str]]:
    """Return the pairs of shapes to watch for contact, as the arrays that the compiled engine reads.

    Args:
        model: the compiled model.
        label: name of the file in messages.
        is_urdf: whether the file is a URDF. A URDF cannot exclude pairs, so pairs that overlap in its zero
            pose are left out, with a note.
        contact_model: "hard" has one sliding friction coefficient per pair; "mujoco" has one per direction,
            and soft contacts.
        margin: distance in metres below which a pair becomes a contact row.

    Returns:
        The pairs in the solver's order, a note on pairs that are left out, and a note on pairs that overlap
        in the zero pose.

    Raises:
        ModelError: a mesh that can touch has no convex hull, or friction of a pair differs by direction.
    """
    soft = contact_model == "mujoco"
    explicit = _explicit_pairs(model, label, soft)
    found = _found_pairs(model, margin)
    unlisted = found is None
    if found is None:
        found = np.concatenate([_ground_pairs(model), _touching_pairs(model)])
    pairs = _joined(explicit, _combined(model, found[:, 0], found[:, 1], soft))
    overlap = _overlap(model, pairs)
    kept = np.ones(len(overlap), dtype=bool)
    if is_urdf:
        # shapes may rest on the ground
        kept = ~((overlap >= 0) & ~_is_ground(model, pairs["pair_geom1"]))
    _check_hulls(model, label, pairs, kept)
    left_out = _left_out_note(model, pairs, np.flatnonzero(~kept))
    start = _start_note(model, pairs, np.flatnonzero(kept & (overlap > _DEEP)), overlap)
    order = _solver_order(model, pairs)
    order = order[kept[order]]
    filters = _filters(model, pairs, kept) if unlisted else _no_filters()
    if unlisted:
        order = order[_is_listed(model, pairs, len(explicit["pair_geom1"]))[order]]
    chosen = {name: values[order] if len(values) else values for name, values in pairs.items()}
    return {**chosen, **filters}, left_out, start


def no_pairs() -> dict[str, Any]:
    """Return the arrays of a model without contact."""
    none = {name: np.zeros(0) for name in _NUMBERS}
    rows = {name: np.zeros((0, width)) for name, width in _ROWS.items()}
    return {**_as_arrays({**none, **rows}, soft=True), **_no_filters()}


def _no_filters() -> dict[str, Any]:
    """Return the filters' arrays of a model that lists all of its pairs."""
    integers = dict.fromkeys(
        (*_FILTERS_INTEGER, "exclude_signature", "excluded_geoms"), np.zeros(0, np.int32)
    )
    reals = dict.fromkeys(_FILTERS_REAL, np.zeros(0))
    return {"unlisted_pairs": 0, "filter_parent": 1, **integers, **reals}


def _filters(model: mujoco.MjModel, pairs: Arrays, kept: npt.NDArray[np.bool_]) -> dict[str, Any]:
    """Return what the compiled engine needs to find pairs in each step.

    Args:
        model: the compiled model.
        pairs: the pairs with the ground, those that the file names, and those that touch in the zero pose.
        kept: which of them are watched for contact.
    """
    left_out = np.column_stack([pairs["pair_geom1"], pairs["pair_geom2"]])[~kept]
    named = np.column_stack([model.pair_geom1, model.pair_geom2])
    return {
        "unlisted_pairs": 1,
        "filter_parent": int(_filters_parents(model)),
        **{name: np.array(getattr(model, name), np.int32) for name in _FILTERS_INTEGER},
        **{name: np.array(getattr(model, name), np.float64) for name in _FILTERS_REAL},
        "exclude_signature": np.array(model.exclude_signature, np.int32),
        "excluded_geoms": np.array(np.concatenate([named, left_out]), np.int32),
    }


def _filters_parents(model: mujoco.MjModel) -> bool:
    return not model.opt.disableflags & int(mujoco.mjtDisableBit.mjDSBL_FILTERPARENT)


def _is_listed(model: mujoco.MjModel, pairs: Arrays, explicit: int) -> npt.NDArray[np.bool_]:
    """Return which pairs a model of many shapes lists: those that the file names, and those with the
    ground."""
    ground = _is_ground(model, pairs["pair_geom1"])
    return ground | (np.arange(len(ground)) < explicit)


def _is_ground(model: mujoco.MjModel, geoms: npt.NDArray) -> npt.NDArray[np.bool_]:
    """Return which shapes are planes or height fields, which never move."""
    return np.isin(model.geom_type[geoms], _GROUND)


def _ground_pairs(model: mujoco.MjModel) -> IntArray:
    """Return the pairs with the ground that pass MuJoCo's filters, except those that the file names."""
    is_ground = _is_ground(model, np.arange(model.ngeom))
    ground, others = np.flatnonzero(is_ground), np.flatnonzero(~is_ground)
    ends = np.stack(np.meshgrid(ground, others, indexing="ij"), axis=-1).reshape(-1, 2)
    types, affinities = model.geom_contype[ends], model.geom_conaffinity[ends]
    matched = (types & affinities[:, ::-1]).any(axis=1)
    bodies = np.sort(model.geom_bodyid[ends], axis=1)
    weld = model.body_weldid[bodies]
    parent = model.body_weldid[model.body_parentid[weld]]
    family = (weld != 0).all(axis=1) & (weld == parent[:, ::-1]).any(axis=1) & _filters_parents(model)
    excluded = np.isin((bodies[:, 0] << 16) + bodies[:, 1], model.exclude_signature)
    named = np.isin(_keys(model, ends[:, 0], ends[:, 1]), _keys(model, model.pair_geom1, model.pair_geom2))
    return ends[matched & (weld[:, 0] != weld[:, 1]) & ~family & ~excluded & ~named].astype(np.int64)


def _touching_pairs(model: mujoco.MjModel) -> IntArray:
    """Return the pairs of shapes that touch in the zero pose, without pairs with the ground and pairs that
    the file names."""
    ends = _ordered(model, _zero_pose(model).contact.geom.astype(np.int64).reshape(-1, 2))
    keys = _keys(model, ends[:, 0], ends[:, 1])
    fresh = ~np.isin(keys, _keys(model, model.pair_geom1, model.pair_geom2))
    chosen = fresh & ~_is_ground(model, ends[:, 0])
    return ends[chosen][np.unique(keys[chosen], return_index=True)[1]]


def _as_arrays(values: Mapping[str, npt.ArrayLike], *, soft: bool) -> Arrays:
    """Convert pairs to the arrays that the compiled engine reads; without `soft`, those of _SOFT are empty.

    geom1 and geom2 are the shapes, the one with the smaller type first. friction holds the sliding, torsional
    and rolling coefficients; a sliding coefficient of nan is computed from the shapes', as mu_from says
    (BOTH, FIRST or SECOND). condim is 1 without friction, 3 with sliding, 4 with torsion, 6 with torsion and
    rolling. Contacts act below margin, and are detected up to gap farther away. weight is the first shape's
    share in the pair's softness, or nan for a pair with its own solref, solreffriction, solimp and friction5.
    """
    arrays = {}
    for name, kind in _NUMBERS.items():
        chosen = values[name] if soft or name not in _SOFT else np.zeros(0)
        arrays[f"pair_{name}"] = np.ascontiguousarray(chosen, dtype=kind)
    for name, width in _ROWS.items():
        chosen = values[name] if soft or name not in _SOFT else np.zeros(0)
        arrays[f"pair_{name}"] = np.ascontiguousarray(chosen, dtype=np.float64).reshape(-1, width)
    return arrays


def _joined(first: Arrays, second: Arrays) -> Arrays:
    return {name: np.concatenate([first[name], second[name]]) for name in first}


def _explicit_pairs(model: mujoco.MjModel, label: str, soft: bool) -> Arrays:
    """Return the `<pair>` elements whose shapes can move relative to each other.

    With the hard contact model, friction that differs by direction is an error.
    """
    ends = np.column_stack([model.pair_geom1, model.pair_geom2]).astype(np.int64)
    weld = model.body_weldid[model.geom_bodyid[ends]]
    ground = _is_ground(model, ends).all(axis=1)
    chosen = np.flatnonzero((weld[:, 0] != weld[:, 1]) & ~ground)
    friction, condim = model.pair_friction[chosen], model.pair_dim[chosen]
    # sliding coefficients 0 and 1, rolling ones 3 and 4
    odd_sliding = (condim > 1) & (friction[:, 0] != friction[:, 1])
    odd = odd_sliding | ((condim == 6) & (friction[:, 3] != friction[:, 4]))
    if odd.any() and not soft:
        row = int(np.flatnonzero(odd)[0])
        one, other = friction[row, :2] if odd_sliding[row] else friction[row, 3:5]
        index = int(chosen[row])
        element = f"{element_name(model, 'pair', index)} of {_names(model, *ends[index])}"
        raise ModelError(
            f"{label}: {element}: friction that differs by direction is not supported; "
            f"give two equal numbers, not {one:g} and {other:g}"
        )
    ordered = _ordered(model, ends[chosen])
    names = ("margin", "gap", "solref", "solreffriction", "solimp")
    values = {
        **{name: getattr(model, f"pair_{name}")[chosen] for name in names},
        "geom1": ordered[:, 0],
        "geom2": ordered[:, 1],
        "friction": friction[:, [0, 2, 3]],
        "friction5": friction,
        "mu_from": np.full(len(chosen), BOTH),
        "condim": condim,
        "weight": np.full(len(chosen), np.nan),
    }
    return _as_arrays(values, soft=soft)


def _found_pairs(model: mujoco.MjModel, margin: float) -> IntArray | None:
    """Return the pairs that pass MuJoCo's filters, can come together and are not named by a `<pair>`.

    None stands for more pairs than are listed.
    """
    searched = {name: getattr(model, name) for name in _SEARCHED}
    searched["filter_parent"] = int(_filters_parents(model))
    searched["margin"] = margin + model.geom_margin + model.geom_gap
    try:
        found = native.contact_pairs(searched, MAX_LISTED)
    except ValueError:
        return None
    return _ordered(model, found.astype(np.int64))


def _combined(model: mujoco.MjModel, first: IntArray, second: IntArray, soft: bool) -> Arrays:
    """Combine the contact properties of two shapes, for all pairs."""
    priority = model.geom_priority
    mu_from = np.where(
        priority[first] == priority[second], BOTH, np.where(priority[first] > priority[second], FIRST, SECOND)
    )
    choices = [
        (np.maximum(values[first], values[second]), values[first], values[second])
        for values in (model.geom_condim, model.geom_friction[:, 1], model.geom_friction[:, 2])
    ]
    condim, torsional, rolling = (np.choose(mu_from, choice) for choice in choices)
    sliding = np.full(len(first), np.nan)
    values = {
        **{name: np.zeros((len(first) if soft else 0, width)) for name, width in _ROWS.items()},
        "geom1": first,
        "geom2": second,
        "friction": np.column_stack([sliding, torsional, rolling]),
        "mu_from": mu_from,
        "condim": condim,
        "margin": model.geom_margin[first] + model.geom_margin[second],
        "gap": model.geom_gap[first] + model.geom_gap[second],
        "weight": np.select(
            [mu_from == FIRST, mu_from == SECOND], [1.0, 0.0], _mixing_weights(model, first, second)
        ),
    }
    return _as_arrays(values, soft=soft)


def _mixing_weights(model: mujoco.MjModel, first: IntArray, second: IntArray) -> npt.NDArray[np.float64]:
    """Return the first shape's share in the pair's softness, from solmix, for shapes of equal priority."""
    one, other = model.geom_solmix[first], model.geom_solmix[second]
    one_mixes, other_mixes = one >= mujoco.mjMINVAL, other >= mujoco.mjMINVAL
    by_size = one / np.where(one_mixes & other_mixes, one + other, 1.0)
    alone = np.where(one_mixes == other_mixes, 0.5, np.where(one_mixes, 1.0, 0.0))
    return np.where(one_mixes & other_mixes, by_size, alone)


def _ordered(model: mujoco.MjModel, ends: IntArray) -> IntArray:
    """Put the shape with the smaller type first; order equal types by index."""
    ends = np.sort(ends, axis=1)
    types = model.geom_type[ends]
    return np.where((types[:, 0] <= types[:, 1])[:, None], ends, ends[:, ::-1])


def _solver_order(model: mujoco.MjModel, pairs: Arrays) -> IntArray:
    """Return the order in which the solver visits the pairs: contacts with the fixed world come last.

    A sweep then ends with the contacts that carry the most load. With this order, a box of 1000 kg on one of
    1 kg rests after 50 sweeps; in the reverse order it sinks.
    """
    fixed = static_bodies(model)[model.geom_bodyid]
    with_world = fixed[pairs["pair_geom1"]] | fixed[pairs["pair_geom2"]]
    return np.lexsort((pairs["pair_geom2"], pairs["pair_geom1"], with_world))


def _overlap(model: mujoco.MjModel, pairs: Arrays) -> npt.NDArray[np.float64]:
    """Return the penetration depth of each pair in the pose qpos0; negative for pairs that are apart."""
    data = _zero_pose(model)
    keys = _keys(model, pairs["pair_geom1"], pairs["pair_geom2"])
    found = _keys(model, data.contact.geom[:, 0], data.contact.geom[:, 1])
    depth = np.full(len(keys), -np.inf)
    order = np.argsort(keys)
    place = np.minimum(np.searchsorted(keys, found, sorter=order), max(len(keys) - 1, 0))
    known = keys[order[place]] == found if len(keys) else np.zeros(len(found), dtype=bool)
    np.maximum.at(depth, order[place[known]], -data.contact.dist[known])
    return depth


def _zero_pose(model: mujoco.MjModel) -> mujoco.MjData:
    """Return MuJoCo's contacts in the pose qpos0."""
    data = mujoco.MjData(model)
    mujoco.mj_kinematics(model, data)
    mujoco.mj_comPos(model, data)
    mujoco.mj_collision(model, data)
    return data


def _keys(model: mujoco.MjModel, one: npt.NDArray, other: npt.NDArray) -> IntArray:
    """Return one number per unordered pair of shapes."""
    low, high = np.minimum(one, other).astype(np.int64), np.maximum(one, other)
    return low * model.ngeom + high


def _check_hulls(model: mujoco.MjModel, label: str, pairs: Arrays, kept: npt.NDArray[np.bool_]) -> None:
    """Raise an error for a colliding mesh without a convex hull."""
    for end in ("pair_geom1", "pair_geom2"):
        geoms = pairs[end][kept]
        meshes = geoms[model.geom_type[geoms] == _MESH]
        bare = meshes[model.mesh_graphadr[model.geom_dataid[meshes]] < 0] if len(meshes) else meshes
        if bare.size:
            name = element_name(model, "geom", int(bare[0]))
            raise ModelError(f"{label}: {name}: expected a mesh with a convex hull; give the mesh a volume")


def _left_out_note(model: mujoco.MjModel, pairs: Arrays, chosen: IntArray) -> list[str]:
    """Return a note that names the first left out pairs, or an empty list."""
    if not len(chosen):
        return []
    what = "1 pair that overlaps" if len(chosen) == 1 else f"{len(chosen)} pairs that overlap"
    verb = "is" if len(chosen) == 1 else "are"
    named = _listed([_pair_name(model, pairs, int(index)) for index in chosen[:_NAMED]], len(chosen))
    return [f"{what} in the zero pose {verb} not watched for contact: {named}"]


def _start_note(
    model: mujoco.MjModel, pairs: Arrays, chosen: IntArray, overlap: npt.NDArray[np.float64]
) -> list[str]:
    """Return a note that names the pairs with the deepest overlap at the start, or an empty list."""
    if not len(chosen):
        return []
    deepest = chosen[np.argsort(-overlap[chosen], kind="stable")][:_NAMED]
    what = "1 pair of shapes overlaps" if len(chosen) == 1 else f"{len(chosen)} pairs of shapes overlap"
    named = _listed(
        [f"{_pair_name(model, pairs, int(index))} by {overlap[index]:.3g} m" for index in deepest],
        len(chosen),
    )
    return [f"{what} in the zero pose, and the first steps push them apart: {named}"]


def _listed(named: list[str], count: int) -> str:
    more = [f"and {count - len(named)} more"] if count > len(named) else []
    return "; ".join([*named, *more])


def _pair_name(model: mujoco.MjModel, pairs: Arrays, index: int) -> str:
    return _names(model, int(pairs["pair_geom1"][index]), int(pairs["pair_geom2"][index]))


def _names(model: mujoco.MjModel, one: int, other: int) -> str:
    return f"{element_name(model, 'geom', int(one))} and {element_name(model, 'geom', int(other))}"

"""A note about hull faces with more corners than the engine's contact polygons."""

from __future__ import annotations

import mujoco
import numpy as np

from ._names import element_name
from ._native_arrays import Arrays
from .native import polygon_corners

_PLANE = 0  # MuJoCo's number
_NAMED = 3  # of the shapes, how many the note names


def notes_on_faces(model: mujoco.MjModel, arrays: Arrays) -> list[str]:
    """Return a note that names shapes with too large faces, or an empty list.

    Only shapes that can touch a shape other than a plane count: against a plane, the engine uses all
        vertices.

    Args:
        model: the compiled model.
        arrays: its hulls and its pairs of shapes, as the compiled engine reads them.
    """
    pairs = np.column_stack([arrays["pair_geom1"], arrays["pair_geom2"]])
    meeting = pairs[(model.geom_type[pairs] != _PLANE).all(axis=1)]
    named = []
    unlisted = np.flatnonzero((arrays["geom_contype"] | arrays["geom_conaffinity"]) != 0)
    for geom in sorted(
        {*meeting.ravel().tolist(), *unlisted.tolist()}
    ):  # np.unique would import numpy.ma, 12 ms
        first, count = arrays["hull_polyadr"][geom], arrays["hull_polynum"][geom]
        most = arrays["hull_polyvertnum"][first : first + count].max(initial=0)
        if most > polygon_corners:
            named.append(f"{element_name(model, 'geom', geom)} ({most})")
    if not named:
        return []
    more = [f"and {len(named) - _NAMED} more"] if len(named) > _NAMED else []
    return [
        f"faces of more than {polygon_corners} corners bound areas of contact with other shapes by the "
        f"{polygon_corners} that span them best: {', '.join([*named[:_NAMED], *more])}"
    ]

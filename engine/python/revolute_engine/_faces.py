"""Notes on faces of hulls that have more corners than the engine's contact areas."""

from __future__ import annotations

import mujoco
import numpy as np

from ._arrays import Arrays
from ._names import element_name
from ._native import polygon_corners

_PLANE = 0  # MuJoCo's number


def notes_on_faces(model: mujoco.MjModel, arrays: Arrays) -> list[str]:
    """Return one note for each mesh shape with such a face that may meet a shape other than a plane.

    Against a plane every vertex of a hull counts.

    Args:
        model: the compiled model.
        arrays: its hulls and its pairs of shapes, as the compiled engine reads them.
    """
    notes = []
    pairs = np.column_stack([arrays["pair_geom1"], arrays["pair_geom2"]])
    meeting = pairs[(model.geom_type[pairs] != _PLANE).all(axis=1)]
    for geom in np.unique(meeting):
        first, count = arrays["hull_polyadr"][geom], arrays["hull_polynum"][geom]
        most = arrays["hull_polyvertnum"][first : first + count].max(initial=0)
        if most > polygon_corners:
            notes.append(
                f"{element_name(model, 'geom', int(geom))}: a face of its hull has {most} corners; areas of "
                f"contact with other shapes are bounded by the {polygon_corners} that span it best"
            )
    return notes

"""Bodies that no joint moves."""

from __future__ import annotations

import mujoco
import numpy as np
import numpy.typing as npt


def static_bodies(model: mujoco.MjModel) -> npt.NDArray[np.bool_]:
    """Return which bodies no joint moves [nbody]: those fixed in the world or to a mocap body."""
    weld = model.body_weldid
    return (weld == 0) | (model.body_mocapid[weld] >= 0)

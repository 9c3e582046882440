"""Arrays of the contact model "mujoco": softness of constraints, integrator, friction cone.

With the contact model "hard", the arrays are empty.
"""

from __future__ import annotations

import mujoco
import numpy as np

from revolute.contract.load_options import LoadOptions

from ._arrays import is_disabled
from ._equalities import active_equalities
from ._native_arrays import Arrays, real
from .parameters import PARAMETERS

INTEGRATORS = {
    int(mujoco.mjtIntegrator.mjINT_EULER): 0,
    int(mujoco.mjtIntegrator.mjINT_IMPLICITFAST): 1,
    int(mujoco.mjtIntegrator.mjINT_IMPLICIT): 2,
    int(mujoco.mjtIntegrator.mjINT_RK4): 3,
}
"""The compiled engine's number of each of MuJoCo's integrators."""

_COPIED = (
    *("body_invweight0", "dof_invweight0", "jnt_solref", "jnt_solimp", "jnt_margin"),
    *("dof_solref", "dof_solimp"),
    *(name for name, each in PARAMETERS.items() if each.copied and each.contact_model == "mujoco"),
)


def soft_arrays(model: mujoco.MjModel, options: LoadOptions) -> Arrays:
    """Return the arrays by the compiled engine's names."""
    soft = options.contact_model == "mujoco"
    arrays: Arrays = {name: _real(getattr(model, name), soft) for name in _COPIED}
    held = active_equalities(model)
    arrays["eq_solref"] = _real(model.eq_solref[held], soft)
    arrays["eq_solimp"] = _real(model.eq_solimp[held], soft)
    arrays["cone"] = int(model.opt.cone == mujoco.mjtCone.mjCONE_ELLIPTIC)
    arrays["impratio"] = float(model.opt.impratio)
    arrays["refsafe"] = int(not is_disabled(model, "REFSAFE"))
    arrays["eulerdamp"] = int(not is_disabled(model, "EULERDAMP"))
    if soft:
        arrays["integrator"] = INTEGRATORS[int(model.opt.integrator)]
    return arrays


def _real(values: np.ndarray, soft: bool) -> np.ndarray:
    """Return a copy of the values, or an empty array unless `soft`."""
    return real(values if soft else [])

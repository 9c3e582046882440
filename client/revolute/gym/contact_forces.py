"""Contact forces on the bodies of a batch of environments.

A contact at p exerts the force f and the torque t, in world axes, on its second shape, and their opposite on
the first. The wrench on a body is the sum over its contacts of

    torque (p - c) x f + t,   force f                                          (1)

with c the mass centre of everything in the model. The world's row is zero. For a model of one tree this is
MuJoCo's cfrc_ext without applied forces.
"""

from __future__ import annotations

import numpy as np

from ..contract.arrays import Float64Array
from ..model import ModelHandle
from ..session import Session

_CENTRE = "subtree_com:world"


def contact_forces(session: Session, model: ModelHandle, ctrl: Float64Array) -> Float64Array:
    """Return the wrenches (1) of the contacts in a session's state, [batch, nbody, 6], torque first.

    Args:
        session: the session.
        model: its model.
        ctrl: controls, [batch, nu], which the forces depend on.
    """
    wrenches = np.zeros((session.batch, model.nbody, 6))
    found = session.contacts(ctrl)
    if not len(found):
        return wrenches
    # the rows of a frame are its axes
    force = np.einsum("nij,ni->nj", found.frame, found.force[:, :3])
    torque = np.einsum("nij,ni->nj", found.frame, found.force[:, 3:])
    centre = session.kinematics(quantities=[_CENTRE])[_CENTRE].reshape(session.batch, 3)
    torque += np.cross(found.position - centre[found.environment], force)
    wrench = np.concatenate([torque, force], axis=1)
    body_of = dict(zip(model.geom_names, model.geom_bodyid, strict=True))
    bodies = np.array([[body_of[geom] for geom in pair] for pair in found.geoms])
    np.add.at(wrenches, (found.environment, bodies[:, 1]), wrench)
    np.add.at(wrenches, (found.environment, bodies[:, 0]), -wrench)
    wrenches[:, 0] = 0.0
    return wrenches

"""Configurations along tangents, as MuJoCo moves them: a quaternion is turned, not shifted."""

import mujoco
import numpy as np

from revolute_engine import Model


def moved(model: Model, qpos: np.ndarray, tangent: np.ndarray, by: float = 1.0) -> np.ndarray:
    """Return a configuration moved along a tangent [nv]."""
    result = np.array(qpos)
    mujoco.mj_integratePos(model.mujoco_model, result, tangent, by)
    return result


def difference(model: Model, qpos: np.ndarray, other: np.ndarray) -> np.ndarray:
    """Return the tangent [..., nv] from one configuration to another."""
    tangents = np.zeros((*np.shape(qpos)[:-1], model.nv))
    for index in np.ndindex(tangents.shape[:-1]):
        mujoco.mj_differentiatePos(model.mujoco_model, tangents[index], 1.0, qpos[index], other[index])
    return tangents


def ambient(model: Model, qpos: np.ndarray, tangent: np.ndarray) -> np.ndarray:
    """Return the rate of qpos along a tangent, of shape [..., nq]."""
    rates = np.zeros(np.shape(qpos))
    kinds, addresses, dofs = (model.arrays[name] for name in ("jnt_type", "jnt_qposadr", "jnt_dofadr"))
    for kind, q, v in zip(kinds.tolist(), addresses.tolist(), dofs.tolist(), strict=True):
        linear = {0: 3, 1: 0}.get(kind, 1)
        rates[..., q : q + linear] = tangent[..., v : v + linear]
        if kind <= 1:
            w, x, y, z = np.moveaxis(qpos[..., q + linear : q + linear + 4], -1, 0)
            a, b, c = np.moveaxis(tangent[..., v + linear : v + linear + 3], -1, 0)
            rate = [
                -x * a - y * b - z * c,
                w * a + y * c - z * b,
                w * b + z * a - x * c,
                w * c + x * b - y * a,
            ]
            rates[..., q + linear : q + linear + 4] = 0.5 * np.stack(rate, axis=-1)
    return rates

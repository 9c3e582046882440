"""Derivatives of single entries of the final state, through the public gradient."""

from collections.abc import Iterable

import numpy as np
import numpy.typing as npt

from revolute_engine import Engine, Gradient, Model, Rollout


def final_gradient(
    engine: Engine,
    model: Model,
    rollout: Rollout,
    *,
    qpos: int | None = None,
    qvel: int | None = None,
    wrt: Iterable[str] = ("qpos", "qvel", "ctrl"),
) -> Gradient:
    """Return the gradient of one entry of the final qpos or qvel of a single environment."""
    bars = {"qpos": np.zeros(rollout.qpos.shape), "qvel": np.zeros(rollout.qvel.shape)}
    if qpos is not None:
        bars["qpos"][-1, qpos] = 1
    if qvel is not None:
        bars["qvel"][-1, qvel] = 1
    return engine.backward(model, rollout, bars["qpos"], bars["qvel"], wrt=wrt)


def constraint_force(
    model: Model, unconstrained: Model, qpos: npt.ArrayLike, qvel: npt.ArrayLike, ctrl: npt.ArrayLike
) -> npt.NDArray[np.float64]:
    """Return M (v+ - v+ without constraints) / h of one step: the generalized force of the constraints.

    M is diagonal in the models that this is used for: the masses and moments of free or sliding bodies.
    """
    engine = Engine(threads=1)
    controls = np.asarray(ctrl, dtype=float)[None]
    after, free = (engine.rollout(either, qpos, qvel, controls).qvel[1] for either in (model, unconstrained))
    return (after - free) / model.timestep

"""Decides whether backward and forward derivatives differ by rounding, or because one of them is wrong.

Both sum the same terms in opposite orders, and their rounding errors grow with the sensitivity of the motion.
To measure the growth, the forward derivative is repeated from starts perturbed by rounding (1). If the
difference is within their scatter, single steps decide. With random weights w of a step's end and the
trajectory's tangents t at its start,

    (backward of w) . t  =  w . (forward of t)                                                 (2)

must hold up to rounding, which is measured in the same way if the sizes of the terms do not explain it: both
sides must scatter. If only one does, it is wrong, unless it is right up to a small share of the terms.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from revolute.contract.arrays import Float64Array
from revolute.contract.controllers import Control
from revolute.contract.tangents import pull, rate

from .._results import OK
from ..parameters import PARAMETERS
from .single_steps import ForwardDerivative
from .start import natural_speed, nudged

Steps = npt.NDArray[np.int64]

DOT_TOLERANCE = 1e-8
"""Largest distance of forward and backward derivative, relative to the sum of their terms."""

NUDGES = 8
"""Number of states perturbed by rounding that are tried."""

_SCATTER = 100
"""Largest distance of two derivatives that counts as rounding, relative to the scatter."""

_SMALL = 1e-5
"""Largest distance between two derivatives if only one scatters, relative to the sum of their terms."""

_MOST_STEPS = 400
"""Largest number of steps to check; more are sampled evenly."""


def explained_by_rounding(apart: float, values: Float64Array) -> bool:
    """Return whether a distance is within the scatter due to rounding (1).

    Args:
        apart: the distance.
        values: the derivative from the start and from perturbed starts; NaN for diverged trajectories.
    """
    return not np.isfinite(values).all() or apart <= _SCATTER * float(values.max() - values.min())


def opposed_steps(derivative: ForwardDerivative, random: np.random.Generator) -> tuple[int, ...]:
    """Return the steps at which backward and forward derivative differ by more than rounding (2).

    Args:
        derivative: the forward derivative of the trajectory.
        random: random number generator for the weights.
    """
    model = derivative.perturbed.model
    steps = derivative.rollout.steps
    times = np.unique(np.linspace(0, steps - 1, min(steps, _MOST_STEPS)).astype(np.int64))
    weights = random.normal(size=(len(times), model.nq)), random.normal(size=(len(times), model.nqvel))
    products = _products(derivative, times, weights, None)
    apart = np.abs(products.backward - products.forward)
    doubtful = np.flatnonzero(~(apart <= DOT_TOLERANCE * products.terms))
    found = []
    for k in doubtful.tolist():
        one = np.full(NUDGES, times[k])
        same = tuple(np.repeat(weight[k][None], NUDGES, axis=0) for weight in weights)
        around = _products(derivative, one, (same[0], same[1]), random)
        forward = np.concatenate([products.forward[k : k + 1], around.forward])
        backward = np.concatenate([products.backward[k : k + 1], around.backward])
        explained = [explained_by_rounding(float(apart[k]), values) for values in (forward, backward)]
        enough = any if apart[k] <= _SMALL * products.terms[k] else all
        if not enough(explained):
            found.append(int(times[k]))
    return tuple(found)


class _Products:
    """Both sides of (2) for some steps, and the sizes of their terms.

    A step adds a change to its start. What it cancels (a jammed joint stops) counts as a term too.
    """

    def __init__(self, steps: int) -> None:
        self.backward, self.forward = np.zeros(steps), np.zeros(steps)
        self._backward_terms, self._forward_terms = np.zeros(steps), np.zeros(steps)
        self._start_terms = np.zeros(steps)

    def add_backward(self, gradient: Float64Array, tangent: Float64Array) -> None:
        products = (gradient * tangent).reshape(len(self.backward), -1)
        self.backward += products.sum(axis=1)
        self._backward_terms += np.abs(products).sum(axis=1)

    def add_forward(self, weights: Float64Array, tangent: Float64Array) -> None:
        self.forward += (weights * tangent).sum(axis=1)
        self._forward_terms += np.abs(weights * tangent).sum(axis=1)

    def add_start(self, weights: Float64Array, tangent: Float64Array) -> None:
        self._start_terms += np.abs(weights * tangent).sum(axis=1)

    @property
    def terms(self) -> Float64Array:
        return np.maximum(np.maximum(self._backward_terms, self._forward_terms), self._start_terms)


def _products(
    derivative: ForwardDerivative,
    times: Steps,
    weights: tuple[Float64Array, Float64Array],
    nudges: np.random.Generator | None,
) -> _Products:
    """Differentiate single steps backward and forward, from the trajectory's states or perturbed ones."""
    perturbed, rollout, jvp = derivative.perturbed, derivative.rollout, derivative.jvp
    engine, model, name, cancel = perturbed.engine, perturbed.model, perturbed.name, perturbed.cancel
    qpos, qvel = rollout.qpos[times], rollout.qvel[times]
    if nudges is not None:
        qpos, qvel = nudged(model, qpos, qvel, natural_speed(model, rollout.qvel, perturbed.start), nudges)
    params: dict[str, Any] = dict(perturbed.start.params)
    tangents: dict[str, Any] = {"qpos_tan": jvp.qpos[times], "qvel_tan": jvp.qvel[times]}
    by = ["qpos", "qvel"]
    ctrl, ctrl_tan = derivative.controls(times)
    if ctrl_tan.any():
        tangents["ctrl_tan"] = ctrl_tan[:, None]
        by.append("ctrl")
    if name in PARAMETERS:
        direction = np.broadcast_to(derivative.direction, (len(times), *derivative.direction.shape))
        params[name] = np.broadcast_to(perturbed.value, direction.shape)
        tangents["params_tan"] = {name: direction}
        by.append(name)
    inputs = derivative.inputs(times)
    control = Control.of(**{each: value[:, None] for each, (value, _) in inputs.items()})
    if inputs:
        tangents["control_tan"] = {each: moves[:, None] for each, (_, moves) in inputs.items()}
        by += inputs
    step = engine.rollout(model, qpos, qvel, ctrl[:, None], params=params, control=control, cancel=cancel)
    products = _Products(len(times))
    if (np.atleast_1d(step.status) != OK).any():
        products.forward[:] = products.backward[:] = np.nan
        return products
    bars = [np.stack([np.zeros_like(weight), weight], axis=1) for weight in weights]
    gradient = engine.backward(model, step, *bars, wrt=by, cancel=cancel)
    pushed = engine.jvp(model, step, **tangents, cancel=cancel)
    products.add_backward(pull(model, step.qpos[:, 0], gradient["qpos"]), jvp.qpos[times])
    products.add_backward(gradient["qvel"], jvp.qvel[times])
    if ctrl_tan.any():
        products.add_backward(gradient["ctrl"][:, 0], ctrl_tan)
    for each, (_, moves) in inputs.items():
        products.add_backward(gradient[each][:, 0], moves)
    if name in PARAMETERS:
        products.add_backward(gradient[name], direction)
    products.add_forward(weights[0], rate(model, step.qpos[:, 1], pushed.qpos[:, 1]))
    products.add_forward(weights[1], pushed.qvel[:, 1])
    products.add_start(weights[0], rate(model, qpos, jvp.qpos[times]))
    products.add_start(weights[1], jvp.qvel[times])
    return products

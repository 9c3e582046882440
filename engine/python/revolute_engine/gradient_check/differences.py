"""Directional derivatives by finite differences with many step sizes, and the plateau among them.

Large steps have truncation errors and cross switching points; small steps have rounding errors. In between is
a plateau, a range of step sizes whose differences agree. One batched rollout computes all step sizes and
directions.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from revolute.contract.arrays import Float64Array
from revolute.contract.tangents import move

from .. import native
from .._controllers import AXES_OF_OWN
from .._cotangents import INPUTS
from .._engine import Engine
from .._model import Model
from ..parameters import PARAMETERS
from .start import Trajectory, natural_speed

STEPS = 10.0 ** -np.arange(2.0, 9.01)
"""Step sizes, relative to the scale of the input."""

FINE_STEPS = 10.0 ** -np.arange(2.0, 9.51, 0.5)
"""Additional step sizes for directions whose differences do not agree with the derivative."""

_WINDOW = 3
"""Number of neighbouring step sizes that must agree on a plateau."""

PART_NUMBERS = 8_000_000
"""Largest total size, in numbers, of the trajectories that one batch computes."""

_NOISY = 3
"""Number of smallest step sizes, whose scatter is mostly rounding."""


@dataclass(frozen=True)
class Cotangents:
    """Random weights of states at a few times, one set per direction.

    Attributes:
        times: indices of states.
        qpos_bar: [directions, times, nq].
        qvel_bar: [directions, times, nv].
    """

    times: npt.NDArray[np.int64]
    qpos_bar: Float64Array
    qvel_bar: Float64Array

    def spread(self, steps: int) -> tuple[Float64Array, Float64Array]:
        """Return the weights for all steps + 1 states, [directions, steps + 1, n]."""
        spread = []
        for bar in (self.qpos_bar, self.qvel_bar):
            whole = np.zeros((len(bar), steps + 1, bar.shape[-1]))
            whole[:, self.times] = bar
            spread.append(whole)
        return spread[0], spread[1]


@dataclass(frozen=True)
class Differences:
    """Derivatives along each direction [directions, step sizes]; NaN where a trajectory diverged.

    Attributes:
        central: central differences.
        forward: forward differences.
        backward: backward differences.
        rounding: error of a derivative due to rounding of the states, per step size.
    """

    central: Float64Array
    forward: Float64Array
    backward: Float64Array
    rounding: Float64Array


@dataclass(frozen=True)
class Plateau:
    """The window of neighbouring step sizes whose differences agree best.

    Attributes:
        value: the derivative in the window.
        spread: largest distance of the values in the window.
        index: index of the window's middle among the step sizes.
    """

    value: float
    spread: float
    index: int


def tangent_of(name: str, direction: Float64Array) -> dict[str, Any]:
    """Return the tangent of an input as an argument of `Engine.jvp`."""
    if name in INPUTS:
        return {f"{name}_tan": direction}
    return {"params_tan" if name in PARAMETERS else "control_tan": {name: direction}}


@dataclass(frozen=True)
class PerturbedInput:
    """An input of a trajectory, which is perturbed to differentiate by it.

    Attributes:
        engine: the engine.
        model: the model.
        start: the trajectory.
        name: the input.
        value: its value.
        units: its scale, the change of each entry for a step of 1.
        cancel: token that stops the calls.
    """

    engine: Engine
    model: Model
    start: Trajectory
    name: str
    value: Float64Array
    units: Float64Array
    cancel: native.CancelToken | None

    def differences(
        self, directions: Float64Array, cotangents: Cotangents, steps: Float64Array = STEPS
    ) -> Differences:
        """Differentiate weighted sums of states along directions.

        Args:
            directions: [directions, ...], tangents of the input, in its units.
            cotangents: weights of the states, one set per direction or one for all directions.
            steps: step sizes.
        """
        model = self.model
        numbers = self.start.steps * (model.nq + model.nqvel + model.nu) * (2 * len(steps) + 1)
        count = max(1, PART_NUMBERS // max(numbers, 1))
        parts = [
            self._part_differences(
                directions[first : first + count],
                Cotangents(
                    cotangents.times,
                    _of_part(cotangents.qpos_bar, len(directions), slice(first, first + count)),
                    _of_part(cotangents.qvel_bar, len(directions), slice(first, first + count)),
                ),
                steps,
            )
            for first in range(0, len(directions), count)
        ]
        return Differences(
            *(
                np.concatenate([getattr(part, field) for part in parts])
                for field in Differences.__annotations__
            )
        )

    def _part_differences(
        self, directions: Float64Array, cotangents: Cotangents, steps: Float64Array
    ) -> Differences:
        """Differentiate along some of the directions in one batched rollout."""
        count, sizes = len(directions), len(steps)
        signs = np.array([1.0, -1.0])
        factors = (signs[:, None] * steps).reshape(1, 2 * sizes, *[1] * (directions.ndim - 1))
        tangents = (factors * directions[:, None]).reshape(-1, *directions.shape[1:])
        tangents = np.concatenate([np.zeros((1, *directions.shape[1:])), tangents])
        qpos, qvel = self._moved_states(tangents)
        speed = natural_speed(self.model, qvel[0], self.start)
        derivative = [np.zeros((count, 2, sizes)) for _ in range(2)]
        rounding = np.zeros(count)
        for array, bars, least in (
            (qpos, cotangents.qpos_bar, self.model.timestep * speed),
            (qvel, cotangents.qvel_bar, speed),
        ):
            states = array[:, cotangents.times]
            base, ends = states[0], states[1:].reshape(count, 2, sizes, *states.shape[1:])
            # subtract the states before weighting them, so that large sums do not cancel
            derivative[0] += np.einsum("dsitn,dtn->dsi", ends - base, bars)
            centred = ends[:, 0] - ends[:, 1]
            derivative[1][:, 0] += np.einsum("ditn,dtn->di", centred, bars)
            # a state at rest can be the sum of motions that cancel
            rounding += np.finfo(float).eps * (np.abs(bars) * np.maximum(np.abs(base), least)).sum(
                axis=(1, 2)
            )
        return Differences(
            central=derivative[1][:, 0] / (2 * steps),
            forward=derivative[0][:, 0] / steps,
            backward=-derivative[0][:, 1] / steps,
            rounding=rounding[:, None] / steps,
        )

    def _moved_states(self, tangents: Float64Array) -> tuple[Float64Array, Float64Array]:
        """Return all states of the trajectories along tangents [batch, ...] of the input."""
        model, start = self.model, self.start
        if self.name != "policy.weights":
            rollout = self.engine.rollout(model, **self._moved_inputs(tangents), cancel=self.cancel)
            return rollout.qpos, rollout.qvel
        # the environments of a batch share the weights
        found = [
            self.engine.rollout(
                model,
                start.qpos,
                start.qvel,
                start.ctrl,
                params=start.params,
                control=start.control.with_array(self.name, self.value + tangent),
                cancel=self.cancel,
            )
            for tangent in tangents
        ]
        return np.stack([each.qpos for each in found]), np.stack([each.qvel for each in found])

    def _moved_inputs(self, tangents: Float64Array) -> dict[str, Any]:
        """Return the arguments of a batch of rollouts, one per tangent [batch, ...]."""
        name, value, start = self.name, self.value, self.start
        ctrl = np.broadcast_to(start.ctrl, (len(tangents), *start.ctrl.shape))
        inputs: dict[str, Any] = {"qpos": start.qpos, "qvel": start.qvel, "ctrl": ctrl}
        params, control = dict(start.params), start.control
        if name == "qpos":
            inputs["qpos"] = move(self.model, start.qpos, tangents)
        elif name in PARAMETERS:
            params[name] = value + tangents
        elif name in INPUTS:
            inputs[name] = value + tangents
        else:
            moved = move(self.model, value, tangents) if name == "feedback.qpos" else value + tangents
            # one that is the same at all times gets an axis of length 1 for them
            shared = value.ndim == AXES_OF_OWN[name]
            control = control.with_array(name, moved[:, None] if shared else moved)
        return {**inputs, "params": params, "control": control}


def _of_part(bars: Float64Array, count: int, part: slice) -> Float64Array:
    """Return the weights of some directions; a single set applies to all."""
    return np.broadcast_to(bars, (count, *bars.shape[1:]))[part]


def plateau(values: Float64Array, steps: Float64Array = STEPS) -> Plateau | None:
    """Find the plateau; None if all values are NaN.

    The distance to neighbours alone could choose step sizes at which rounding errors agree by chance. So the
    rounding error at the smallest steps, scaled by 1 / step, is added at all other steps.
    """
    noise = rounding_noise(values[:, None], steps)
    best, least = None, np.inf
    for first in range(len(values) - _WINDOW + 1):
        window = values[first : first + _WINDOW]
        middle = first + _WINDOW // 2
        if not np.isfinite(window).all():
            continue
        value, spread = float(np.median(window)), float(window.max() - window.min())
        uncertainty = max(spread, float(noise) / steps[middle]) / max(abs(value), 1e-300)
        if uncertainty < least:
            best, least = Plateau(value, spread, middle), uncertainty
    return best


def rounding_noise(values: Float64Array, steps: Float64Array) -> Float64Array:
    """Estimate the rounding error of differences [sizes, ..., n], scaled to step 1, from the smallest
    steps."""
    last = values[-_NOISY - 1 :]
    scatter = np.abs(np.diff(last, axis=0)).max(axis=-1)
    sizes = steps[-_NOISY:].reshape(-1, *[1] * (scatter.ndim - 1))
    with np.errstate(invalid="ignore"):
        noise = np.median(scatter * sizes, axis=0)
    return np.where(np.isfinite(noise), noise, 0.0)


def relative(one: float, other: float) -> float:
    """Return the distance of two numbers relative to the larger one."""
    largest = max(abs(one), abs(other))
    return abs(one - other) / largest if largest > 0 else 0.0

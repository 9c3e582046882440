"""The forward derivative of a trajectory, one step at a time.

Over a long or unstable trajectory differences lose what they measure, and where a contact or a limit
switches the derivative has two sides. Step by step there is no such loss: the tangent after a step must be
the derivative of that step along the tangent before it, whatever happened earlier. All steps and step sizes
are one batched rollout of one step each; steps that do not agree are looked at again with finer sizes.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from .. import _native
from .._engine import Engine
from .._model import Model
from .._parameters import PARAMETERS
from .._results import Jvp, Rollout
from .._tangents import difference, move
from .differences import rounding_noise
from .start import Trajectory

Float64Array = npt.NDArray[np.float64]
Steps = npt.NDArray[np.int64]
Mask = npt.NDArray[np.bool_]

_COARSE = 10.0 ** -np.arange(3.0, 9.01, 1.0)
_FINE = 10.0 ** -np.arange(4.0, 10.01, 0.25)
_MOST_STEPS = 2000
"""More steps than these are sampled evenly."""

_ROUNDING = 10 * np.finfo(float).eps
"""Rounding of a state relative to it; a division by the step size makes it that of a derivative."""

_SETTLED = 10
"""Differences that agree among themselves to so many times the tolerance tell the derivative."""

_UNCERTAINTY = 3
"""A derivative may be as far from the plateau as so many times the plateau's own spread."""


@dataclass(frozen=True)
class StepFindings:
    """What single steps say about a forward derivative; all others are right.

    Attributes:
        checked: number of steps compared.
        wrong: steps whose derivative is another one.
        switching: steps whose derivative has two sides, the forward derivative being one of them.
        unresolved: steps so unstable in themselves that no differences agree with each other.
    """

    checked: int
    wrong: tuple[int, ...] = ()
    switching: tuple[int, ...] = ()
    unresolved: tuple[int, ...] = ()


@dataclass(frozen=True)
class ForwardDerivative:
    """A trajectory and its forward derivative along one direction of one input.

    Attributes:
        name: the input.
        start: the trajectory.
        value: the input's value.
        direction: its tangent, in its units.
        scale: its scale.
        rollout: the trajectory simulated.
        jvp: the derivative.
    """

    name: str
    start: Trajectory
    value: Float64Array
    direction: Float64Array
    scale: Float64Array
    rollout: Rollout
    jvp: Jvp

    def lengths(self) -> Float64Array:
        """Return the length of the direction of each step: of state, controls and parameters."""
        relative = np.divide(
            self.direction, self.scale, out=np.zeros(self.direction.shape), where=self.scale > 0
        )
        lengths = np.maximum(np.abs(self.jvp.qpos[:-1]).max(axis=1), np.abs(self.jvp.qvel[:-1]).max(axis=1))
        if self.name == "ctrl":
            return np.maximum(lengths, np.abs(relative).max(axis=1))
        return np.maximum(lengths, np.abs(relative).max()) if self.name in PARAMETERS else lengths


def check_steps(
    engine: Engine,
    model: Model,
    derivative: ForwardDerivative,
    tolerance: float,
    cancel: _native.CancelToken | None = None,
) -> StepFindings:
    """Compare every step of a forward derivative with differences of that step.

    Args:
        engine: the engine.
        model: the model.
        derivative: what to check.
        tolerance: largest relative error of a step.
        cancel: token whose `cancel()` stops the call.
    """
    steps = derivative.rollout.steps
    times = np.unique(np.linspace(0, steps - 1, min(steps, _MOST_STEPS)).astype(np.int64))
    lengths = derivative.lengths()
    times = times[(lengths[times] > 0) & np.isfinite(lengths[times])]
    if not len(times):
        return StepFindings(0)
    coarse = _Comparison(engine, model, derivative, times, lengths[times], _COARSE, tolerance, cancel)
    doubtful = ~coarse.right
    if not doubtful.any():
        return StepFindings(len(times))
    again = times[doubtful]
    fine = _Comparison(engine, model, derivative, again, lengths[again], _FINE, tolerance, cancel)
    switching = ~fine.right & (fine.two_sided | coarse.two_sided[doubtful])
    wrong = ~fine.right & ~switching & fine.settled
    unresolved = ~fine.right & ~switching & ~wrong
    return StepFindings(
        len(times),
        *(tuple(again[found].tolist()) for found in (wrong, switching, unresolved)),
    )


class _Comparison:
    """Differences of single steps beside their derivative.

    Attributes:
        right: steps where differences from both sides agree with the derivative.
        two_sided: steps where the derivative is that of one side, or the sides differ.
        settled: steps where differences from both sides agree with each other.
    """

    def __init__(
        self,
        engine: Engine,
        model: Model,
        derivative: ForwardDerivative,
        times: Steps,
        lengths: Float64Array,
        sizes: Float64Array,
        tolerance: float,
        cancel: _native.CancelToken | None,
    ) -> None:
        self._sizes = sizes
        self._tolerance = tolerance
        rollout, jvp = derivative.rollout, derivative.jvp
        next_qpos, next_qvel = rollout.qpos[times + 1], rollout.qvel[times + 1]
        after = np.concatenate([jvp.qpos[times + 1], jvp.qvel[times + 1]], axis=1)
        self._expected = after / lengths[:, None]
        # a contact turns a gap into a velocity by the time step
        size = np.maximum(np.abs(next_qpos).max(axis=1) / model.timestep, np.abs(next_qvel).max(axis=1))
        self._rounding = _ROUNDING * size
        ends = _moved_steps(engine, model, derivative, times, lengths, sizes, cancel)
        shape = (2, len(sizes), len(times))
        dq = difference(model, next_qpos, ends.qpos[:, 1].reshape(*shape, model.nq))
        dv = ends.qvel[:, 1].reshape(*shape, model.nv) - next_qvel
        self._judge(np.concatenate([dq, dv], axis=-1))

    def _judge(self, change: Float64Array) -> None:
        """Compare changes [2, sizes, steps, 2 nv] of the next state with the derivative."""
        sizes = self._sizes[:, None, None]
        self.right, self.settled, _ = self._agree((change[0] - change[1]) / (2 * sizes))
        self.two_sided = np.zeros(len(self.right), bool)
        both_settled = np.ones(len(self.right), bool)
        values = []
        for side in (change[0] / sizes, -change[1] / sizes):
            agrees, settled, value = self._agree(side)
            self.two_sided |= agrees
            both_settled &= settled
            values.append(value)
        largest = np.maximum(*(np.abs(value).max(axis=1) for value in values))
        apart = np.abs(values[0] - values[1]).max(axis=1) > _SETTLED * self._tolerance * largest
        self.two_sided |= both_settled & apart

    def _agree(self, values: Float64Array) -> tuple[Mask, Mask, Float64Array]:
        """Compare the plateau of each step's differences [sizes, steps, n] with what is expected.

        Returns:
            Whether they agree, whether there is a plateau at all, and its value [steps, n].
        """
        middle = values[1:-1]
        spread = np.maximum(np.abs(values[:-2] - middle), np.abs(values[2:] - middle)).max(axis=2)
        spread = np.maximum(spread, rounding_noise(values, self._sizes) / self._sizes[1:-1, None])
        spread = np.where(np.isfinite(spread), spread / np.abs(middle).max(axis=2).clip(1e-300), np.inf)
        best = spread.argmin(axis=0)
        chosen = np.take_along_axis(middle, best[None, :, None], axis=0)[0]
        spread = np.take_along_axis(spread, best[None], axis=0)[0]
        settled = spread <= _SETTLED * self._tolerance
        error = np.abs(chosen - self._expected).max(axis=1)
        largest = np.maximum(np.abs(chosen).max(axis=1), np.abs(self._expected).max(axis=1))
        slack = self._rounding / self._sizes[1:-1][best]
        allowed = np.where(settled, np.maximum(self._tolerance, _UNCERTAINTY * spread), self._tolerance)
        return error <= allowed * largest + slack, settled, chosen


def _moved_steps(
    engine: Engine,
    model: Model,
    derivative: ForwardDerivative,
    times: Steps,
    lengths: Float64Array,
    sizes: Float64Array,
    cancel: _native.CancelToken | None,
) -> Rollout:
    """Return one step from every moved state, in the order sign, size, time."""
    rollout, jvp, direction = derivative.rollout, derivative.jvp, derivative.direction
    factors = (np.array([1.0, -1.0])[:, None, None] * sizes[:, None]) / lengths
    column = factors[..., None]
    qpos = move(model, rollout.qpos[times], column * jvp.qpos[times])
    qvel = rollout.qvel[times] + column * jvp.qvel[times]
    ctrl = np.broadcast_to(rollout.ctrl[times], (*factors.shape, model.nu))
    params = dict(derivative.start.params)
    if derivative.name == "ctrl":
        ctrl = ctrl + column * direction[times]
    elif derivative.name in PARAMETERS:
        moves = factors.reshape(-1, *[1] * direction.ndim) * direction
        params[derivative.name] = derivative.value + moves
    return engine.rollout(
        model,
        qpos.reshape(-1, model.nq),
        qvel.reshape(-1, model.nv),
        ctrl.reshape(factors.size, 1, model.nu),
        params=params,
        cancel=cancel,
    )

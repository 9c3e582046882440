"""Checks the forward derivative of a trajectory one step at a time.

Differences over a long or unstable trajectory are inaccurate, and the derivative has two sides if a contact
or limit switches. Single steps avoid both: the tangent after a step must be the derivative of this step along
the tangent before it, whatever happened earlier. One batched rollout computes many steps and step sizes.
Steps that do not agree are checked again with finer sizes, and against the derivatives on either side of the
state.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from revolute.contract.arrays import Float64Array
from revolute.contract.controllers import STEP_INPUTS, Control
from revolute.contract.tangents import difference, move

from .._controllers import AXES_OF_OWN
from .._model import Model
from .._results import OK, Jvp, Rollout
from ..parameters import PARAMETERS
from .differences import PerturbedInput, rounding_noise
from .start import ROUNDING, ctrl_scale, natural_speed, nudged

Steps = npt.NDArray[np.int64]
Mask = npt.NDArray[np.bool_]

_COARSE = 10.0 ** -np.arange(3.0, 9.01, 1.0)
_FINE = 10.0 ** -np.arange(4.0, 10.01, 0.25)
_MOST_STEPS = 2000
"""Largest number of steps to check; more are sampled evenly."""

_ROUNDING = 10 * np.finfo(float).eps
"""Relative rounding error of a state; divided by the step size, the rounding error of a derivative."""

_NUDGES = 64
"""Number of states around a step's state that are tried. A piece that fills a tenth of all directions is
missed in one of a thousand cases."""

_NUDGE_SIZES = 1e-9, 1e-7
"""Relative sizes of these perturbations. The smaller resolves ties that rounding decides, and differences see
nothing so near."""

_MOST_PIECES = _NUDGES // 4
"""Number of different derivatives among them from which on a sample no longer shows all of them."""

_FINEST = 4
"""Number of smallest sizes at which a jump of the motion shows the same change."""

_SCATTER = 10
"""Largest error of a difference that rounding of the state explains, relative to the scatter of the ends."""

_PART = 8_000_000
"""Largest total size, in numbers, of the perturbed states of one batch."""

_SETTLED = 10
"""Largest spread of conclusive differences, relative to the tolerance."""

_CANCELLED = 1e-10
"""Largest derivative on one side that counts as zero, relative to the other side's."""

_UNCERTAINTY = 3
"""Largest distance of a derivative from the plateau, relative to the plateau's spread."""


@dataclass(frozen=True)
class StepFindings:
    """Result of the check of single steps; all steps that are not listed are right.

    Attributes:
        checked: number of steps compared.
        wrong: steps with a wrong derivative.
        switching: steps where the motion jumps, or whose left and right derivatives differ and the forward
            derivative is one of them.
        unresolved: steps that are so unstable that no differences agree.
    """

    checked: int
    wrong: tuple[int, ...] = ()
    switching: tuple[int, ...] = ()
    unresolved: tuple[int, ...] = ()


@dataclass(frozen=True)
class ForwardDerivative:
    """A trajectory and its forward derivative along one direction of one input.

    Attributes:
        perturbed: the input and its trajectory.
        direction: tangent of the input, in its units.
        rollout: the simulated trajectory.
        jvp: the forward derivative.
    """

    perturbed: PerturbedInput
    direction: Float64Array
    rollout: Rollout
    jvp: Jvp

    @property
    def name(self) -> str:
        """Name of the input."""
        return self.perturbed.name

    def controls(self, times: Steps) -> tuple[Float64Array, Float64Array]:
        """Return the controls that act in some steps, and their tangents: [steps, nu] each."""
        periods = times // self.rollout.control.hold
        return self.rollout.ctrl[periods], self.jvp.ctrl[periods]

    def inputs(self, times: Steps) -> dict[str, tuple[Float64Array, Float64Array]]:
        """Return the inputs of some steps and their tangents by name, of `STEP_INPUTS`: [steps, …] each."""
        periods, found = times // self.rollout.control.hold, {}
        for name, given in self.rollout.control.inputs.items():
            own = given.shape[given.ndim - AXES_OF_OWN[name] :]
            shape = (len(self.rollout.ctrl), *own)
            moves = self.direction if self.name == name else np.zeros(own)
            found[name] = np.broadcast_to(given, shape)[periods], np.broadcast_to(moves, shape)[periods]
        return found

    def lengths(self) -> Float64Array:
        """Return the length of the direction of each step: of state, controls and parameters."""
        lengths = np.maximum(np.abs(self.jvp.qpos[:-1]).max(axis=1), np.abs(self.jvp.qvel[:-1]).max(axis=1))
        scale = ctrl_scale(self.perturbed.model, self.perturbed.start.qpos)
        controls = _relative(self.controls(np.arange(self.rollout.steps))[1], scale)
        lengths = np.maximum(lengths, np.abs(controls).max(axis=1, initial=0.0))
        if self.name in PARAMETERS or self.name in STEP_INPUTS:
            lengths = np.maximum(lengths, np.abs(_relative(self.direction, self.perturbed.units)).max())
        return lengths


def _relative(tangent: Float64Array, scale: Float64Array) -> Float64Array:
    scales = np.broadcast_to(scale, tangent.shape)
    return np.divide(tangent, scales, out=np.zeros(tangent.shape), where=scales > 0)


def check_steps(derivative: ForwardDerivative, tolerance: float) -> StepFindings:
    """Compare every step of a forward derivative with differences of that step.

    A step whose differences disagree is checked again with finer sizes, and on each side separately. If the
    differences of a side converge, they must equal the derivative at the state, or the derivative that the
    engine returns on that side; in the second case the state is at a switching point. Otherwise the
    derivative is wrong.

    Args:
        derivative: the derivative to check.
        tolerance: largest relative error of a step.
    """
    model, steps = derivative.perturbed.model, derivative.rollout.steps
    times = np.unique(np.linspace(0, steps - 1, min(steps, _MOST_STEPS)).astype(np.int64))
    lengths = derivative.lengths()
    times = times[(lengths[times] > 0) & np.isfinite(lengths[times])]
    # steps whose central differences with coarse sizes do not agree with the derivative
    doubtful = [
        part[~_Line(derivative, part, lengths[part], _COARSE, tolerance).right]
        for part in _parts(model, times, len(_COARSE))
    ]
    again = np.concatenate([np.zeros(0, np.int64), *doubtful])
    found: dict[str, list[int]] = {"wrong": [], "switching": [], "unresolved": []}
    for part in _parts(model, again, len(_FINE)):
        line = _Line(derivative, part, lengths[part], _FINE, tolerance)
        for kind, steps_of_kind in line.findings().items():
            found[kind] += steps_of_kind
    return StepFindings(len(times), *(tuple(found[kind]) for kind in ("wrong", "switching", "unresolved")))


def _parts(model: Model, times: Steps, sizes: int) -> list[Steps]:
    """Split steps into batches whose perturbed states fit in memory."""
    numbers = 2 * sizes * (3 * (model.nq + model.nqvel) + model.nu)
    count = max(1, _PART // numbers)
    return [times[first : first + count] for first in range(0, len(times), count)]


@dataclass(frozen=True)
class _Settled:
    """The plateau of each step's differences.

    Attributes:
        value: the difference on the plateau [steps, n].
        spread: relative distance of the neighbours [steps].
        index: index of the plateau among the sizes [steps].
    """

    value: Float64Array
    spread: Float64Array
    index: Steps


class _Line:
    """The next states on a line through each step's state, along its direction, and their derivatives.

    Attributes:
        right: steps where differences from both sides agree with the derivative.
    """

    def __init__(
        self,
        derivative: ForwardDerivative,
        times: Steps,
        lengths: Float64Array,
        sizes: Float64Array,
        tolerance: float,
    ) -> None:
        perturbed = derivative.perturbed
        model = perturbed.model
        self._engine, self._model, self._cancel = perturbed.engine, model, perturbed.cancel
        self._derivative, self._times, self._lengths = derivative, times, lengths
        self._sizes, self._tolerance = sizes, tolerance
        rollout, jvp = derivative.rollout, derivative.jvp
        next_qpos, next_qvel = rollout.qpos[times + 1], rollout.qvel[times + 1]
        after = np.concatenate([jvp.qpos[times + 1], jvp.qvel[times + 1]], axis=1)
        self._expected = after / lengths[:, None]
        # a contact turns a gap into a velocity by the time step
        size = np.maximum(np.abs(next_qpos).max(axis=1) / model.timestep, np.abs(next_qvel).max(axis=1))
        self._speed = natural_speed(model, rollout.qvel, derivative.perturbed.start)
        self._rounding = _ROUNDING * np.maximum(size, self._speed)
        factors = np.array([1.0, -1.0])[:, None] * sizes
        self._ends = self._simulate(np.broadcast_to(factors[..., None], (*factors.shape, len(times))))
        shape = (2, len(sizes), len(times))
        dq = difference(model, next_qpos, self._ends.qpos[:, 1].reshape(*shape, model.nq))
        dv = self._ends.qvel[:, 1].reshape(*shape, model.nqvel) - next_qvel
        change = np.concatenate([dq, dv], axis=-1)
        column = sizes[:, None, None]
        self._change = change
        self._sides = [self._settle(change[0] / column), self._settle(-change[1] / column)]
        central = self._settle((change[0] - change[1]) / (2 * column))
        self._largest = np.maximum(*(np.abs(side.value).max(axis=1) for side in self._sides))
        self.right = self._agrees(central, self._expected)

    def findings(self) -> dict[str, list[int]]:
        """Return the steps that are not right, by kind."""
        kinds: dict[str, list[int]] = {"wrong": [], "switching": [], "unresolved": []}
        if self.right.all():
            return kinds
        slopes = self._slopes()
        settled = [side.spread <= _SETTLED * self._tolerance for side in self._sides]
        steady = [self._steady(side, slope) for side, slope in zip(self._sides, slopes, strict=True)]
        there = [_at(slope, side.index) for side, slope in zip(self._sides, slopes, strict=True)]
        agrees = [self._agrees(side, value) for side, value in zip(self._sides, there, strict=True)]
        wrong = np.any([s & t & ~a for s, t, a in zip(settled, steady, agrees, strict=True)], axis=0)
        sound = np.all([s & a for s, a in zip(settled, agrees, strict=True)], axis=0)
        ours = [self._agrees(side, self._expected) & s for side, s in zip(self._sides, settled, strict=True)]
        apart = np.abs(self._sides[0].value - self._sides[1].value).max(axis=1)
        bent = sound & (apart > _SETTLED * self._tolerance * self._largest)
        one_side = (ours[0] | ours[1]) & ~wrong
        jumps = (self._jumps(0) | self._jumps(1)) & ~wrong
        # both sides are right and equal, but the derivative at the state differs
        smooth = sound & ~bent & ~one_side & ~jumps
        pieces = np.zeros(len(self.right), bool)
        for k in np.flatnonzero(smooth & ~self.right):
            pieces[k] = self._has_pieces(int(k), [slope[:, k] for slope in slopes])
        wrong |= smooth & ~pieces
        for k in np.flatnonzero(wrong):
            wrong[k] = not self._is_rounding(int(k))
        switching = ~wrong & (bent | one_side | jumps | pieces)
        for k in np.flatnonzero(~self.right):
            kind = "wrong" if wrong[k] else "switching" if switching[k] else "unresolved"
            kinds[kind].append(int(self._times[k]))
        return kinds

    def _settle(self, values: Float64Array) -> _Settled:
        """Find the plateau of each step's differences [sizes, steps, n]."""
        middle = values[1:-1]
        spread = np.maximum(np.abs(values[:-2] - middle), np.abs(values[2:] - middle)).max(axis=2)
        spread = np.maximum(spread, rounding_noise(values, self._sizes) / self._sizes[1:-1, None])
        spread = np.where(np.isfinite(spread), spread / np.abs(middle).max(axis=2).clip(1e-300), np.inf)
        best = spread.argmin(axis=0)
        return _Settled(_at(middle, best), np.take_along_axis(spread, best[None], axis=0)[0], best + 1)

    def _agrees(self, found: _Settled, expected: Float64Array) -> Mask:
        """Return whether the plateaus equal the expected derivatives [steps, n]."""
        settled = found.spread <= _SETTLED * self._tolerance
        error = np.abs(found.value - expected).max(axis=1)
        largest = np.maximum(np.abs(found.value).max(axis=1), np.abs(expected).max(axis=1))
        slack = self._rounding / self._sizes[found.index] + _CANCELLED * self._largest
        allowed = np.where(settled, np.maximum(self._tolerance, _UNCERTAINTY * found.spread), self._tolerance)
        return error <= allowed * largest + slack

    def _steady(self, side: _Settled, slopes: Float64Array) -> Mask:
        """Return whether the derivatives [sizes, steps, n] around a plateau agree."""
        before, there, after = (_at(slopes, side.index + shift) for shift in (-1, 0, 1))
        apart = np.maximum(np.abs(before - there), np.abs(after - there)).max(axis=1)
        return apart <= _SETTLED * self._tolerance * np.abs(there).max(axis=1)

    def _jumps(self, side: int) -> Mask:
        """Return whether the motion jumps on a side: the smallest perturbations change it, and all alike."""
        finest = self._change[side, -_FINEST:]
        size = np.abs(finest[-1]).max(axis=1)
        apart = np.abs(finest - finest[-1]).max(axis=(0, 2))
        return (size > 100 * self._rounding) & (apart <= 0.1 * size)

    def _has_pieces(self, k: int, slopes: list[Float64Array]) -> bool:
        """Return whether several derivatives meet near the state of step k, closer than differences resolve.

        That at the state must be one of them: a tie that rounding decides may give the state a derivative
        that no state beside it has, which is wrong.

        Args:
            k: index of the step.
            slopes: the derivatives along either side of the line [sizes, n].
        """
        inner = np.concatenate(
            [slope[side.index[k] :] for slope, side in zip(slopes, self._sides, strict=True)]
        )
        for size in _NUDGE_SIZES:
            beside = self._nudged(k, size)
            scale = self._tolerance * _SETTLED * np.abs(beside).max()
            found = np.concatenate([inner, beside]) if size == _NUDGE_SIZES[0] else beside
            if (np.abs(found - self._expected[k]).max(axis=1) <= scale).any():
                # farther away alone: the derivatives nearer by are inaccurate
                return size == _NUDGE_SIZES[0]
        apart = np.abs(beside[:, None] - beside).max(axis=2) > scale
        return int((~np.tril(~apart, -1).any(axis=1)).sum()) > _MOST_PIECES

    def _is_rounding(self, k: int) -> bool:
        """Return whether rounding of the state of step k moves its end as far as the differences are off.

        Stiff forces make this much more than the rounding of the end. It can bend the motion over several
        sizes alike, and then looks like a plateau.
        """
        time, ends = self._times[k] + 1, self._around(k, ROUNDING)
        rollout = self._derivative.rollout
        dq = difference(self._model, rollout.qpos[time], ends.qpos[:, 1])
        scatter = max(np.abs(dq).max(), np.abs(ends.qvel[:, 1] - rollout.qvel[time]).max())
        off = [
            np.abs(side.value[k] - self._expected[k]).max() * self._sizes[side.index[k]]
            for side in self._sides
        ]
        return bool(max(off) <= _SCATTER * scatter)

    def _slopes(self) -> list[Float64Array]:
        """Return the forward derivatives [sizes, steps, 2 nv] at the perturbed states of either side."""
        count = 2 * len(self._sizes)
        pushed = self._push(self._ends, np.tile(np.arange(len(self._times)), count))
        shaped = pushed.reshape(2, len(self._sizes), len(self._times), -1)
        return [shaped[0], shaped[1]]

    def _nudged(self, k: int, size: float) -> Float64Array:
        """Return the forward derivatives [nudges, 2 nv] at states around that of step k."""
        return self._push(self._around(k, size), np.full(_NUDGES, k))

    def _around(self, k: int, size: float) -> Rollout:
        """Compute one step from states around that of step k."""
        rollout, time = self._derivative.rollout, self._times[k]
        random = np.random.default_rng(int(time))
        qpos, qvel = (np.repeat(state[time][None], _NUDGES, axis=0) for state in (rollout.qpos, rollout.qvel))
        qpos, qvel = nudged(self._model, qpos, qvel, self._speed, random, size)
        one = np.array([time])
        ctrl = np.broadcast_to(self._derivative.controls(one)[0], (_NUDGES, 1, self._model.nu))
        # an axis per environment, as for the tangents
        given = {
            name: np.repeat(value[None], _NUDGES, axis=0)
            for name, (value, _) in self._derivative.inputs(one).items()
        }
        params = self._params(np.zeros(_NUDGES))
        return self._engine.rollout(
            self._model, qpos, qvel, ctrl, params=params, control=Control.of(**given), cancel=self._cancel
        )

    def _push(self, ends: Rollout, which: Steps) -> Float64Array:
        """Return the forward derivatives [batch, 2 nv] of single steps along the directions of some times."""
        derivative, times = self._derivative, self._times[which]
        column = 1 / self._lengths[which][:, None]
        tangents: dict[str, Any] = {
            "qpos_tan": derivative.jvp.qpos[times] * column,
            "qvel_tan": derivative.jvp.qvel[times] * column,
        }
        controls = derivative.controls(times)[1]
        if controls.any():
            tangents["ctrl_tan"] = (controls * column)[:, None]
        if derivative.name in STEP_INPUTS:
            moves = derivative.inputs(times)[derivative.name][1]
            tangents["control_tan"] = {derivative.name: (moves * _as_wide(column[:, 0], moves))[:, None]}
        if derivative.name in PARAMETERS:
            along = column.reshape(-1, *[1] * derivative.direction.ndim) * derivative.direction
            tangents["params_tan"] = {derivative.name: along}
        good = np.atleast_1d(ends.status) == OK
        if not good.any():
            return np.full((len(which), self._model.nv + self._model.nqvel), np.nan)
        pushed = self._engine.jvp(self._model, ends, **tangents, cancel=self._cancel)
        return np.concatenate([pushed.qpos[:, 1], pushed.qvel[:, 1]], axis=1)

    def _params(self, factors: Float64Array) -> dict[str, Float64Array]:
        """Return the parameters, the checked one moved by factors [batch] times its direction."""
        derivative = self._derivative
        params = dict(derivative.perturbed.start.params)
        if derivative.name in PARAMETERS:
            moves = factors.reshape(-1, *[1] * derivative.direction.ndim) * derivative.direction
            params[derivative.name] = derivative.perturbed.value + moves
        return params

    def _simulate(self, steps: Float64Array) -> Rollout:
        """Compute one step from every perturbed state, for steps [sign, size, time] along the directions."""
        derivative, times, model = self._derivative, self._times, self._model
        rollout, jvp = derivative.rollout, derivative.jvp
        factors = steps / self._lengths
        column = factors[..., None]
        qpos = move(model, rollout.qpos[times], column * jvp.qpos[times])
        qvel = rollout.qvel[times] + column * jvp.qvel[times]
        ctrl, ctrl_tan = derivative.controls(times)
        moved = ctrl + column * ctrl_tan
        given = {
            name: (value + _as_wide(factors, moves) * moves).reshape(factors.size, 1, *moves.shape[1:])
            for name, (value, moves) in derivative.inputs(times).items()
        }
        return self._engine.rollout(
            model,
            qpos.reshape(-1, model.nq),
            qvel.reshape(-1, model.nqvel),
            moved.reshape(factors.size, 1, model.nu),
            params=self._params(factors.ravel()),
            control=Control.of(**given),
            cancel=self._cancel,
        )


def _as_wide(factors: Float64Array, rows: Float64Array) -> Float64Array:
    """Return factors [..., n] with further axes, for rows [n, …]."""
    return factors.reshape(*factors.shape, *[1] * (rows.ndim - 1))


def _at(values: Float64Array, index: Steps) -> Float64Array:
    """Return the rows [steps, n] of values [sizes, steps, n] at one size per step."""
    return np.take_along_axis(values, index[None, :, None], axis=0)[0]

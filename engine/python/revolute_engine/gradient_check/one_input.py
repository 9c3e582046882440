"""The check of one input: compares backward, forward and difference derivatives, and gives a verdict."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from revolute.contract.arrays import Float64Array
from revolute.contract.gradient_report import (
    RIGHT,
    RIGHT_BY_STEPS,
    SENSITIVE,
    SWITCHING,
    WRONG,
    ZERO,
    InputCheck,
)
from revolute.contract.tangents import pull, rate

from .. import native
from .._engine import Engine
from .._failures import all_diverged
from .._model import Model
from .._results import OK, Jvp, Rollout
from .differences import (
    FINE_STEPS,
    STEPS,
    Cotangents,
    Differences,
    PerturbedInput,
    plateau,
    relative,
    tangent_of,
)
from .entries import worst_entry
from .opposed import DOT_TOLERANCE, NUDGES, explained_by_rounding, opposed_steps
from .single_steps import ForwardDerivative, StepFindings, check_steps
from .start import Trajectory, natural_speed, nudged

_UNSTABLE = 1e3
"""Smallest growth of a perturbation for which a trajectory is called sensitive."""

_UNTRACEABLE = 1e-2
"""Relative error above which differences are inconclusive, for any growth."""

_ENTRIES, ENTRIES_WHEN_WRONG = 2, 64
"""Number of largest entries, and number of random entries, that are compared."""

_SHOWN_STEPS = 10
_NO_STEPS: tuple[int, ...] = ()


@dataclass(frozen=True)
class Setting:
    """Settings shared by the checks of all inputs.

    Attributes:
        engine: the engine.
        model: the model.
        cotangents: weights of states, one set per direction.
        growth: factor by which a perturbation of the start grows.
        tolerance: largest relative error that passes.
        seed: seed of all random numbers.
        random: chooses the entries to compare.
        cancel: token that stops the check.
    """

    engine: Engine
    model: Model
    cotangents: Cotangents
    growth: float
    tolerance: float
    seed: int
    random: np.random.Generator
    cancel: native.CancelToken | None

    def rollout(self, start: Trajectory) -> Rollout:
        """Simulate a trajectory, which must not diverge."""
        return simulate(self.engine, self.model, start, self.cancel)


def simulate(engine: Engine, model: Model, start: Trajectory, cancel: native.CancelToken | None) -> Rollout:
    """Simulate a trajectory.

    Raises:
        DivergedError: the trajectory diverges.
    """
    inputs = start.qpos, start.qvel, start.ctrl
    rollout = engine.rollout(model, *inputs, params=start.params, control=start.control, cancel=cancel)
    if rollout.status != OK:
        raise all_diverged(model, np.atleast_1d(rollout.diverged_step))
    return rollout


@dataclass(frozen=True)
class _Agreement:
    """A directional derivative and the plateau of its differences."""

    agrees: bool
    error: float
    value: float
    step: float | None


class InputChecker:
    """The check of one input on one trajectory."""

    def __init__(self, setting: Setting, perturbed: PerturbedInput, directions: Float64Array) -> None:
        self.setting = setting
        self.engine, self.model, self.cancel = setting.engine, setting.model, setting.cancel
        self.tolerance = setting.tolerance
        self.perturbed = perturbed
        self.name, self.start = perturbed.name, perturbed.start
        self.directions = directions
        self.rollout = setting.rollout(perturbed.start)
        self.jvps = [self._jvp(direction) for direction in directions]

    def _jvp(self, direction: Float64Array) -> Jvp:
        """Return the forward derivative (2) along one direction."""
        along = tangent_of(self.name, direction)
        return self.engine.jvp(self.model, self.rollout, **along, cancel=self.cancel)

    def check(self) -> InputCheck:
        """Compare (1), (2) and (3), and return the verdict."""
        if not self.perturbed.value.size:
            return self._zero(np.zeros(len(self.directions)), "it has no entries")
        cotangents = self.setting.cotangents
        bars = cotangents.spread(self.rollout.steps)
        gradient = self.engine.backward(self.model, self.rollout, *bars, wrt=[self.name], cancel=self.cancel)[
            self.name
        ]
        if self.name in ("qpos", "feedback.qpos"):
            gradient = pull(self.model, self.perturbed.value, gradient)
        backward = (gradient * self.directions).reshape(len(gradient), -1).sum(axis=1)
        forward, terms = self._forward()
        if not (np.isfinite(gradient).all() and np.isfinite(terms).all()):
            return self._overflowing()
        differences = self._differences(STEPS, np.arange(len(backward)))
        if self._is_zero(backward, forward, differences):
            return self._zero(backward, "it has no influence on the states that were weighted")
        apart = np.abs(backward - forward)
        dot_error = float((apart / np.maximum(terms, 1e-300)).max())
        # derivatives below the resolution of the largest step are rounding errors
        opposed = self._opposed(apart, np.maximum(DOT_TOLERANCE * terms, differences.rounding[:, 0]))
        found = self._best_agreements(backward, differences)
        error = max(each.error for each in found)
        verdict, reason, switching = (
            (WRONG, f"backward and forward derivatives differ by {dot_error:.1e}{opposed}", _NO_STEPS)
            if opposed is not None
            else self._verdict(error, found)
        )
        count = ENTRIES_WHEN_WRONG if verdict == WRONG else _ENTRIES
        worst = worst_entry(self.perturbed, gradient[0], cotangents, count, self.setting.random)
        return InputCheck(
            name=self.name,
            verdict=verdict,
            reason=reason,
            error=error,
            dot_error=dot_error,
            step=found[0].step,
            gradients=tuple(backward.tolist()),
            differences=tuple(each.value for each in found),
            switching_steps=switching[:_SHOWN_STEPS],
            worst=worst,
        )

    def _opposed(self, apart: Float64Array, allowed: Float64Array) -> str | None:
        """Return the steps at which backward and forward derivative differ by more than rounding, or None."""
        for k in np.flatnonzero(~(apart <= allowed)).tolist():
            if not explained_by_rounding(float(apart[k]), self._repeated(k)):
                return ""
            steps = opposed_steps(self._derivative(k), self.setting.random)
            if steps:
                return f", at {_single_steps(len(steps))} too: {_list(steps)}"
            if self.start.control.has_controller:
                return ", at no single step with the controls as they acted: the controller's differ"
        return None

    def _repeated(self, k: int) -> Float64Array:
        """Return the forward derivative along one direction, from the start and from starts perturbed by
        rounding."""
        start, speed = self.start, natural_speed(self.model, self.rollout.qvel, self.start)
        qpos, qvel = (np.repeat(state[None], NUDGES, axis=0) for state in (start.qpos, start.qvel))
        qpos, qvel = nudged(self.model, qpos, qvel, speed, np.random.default_rng(k))
        ctrl = np.broadcast_to(start.ctrl, (NUDGES, *start.ctrl.shape))
        rollout = self.engine.rollout(
            self.model, qpos, qvel, ctrl, params=start.params, control=start.control, cancel=self.cancel
        )
        if (rollout.status != OK).any():
            return np.array([np.nan])
        along = tangent_of(self.name, self.directions[k])
        jvp = self.engine.jvp(self.model, rollout, **along, cancel=self.cancel)
        times, bars = self.setting.cotangents.times, self.setting.cotangents
        rates = rate(self.model, rollout.qpos[:, times], jvp.qpos[:, times])
        values = (bars.qpos_bar[k] * rates).sum(axis=(1, 2))
        values += (bars.qvel_bar[k] * jvp.qvel[:, times]).sum(axis=(1, 2))
        return np.append(values, self._forward()[0][k])

    def _derivative(self, k: int) -> ForwardDerivative:
        """Return the forward derivative along one direction."""
        return ForwardDerivative(self.perturbed, self.directions[k], self.rollout, self.jvps[k])

    def _forward(self) -> tuple[Float64Array, Float64Array]:
        """Return the forward derivatives of the weighted states, and the sums of their terms' absolute
        values."""
        cotangents = self.setting.cotangents
        times = cotangents.times
        values, sizes = np.zeros(len(self.jvps)), np.zeros(len(self.jvps))
        for k, jvp in enumerate(self.jvps):
            rates = rate(self.model, self.rollout.qpos[times], jvp.qpos[times])
            for bar, tangent in ((cotangents.qpos_bar[k], rates), (cotangents.qvel_bar[k], jvp.qvel[times])):
                values[k] += (bar * tangent).sum()
                sizes[k] += np.abs(bar * tangent).sum()
        return values, sizes

    def _is_zero(self, backward: Float64Array, forward: Float64Array, differences: Differences) -> bool:
        """Return whether the largest step shows no influence of the input."""
        floor = differences.rounding[:, 0]
        found = np.abs(differences.central[:, 0])
        return bool((np.abs(backward) <= floor).all() and (np.abs(forward) <= floor).all()) and bool(
            (~np.isfinite(found) | (found <= 10 * floor)).all()
        )

    def _zero(self, backward: Float64Array, reason: str) -> InputCheck:
        return InputCheck(
            name=self.name,
            verdict=ZERO,
            reason=reason,
            error=0.0,
            dot_error=0.0,
            step=None,
            gradients=tuple(backward.tolist()),
            differences=(0.0,) * len(backward),
        )

    def _overflowing(self) -> InputCheck:
        return InputCheck(
            name=self.name,
            verdict=SENSITIVE,
            reason="perturbations grow beyond all numbers",
            error=1.0,
            dot_error=0.0,
            step=None,
            gradients=(),
            differences=(),
        )

    def _differences(self, steps: Float64Array, which: npt.NDArray[np.int64]) -> Differences:
        """Return differences (3) of some directions."""
        cotangents = self.setting.cotangents
        chosen = Cotangents(cotangents.times, cotangents.qpos_bar[which], cotangents.qvel_bar[which])
        return self.perturbed.differences(self.directions[which], chosen, steps)

    def _best_agreements(self, backward: Float64Array, differences: Differences) -> list[_Agreement]:
        """Compare each directional derivative with differences, with finer ones where it disagrees."""
        found = self._agreements(backward, differences, STEPS)
        doubtful = np.flatnonzero([not each.agrees for each in found])
        if len(doubtful):
            finer = self._differences(FINE_STEPS, doubtful)
            again = self._agreements(backward[doubtful], finer, FINE_STEPS)
            for k, each in zip(doubtful, again, strict=True):
                found[k] = each if each.error < found[k].error else found[k]
        return found

    def _agreements(
        self, backward: Float64Array, differences: Differences, steps: Float64Array
    ) -> list[_Agreement]:
        """Compare each directional derivative with the plateau of its differences."""
        agreements = []
        for k, exact in enumerate(backward.tolist()):
            found = plateau(differences.central[k], steps)
            if found is None:
                agreements.append(_Agreement(False, 1.0, 0.0, None))
                continue
            slack = 10 * float(differences.rounding[k, found.index])
            largest = max(abs(exact), abs(found.value))
            agrees = abs(exact - found.value) <= self.tolerance * largest + slack
            step = float(steps[found.index])
            agreements.append(_Agreement(agrees, relative(exact, found.value), found.value, step))
        return agreements

    def _verdict(self, error: float, found: list[_Agreement]) -> tuple[str, str, tuple[int, ...]]:
        """Return verdict, reason and switching steps if backward equals forward."""
        agrees = [each.agrees for each in found]
        if all(agrees) and error <= self.tolerance:
            return RIGHT, f"differences agree to {error:.1e}", ()
        doubtful = [k for k, each in enumerate(found) if not each.agrees or each.error > self.tolerance]
        return self._explained(error, all(agrees), [self._steps(k) for k in doubtful])

    def _explained(
        self, error: float, within_rounding: bool, findings: list[StepFindings]
    ) -> tuple[str, str, tuple[int, ...]]:
        """Return verdict, reason and switching steps if differences of the whole trajectory disagree."""
        checked = max(each.checked for each in findings)
        wrong, switching, unresolved = (
            tuple(sorted({step for each in findings for step in getattr(each, kind)}))
            for kind in ("wrong", "switching", "unresolved")
        )
        found = f"differences disagree by {error:.1e}"
        if wrong:
            steps = f"{len(wrong)} of {_single_steps(checked)}: {_list(wrong)}"
            return WRONG, f"{found}; so do {steps}", switching
        if switching:
            where = f"at {len(switching)} of {checked} steps: {_list(switching)}; all others are right"
            return SWITCHING, f"{found}, because the derivative has two sides {where}", switching
        if unresolved:
            where = f"{len(unresolved)} of {checked} steps: {_list(unresolved)}; all others are right"
            return SENSITIVE, f"{found}, because rounding hides the derivative of {where}", ()
        steps = f"each of {_single_steps(checked)} is right"
        if self.start.control.has_controller and not within_rounding:
            # steps are checked with the controls as they acted
            return SENSITIVE, f"{found}; {steps}, the controller is not checked alone", ()
        if within_rounding:
            return RIGHT_BY_STEPS, f"{steps}; over the whole trajectory {found}, which is their rounding", ()
        if self.setting.growth > _UNSTABLE or error > _UNTRACEABLE:
            return SENSITIVE, f"{found}, because perturbations grow by {self.setting.growth:.1e}; {steps}", ()
        return RIGHT_BY_STEPS, f"{steps} and backward equals forward; over the whole trajectory {found}", ()

    def _steps(self, k: int) -> StepFindings:
        """Check the forward derivative along one direction step by step."""
        return check_steps(self._derivative(k), self.tolerance)


def _single_steps(count: int) -> str:
    return "1 single step" if count == 1 else f"{count} single steps"


def _list(steps: tuple[int, ...]) -> str:
    """Return the first few steps as text."""
    return ", ".join(map(str, steps[:_SHOWN_STEPS])) + (", ..." if len(steps) > _SHOWN_STEPS else "")

"""`check_gradient`: a verdict on the gradient of a trajectory by each of its inputs.

For random weights of a few states and random directions d of an input:

    gradient . d                          backward derivative                      (1)
    weights . (tangents along d)          forward derivative, equal to (1)         (2)
    (loss(x + s d) - loss(x - s d)) / 2s  on a plateau of step sizes s, equal to (1)   (3)

Where (3) differs, single steps decide (`single_steps`): a step whose tangent is no derivative makes the
gradient wrong; one whose derivative has two sides, or an unstable trajectory, explains the difference.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import numpy.typing as npt

from revolute.errors import ArgumentError
from revolute.gradient_report import (
    RIGHT,
    SENSITIVE,
    SWITCHING,
    WRONG,
    ZERO,
    GradientReport,
    InputCheck,
)

from .. import _native
from .._arguments import check_rollout
from .._cotangents import INPUTS, check_wrt
from .._engine import Engine
from .._failures import all_diverged
from .._model import Model
from .._options import positive_integer
from .._parameters import PARAMETERS
from .._results import OK, Jvp, Rollout
from .._tangents import normalized, pull, rate
from .differences import STEPS, Cotangents, Differences, plateau, relative, trajectory_differences
from .entries import worst_entry
from .single_steps import ForwardDerivative, StepFindings, check_steps
from .start import (
    Trajectory,
    checked_inputs,
    default_ctrl,
    default_qpos,
    default_qvel,
    positive_parameter,
    scale,
)

Float64Array = npt.NDArray[np.float64]

MAX_STEPS, MAX_DIRECTIONS = 1_000_000, 100

_DOT_TOLERANCE = 1e-8
"""Largest distance of forward and backward derivative, relative to the sum of their terms."""

_UNSTABLE = 1e3
"""Growth of a perturbation from which a trajectory is called sensitive."""

_ENTRIES, _ENTRIES_WHEN_WRONG = 4, 64
_SHOWN_STEPS = 10


def check_gradient(
    engine: Engine,
    model: Model,
    qpos: npt.ArrayLike | None = None,
    qvel: npt.ArrayLike | None = None,
    ctrl: npt.ArrayLike | None = None,
    *,
    steps: int = 200,
    params: Mapping[str, npt.ArrayLike] | None = None,
    wrt: Iterable[str] | None = None,
    directions: int = 3,
    seed: int = 0,
    tolerance: float = 1e-5,
    cancel: _native.CancelToken | None = None,
) -> GradientReport:
    """Check the gradients of a trajectory against finite differences.

    Args:
        engine: the engine.
        model: the model.
        qpos: start positions [nq]; by default the first keyframe, or the reference configuration lifted out
            of the ground.
        qvel: start velocities [nv]; by default small random ones.
        ctrl: controls [time, nu]; by default small random ones, around the start where actuators are servos.
        steps: length of the trajectory when ctrl is not given.
        params: model parameters by name, as in `Engine.rollout`, without batch axis.
        wrt: inputs to check, by default all that the model has. A parameter that is not given is checked at
            the model's value, with zeros that must not be negative replaced by small positive numbers.
        directions: random directions per input.
        seed: of everything random.
        tolerance: largest relative error of a derivative.
        cancel: token whose `cancel()` stops the call.

    Returns:
        A report with one verdict per input.

    Raises:
        ArgumentError: an argument is wrong.
        DivergedError: the trajectory diverges.
        Cancelled: the token was cancelled.
    """
    options = _options(steps, directions, seed, tolerance)
    names = checked_inputs(model) if wrt is None else check_wrt(wrt)
    random = np.random.default_rng(options.seed)
    start = _trajectory(model, qpos, qvel, ctrl, options.steps, params, random)
    checker = _Checker(engine, model, start, options, random, cancel)
    checks = tuple(checker.check(name) for name in names)
    return GradientReport(
        model=model.name,
        steps=len(start.ctrl),
        directions=options.directions,
        seed=options.seed,
        tolerance=options.tolerance,
        growth=checker.growth,
        inputs=checks,
    )


@dataclass(frozen=True)
class _Options:
    """The numbers of a check, checked themselves."""

    steps: int
    directions: int
    seed: int
    tolerance: float


def _options(steps: Any, directions: Any, seed: Any, tolerance: Any) -> _Options:
    if isinstance(seed, bool) or not isinstance(seed, (int, np.integer)) or seed < 0:
        raise ArgumentError.expected("seed", "an integer >= 0", repr(seed))
    is_number = isinstance(tolerance, (int, float, np.floating)) and not isinstance(tolerance, bool)
    if not is_number or not 0 < tolerance < 1:
        raise ArgumentError.expected("tolerance", "a number between 0 and 1", repr(tolerance))
    return _Options(
        steps=positive_integer("steps", steps, MAX_STEPS),
        directions=positive_integer("directions", directions, MAX_DIRECTIONS),
        seed=int(seed),
        tolerance=float(tolerance),
    )


def _trajectory(
    model: Model,
    qpos: Any,
    qvel: Any,
    ctrl: Any,
    steps: int,
    params: Mapping[str, Any] | None,
    random: np.random.Generator,
) -> Trajectory:
    """Return the trajectory to check, with defaults for what is not given."""
    start_qpos = default_qpos(model) if qpos is None else qpos
    start_qvel = default_qvel(model, random) if qvel is None else qvel
    if ctrl is None:
        # the shape of qpos is checked before it is used
        checked = check_rollout(model, start_qpos, start_qvel, np.zeros((1, model.nu)), params)
        ctrl = default_ctrl(model, checked.qpos[0], steps, random)
    problem = check_rollout(model, start_qpos, start_qvel, ctrl, params)
    if problem.batched:
        raise ArgumentError.expected(
            "ctrl",
            f"shape [time, nu={model.nu}]",
            list(problem.ctrl.shape),
            advice="check one trajectory at a time",
        )
    return Trajectory(normalized(model, problem.qpos[0]), problem.qvel[0], problem.ctrl[0], problem.params)


class _Checker:
    """Checks one input after the other on one trajectory."""

    def __init__(
        self,
        engine: Engine,
        model: Model,
        start: Trajectory,
        options: _Options,
        random: np.random.Generator,
        cancel: _native.CancelToken | None,
    ) -> None:
        self.engine = engine
        self.model = model
        self.start = start
        self.options = options
        self.random = random
        self.cancel = cancel
        self.cotangents = _cotangents(model, len(start.ctrl), options.directions, random)
        self.growth = self._growth()

    def _rollout(self, start: Trajectory) -> Rollout:
        rollout = self.engine.rollout(
            self.model, start.qpos, start.qvel, start.ctrl, params=start.params, cancel=self.cancel
        )
        if rollout.status != OK:
            raise all_diverged(self.model, np.atleast_1d(rollout.diverged_step))
        return rollout

    def _growth(self) -> float:
        """Return the factor by which a random perturbation of the start grows."""
        rollout = self._rollout(self.start)
        tangents = self.random.normal(size=(2, self.model.nv))
        jvp = self.engine.jvp(
            self.model, rollout, qpos_tan=tangents[0], qvel_tan=tangents[1], cancel=self.cancel
        )
        # a contact makes a velocity of a displacement within one step, and takes it back in the next
        sizes = np.abs(jvp.qpos).max(axis=1) + self.model.timestep * np.abs(jvp.qvel).max(axis=1)
        return float(sizes.max() / sizes[0])

    def check(self, name: str) -> InputCheck:
        """Check one input."""
        start = self.start
        if name in PARAMETERS:
            value = positive_parameter(self.model, name, start)
            start = replace(start, params={**start.params, name: value})
        else:
            value = getattr(start, name)
        units = scale(self.model, name, start, value)
        shape = (self.options.directions, *units.shape)
        directions = self.random.normal(size=shape) * units
        return _InputChecker(self, name, start, value, units, directions).check()


def _cotangents(model: Model, steps: int, count: int, random: np.random.Generator) -> Cotangents:
    """Return random weights of the final state and of a few before."""
    times = np.unique([steps // 4, steps // 2, 3 * steps // 4, steps])
    return Cotangents(
        times,
        random.normal(size=(count, len(times), model.nq)),
        random.normal(size=(count, len(times), model.nv)),
    )


class _InputChecker:
    """The check of one input."""

    def __init__(
        self,
        parent: _Checker,
        name: str,
        start: Trajectory,
        value: Float64Array,
        units: Float64Array,
        directions: Float64Array,
    ) -> None:
        self.parent = parent
        self.engine, self.model, self.cancel = parent.engine, parent.model, parent.cancel
        self.tolerance = parent.options.tolerance
        self.name = name
        self.start = start
        self.value = value
        self.units = units
        self.directions = directions
        self.rollout = parent._rollout(start)
        self.jvps = [self._jvp(direction) for direction in directions]

    def _jvp(self, direction: Float64Array) -> Jvp:
        """Return the forward derivative (2) along one direction."""
        if self.name in INPUTS:
            tangents: dict[str, Any] = {f"{self.name}_tan": direction}
        else:
            tangents = {"params_tan": {self.name: direction}}
        return self.engine.jvp(self.model, self.rollout, **tangents, cancel=self.cancel)

    def check(self) -> InputCheck:
        """Compare (1), (2) and (3) and judge."""
        cotangents = self.parent.cotangents
        bars = cotangents.spread(self.rollout.steps)
        gradient = self.engine.backward(self.model, self.rollout, *bars, wrt=[self.name], cancel=self.cancel)[
            self.name
        ]
        if self.name == "qpos":
            gradient = pull(self.model, self.start.qpos, gradient)
        backward = (gradient * self.directions).reshape(len(gradient), -1).sum(axis=1)
        forward, terms = self._forward()
        differences = trajectory_differences(
            self.engine,
            self.model,
            self.name,
            self.start,
            self.value,
            self.directions,
            cotangents,
            cancel=self.cancel,
        )
        if self._is_zero(backward, forward, differences):
            return self._zero(backward)
        dot_error = float((np.abs(backward - forward) / np.maximum(terms, 1e-300)).max())
        error, step, values, agrees = self._compare(backward, differences)
        verdict, reason, switching = self._verdict(dot_error, error, agrees)
        count = _ENTRIES_WHEN_WRONG if verdict == WRONG else _ENTRIES
        worst = worst_entry(
            self.engine,
            self.model,
            self.name,
            self.start,
            self.value,
            gradient[0],
            self.units,
            cotangents,
            count,
            self.parent.random,
            self.cancel,
        )
        return InputCheck(
            name=self.name,
            verdict=verdict,
            reason=reason,
            error=error,
            dot_error=dot_error,
            step=step,
            gradients=tuple(backward.tolist()),
            differences=values,
            switching_steps=switching[:_SHOWN_STEPS],
            worst=worst,
        )

    def _forward(self) -> tuple[Float64Array, Float64Array]:
        """Return the forward derivatives of the weighted states, and the sums of their terms' sizes."""
        cotangents = self.parent.cotangents
        times = cotangents.times
        values, sizes = np.zeros(len(self.jvps)), np.zeros(len(self.jvps))
        for k, jvp in enumerate(self.jvps):
            rates = rate(self.model, self.rollout.qpos[times], jvp.qpos[times])
            for bar, tangent in ((cotangents.qpos_bar[k], rates), (cotangents.qvel_bar[k], jvp.qvel[times])):
                values[k] += (bar * tangent).sum()
                sizes[k] += np.abs(bar * tangent).sum()
        return values, sizes

    def _is_zero(self, backward: Float64Array, forward: Float64Array, differences: Differences) -> bool:
        """Whether the input has no influence that differences of the largest step could see."""
        floor = differences.rounding[:, 0]
        found = np.abs(differences.central[:, 0])
        return bool((np.abs(backward) <= floor).all() and (np.abs(forward) <= floor).all()) and bool(
            (~np.isfinite(found) | (found <= 10 * floor)).all()
        )

    def _zero(self, backward: Float64Array) -> InputCheck:
        return InputCheck(
            name=self.name,
            verdict=ZERO,
            reason="it has no influence on the states that were weighted",
            error=0.0,
            dot_error=0.0,
            step=None,
            gradients=tuple(backward.tolist()),
            differences=(0.0,) * len(backward),
        )

    def _compare(
        self, backward: Float64Array, differences: Differences
    ) -> tuple[float, float | None, tuple[float, ...], list[bool]]:
        """Return the largest error, the first direction's step size, the plateaus' values, and who agrees."""
        errors, values, agrees, step = [], [], [], None
        for k, exact in enumerate(backward.tolist()):
            found = plateau(differences.central[k])
            if found is None:
                errors.append(1.0)
                agrees.append(False)
                values.append(0.0)
                continue
            step = float(STEPS[found.index]) if step is None else step
            errors.append(relative(exact, found.value))
            values.append(found.value)
            slack = 10 * float(differences.rounding[k, found.index])
            largest = max(abs(exact), abs(found.value))
            agrees.append(abs(exact - found.value) <= self.tolerance * largest + slack)
        return max(errors), step, tuple(values), agrees

    def _verdict(
        self, dot_error: float, error: float, agrees: list[bool]
    ) -> tuple[str, str, tuple[int, ...]]:
        """Return verdict, reason and switching steps."""
        if dot_error > _DOT_TOLERANCE:
            return WRONG, f"backward and forward derivatives differ by {dot_error:.1e}", ()
        if all(agrees):
            return RIGHT, f"differences agree to {error:.1e}", ()
        return self._explained(error, [self._steps(k) for k, good in enumerate(agrees) if not good])

    def _explained(self, error: float, findings: list[StepFindings]) -> tuple[str, str, tuple[int, ...]]:
        """Return verdict, reason and switching steps where differences of the whole trajectory disagree."""
        checked = max(each.checked for each in findings)
        wrong, switching, unresolved = (
            tuple(sorted({step for each in findings for step in getattr(each, kind)}))
            for kind in ("wrong", "switching", "unresolved")
        )
        found = f"differences disagree by {error:.1e}"
        if wrong:
            return WRONG, f"{found}; so do {len(wrong)} of {checked} single steps: {_list(wrong)}", switching
        if switching:
            where = f"at {len(switching)} of {checked} steps: {_list(switching)}; all others are right"
            return SWITCHING, f"{found}, because the derivative has two sides {where}", switching
        if unresolved:
            where = f"{len(unresolved)} of {checked} steps: {_list(unresolved)}; all others are right"
            return SENSITIVE, f"{found}, because of instability within {where}", ()
        steps = f"each of {checked} single steps is right"
        if self.parent.growth > _UNSTABLE:
            return SENSITIVE, f"{found}, because perturbations grow by {self.parent.growth:.1e}; {steps}", ()
        return RIGHT, f"{steps} and backward equals forward; over the whole trajectory {found}", ()

    def _steps(self, k: int) -> StepFindings:
        """Check the forward derivative along one direction step by step."""
        derivative = ForwardDerivative(
            self.name, self.start, self.value, self.directions[k], self.units, self.rollout, self.jvps[k]
        )
        return check_steps(self.engine, self.model, derivative, self.tolerance, self.cancel)


def _list(steps: tuple[int, ...]) -> str:
    """Return the first few steps in words."""
    return ", ".join(map(str, steps[:_SHOWN_STEPS])) + (", ..." if len(steps) > _SHOWN_STEPS else "")

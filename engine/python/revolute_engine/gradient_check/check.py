"""`check_gradient`: checks the gradient of a trajectory by each of its inputs.

For random weights of a few states and random directions d of an input:

    gradient . d                          backward derivative                      (1)
    weights . (tangents along d)          forward derivative, equal to (1)         (2)
    (loss(x + s d) - loss(x - s d)) / 2s  on a plateau of step sizes s, equal to (1)   (3)

If (3) differs, single steps decide (`single_steps`). The gradient is wrong if the tangent of a step is not
its derivative. A step whose left and right derivatives differ, or an unstable trajectory, explains the
difference.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import numpy.typing as npt

from revolute.contract.controllers import PLAIN, Control
from revolute.contract.errors import ArgumentError
from revolute.contract.gradient_report import GradientReport, InputCheck
from revolute.contract.tangents import normalized

from .. import native
from .._arguments import check_rollout
from .._cotangents import check_wrt
from .._engine import Engine
from .._model import Model
from .._options import positive_integer
from ..parameters import PARAMETERS
from .differences import Cotangents, PerturbedInput
from .one_input import InputChecker, Setting, simulate
from .start import (
    Trajectory,
    checked_inputs,
    default_ctrl,
    default_qpos,
    default_qvel,
    positive_parameter,
    scale,
)

MAX_STEPS, MAX_DIRECTIONS = 1_000_000, 100


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
    progress: Callable[[str, int, int], None] | None = None,
    control: Control = PLAIN,
    cancel: native.CancelToken | None = None,
) -> GradientReport:
    """Check the gradients of a trajectory against finite differences.

    Args:
        engine: the engine.
        model: the model.
        qpos: start positions [nq]; by default the first keyframe, or the reference configuration lifted out
            of the ground.
        qvel: start velocities [nv]; by default small random ones.
        ctrl: controls [time, nu]; by default small random ones. For servos they are added to the start
            position.
        steps: rows of ctrl if it is not given.
        params: model parameters by name, as in `Engine.rollout`, without batch axis.
        wrt: inputs to check; by default all inputs of the model. A parameter that is not given is checked at
            the model's value; zeros of non-negative parameters are replaced by small positive numbers.
        directions: number of random directions per input.
        seed: seed of all random numbers.
        tolerance: largest relative error of a derivative.
        progress: called before each input with its name, its index and the number of inputs.
        control: how the rows of ctrl act: hold, feedback, policy and inputs of steps, without a batch axis.
            Their arrays are inputs too, by their names in `wrt`.
        cancel: token whose `cancel()` stops the call.

    Returns:
        A report with one verdict per input.

    Raises:
        ArgumentError: an argument is wrong.
        DivergedError: the trajectory diverges.
        Cancelled: the token was cancelled.
    """
    options = check_options(steps, directions, seed, tolerance)
    names = checked_inputs(model, control) if wrt is None else check_wrt(wrt, model, control)
    random = np.random.default_rng(options.seed)
    start = _trajectory(model, qpos, qvel, ctrl, options.steps, params, control, random)
    cotangents = _cotangents(model, start.steps, options.directions, random)
    growth = _growth(engine, model, start, random, cancel)
    setting = Setting(engine, model, cotangents, growth, options.tolerance, options.seed, random, cancel)
    checks = []
    for place, name in enumerate(names):
        if progress is not None:
            progress(name, place, len(names))
        checks.append(_check_input(setting, start, name, options.directions))
    return GradientReport(
        model=model.name,
        steps=start.steps,
        directions=options.directions,
        seed=options.seed,
        tolerance=options.tolerance,
        growth=growth,
        inputs=tuple(checks),
    )


@dataclass(frozen=True)
class CheckOptions:
    """The checked numeric arguments of `check_gradient`."""

    steps: int
    directions: int
    seed: int
    tolerance: float


def check_options(steps: Any, directions: Any, seed: Any, tolerance: Any) -> CheckOptions:
    """Check the numeric arguments.

    Raises:
        ArgumentError: a number has a wrong type or is out of range.
    """
    if isinstance(seed, bool) or not isinstance(seed, (int, np.integer)) or seed < 0:
        raise ArgumentError.expected("seed", "an integer >= 0", repr(seed))
    is_number = isinstance(tolerance, (int, float, np.floating)) and not isinstance(tolerance, bool)
    if not is_number or not 0 < tolerance < 1:
        raise ArgumentError.expected("tolerance", "a number between 0 and 1", repr(tolerance))
    return CheckOptions(
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
    control: Control,
    random: np.random.Generator,
) -> Trajectory:
    """Return the trajectory to check, with defaults for missing arguments."""
    start_qpos = default_qpos(model) if qpos is None else qpos
    start_qvel = default_qvel(model, random) if qvel is None else qvel
    if ctrl is None:
        # the shape of qpos is checked before it is used
        checked = check_rollout(model, start_qpos, start_qvel, np.zeros((1, model.nu)), params)
        ctrl = default_ctrl(model, checked.qpos[0], steps, random)
    problem = check_rollout(model, start_qpos, start_qvel, ctrl, params, control=control)
    if problem.batched:
        raise ArgumentError.expected(
            "ctrl",
            f"shape [time, nu={model.nu}]",
            list(problem.ctrl.shape),
            advice="check one trajectory at a time",
        )
    qpos, qvel = normalized(model, problem.qpos[0]), problem.qvel[0]
    return Trajectory(qpos, qvel, problem.ctrl[0], problem.params, control)


def _check_input(setting: Setting, start: Trajectory, name: str, directions: int) -> InputCheck:
    """Check one input."""
    model = setting.model
    if name in PARAMETERS:
        value = positive_parameter(model, name, start)
        start = replace(start, params={**start.params, name: value})
    elif name in start.control.arrays:
        value = start.control.arrays[name]
    else:
        value = getattr(start, name)
    units = scale(model, name, start, value)
    # the directions of an input do not depend on the other inputs
    random = np.random.default_rng([setting.seed, *name.encode()])
    moves = random.normal(size=(directions, *units.shape)) * units
    setting = replace(setting, random=random)
    perturbed = PerturbedInput(setting.engine, model, start, name, value, units, setting.cancel)
    return InputChecker(setting, perturbed, moves).check()


def _growth(
    engine: Engine,
    model: Model,
    start: Trajectory,
    random: np.random.Generator,
    cancel: native.CancelToken | None,
) -> float:
    """Return the factor by which a random perturbation of the start grows."""
    rollout = simulate(engine, model, start, cancel)
    qpos_tan, qvel_tan = random.normal(size=model.nv), random.normal(size=model.nqvel)
    jvp = engine.jvp(model, rollout, qpos_tan=qpos_tan, qvel_tan=qvel_tan, cancel=cancel)
    # a contact can turn a displacement into a velocity in one step, and back in the next
    sizes = np.abs(jvp.qpos).max(axis=1) + model.timestep * np.abs(jvp.qvel).max(axis=1)
    growth = float(sizes.max() / sizes[0])
    return growth if np.isfinite(growth) else float(np.finfo(float).max)


def _cotangents(model: Model, steps: int, count: int, random: np.random.Generator) -> Cotangents:
    """Return random weights of the final state and of a few earlier ones."""
    times = np.unique([steps // 4, steps // 2, 3 * steps // 4, steps])
    return Cotangents(
        times,
        random.normal(size=(count, len(times), model.nq)),
        random.normal(size=(count, len(times), model.nqvel)),
    )

"""Optimization of controls, start states and parameters: problems for SciPy, and iLQR.

problem = revolute.optimize.problem(sim, model, qpos, qvel, ctrl, loss)
found = scipy.optimize.minimize(problem, problem.x0, jac=True, bounds=problem.bounds)
ctrl = problem.unpack(found.x)["ctrl"]
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from .contract.arrays import Float64Array, as_float64
from .contract.controllers import MLP, MOCAP_INPUTS, Control, Feedback, given_inputs
from .contract.errors import ArgumentError, DivergedError
from .contract.loss import Loss, Term
from .loss_function import LossFunction
from .model import ModelHandle, check_model, check_params
from .simulator import Simulator
from .trajectory import STATE_AND_CONTROL

_STEP_LENGTHS = 0.5 ** np.arange(10.0)
"""Shares of the step that an iteration of iLQR tries, all in one call."""

_WORSE = 1e3
"""Where the simulation diverges, a problem's value is this many times its largest finite value so far."""


class Problem:
    """A function of one vector with its gradient, for SciPy and other optimizers.

    Calling it with x gives (value, gradient). Where the simulation diverges, the value is a finite number
    above all values so far, and the gradient points back to the last point that did not diverge; a line
    search then tries a shorter step.

    Attributes:
        x0: the start, [n].
        bounds: lower and upper bound of each entry, infinite for none: (n, 2). Those of controls are the
            model's `ctrlrange`.
        evaluations: number of calls.
        steps: environment steps that were simulated.
    """

    def __init__(
        self,
        sim: Simulator,
        model: ModelHandle,
        inputs: Mapping[str, Float64Array],
        loss: Loss | LossFunction,
        control: Control,
        wrt: Sequence[str],
        bounds: Mapping[str, Any],
        options: Mapping[str, Any],
    ) -> None:
        self._sim, self._model, self._loss = sim, model, loss
        self._inputs, self._control, self._wrt, self._options = inputs, control, wrt, options
        self.evaluations = self.steps = 0
        self.x0 = np.concatenate([inputs[name].ravel() for name in wrt])
        self.bounds = np.concatenate([_bounds(name, inputs[name], model, bounds) for name in wrt])
        self._largest = 0.0
        self._last = self.x0

    def unpack(self, x: Any) -> dict[str, Float64Array]:
        """Return the inputs that x stands for, by name."""
        array = as_float64("x", x)
        if array.shape != self.x0.shape:
            raise ArgumentError.expected("x", f"shape {list(self.x0.shape)}", list(array.shape))
        sizes = [self._inputs[name].size for name in self._wrt]
        parts = np.split(array, np.cumsum(sizes)[:-1])
        return {
            name: part.reshape(self._inputs[name].shape) for name, part in zip(self._wrt, parts, strict=True)
        }

    def __call__(self, x: Any) -> tuple[float, Float64Array]:
        """Return the loss, summed over environments, and its gradient [n].

        Raises:
            DivergedError: the simulation diverges at the first point.
        """
        inputs = {**self._inputs, **self.unpack(x)}
        self.evaluations += 1
        # a model may have no actuators
        self.steps += int(np.prod(inputs["ctrl"].shape[:-1])) * self._control.hold
        control = self._control
        for name in self._wrt:
            if name in control.arrays:
                control = control.with_array(name, inputs[name])
        others, step_inputs = (*STATE_AND_CONTROL, *control.arrays), dict[str, Any](control.inputs)
        value, gradient = self._sim.value_and_gradient(
            self._model,
            inputs["qpos"],
            inputs["qvel"],
            inputs["ctrl"],
            self._loss,
            params={name: value for name, value in inputs.items() if name not in others},
            wrt=self._wrt,
            hold=control.hold,
            feedback=control.feedback,
            policy=control.policy,
            **step_inputs,
            on_diverged="inf",
            **self._options,
        )
        total = float(np.sum(value))
        flat = np.concatenate([_like(gradient[name], self._inputs[name]).ravel() for name in self._wrt])
        if np.isfinite(total) and np.isfinite(flat).all():
            self._largest, self._last = max(self._largest, abs(total)), np.array(x, dtype=np.float64)
            return total, flat
        return self._diverged(np.asarray(x, dtype=np.float64))

    def _diverged(self, x: Float64Array) -> tuple[float, Float64Array]:
        if self.evaluations == 1:
            raise DivergedError.expected(
                "x0", "a start whose simulation stays finite", "one that diverges", advice="start elsewhere"
            )
        value = _WORSE * (1.0 + self._largest)
        back = x - self._last
        length = max(float(np.abs(back).max(initial=0.0)), np.finfo(float).tiny)
        unit = back / length
        return value, value / length * unit / max(float(unit @ unit), np.finfo(float).tiny)


def problem(
    sim: Simulator,
    model: ModelHandle,
    qpos: Any,
    qvel: Any,
    ctrl: Any,
    loss: Loss | Term | LossFunction,
    *,
    wrt: Sequence[str] = ("ctrl",),
    params: Mapping[str, Any] | None = None,
    bounds: Mapping[str, tuple[Any, Any]] | None = None,
    hold: int = 1,
    feedback: Feedback | None = None,
    policy: MLP | None = None,
    qfrc_applied: Any = None,
    xfrc_applied: Any = None,
    mocap_pos: Any = None,
    mocap_quat: Any = None,
    **options: Any,
) -> Problem:
    """Make a function of one vector from a simulation and a loss.

    Args:
        sim: the simulator.
        model: the model.
        qpos: start configuration, as for `Simulator.rollout`.
        qvel: start velocity.
        ctrl: controls.
        loss: the loss as data, or a function, as for `Simulator.value_and_gradient`.
        wrt: the inputs that are free, e.g. ("ctrl", "body_mass"), also "policy.weights", "mocap_pos" and
            others that `Simulator.value_and_gradient` takes; they start at the values given, or at the
            model's.
        params: model parameters to replace, as for `Simulator.rollout`.
        bounds: lower and upper bounds by name, numbers or arrays shaped like the input. Controls have
            `ctrlrange` unless they are named.
        hold: steps that each row of `ctrl` acts for.
        feedback: feedback that is added to `ctrl`, as for `Simulator.rollout`.
        policy: network whose output is added to `ctrl`, as for `Simulator.rollout`.
        qfrc_applied: generalized forces, as for `Simulator.rollout`.
        xfrc_applied: forces and torques on bodies, as for `Simulator.rollout`.
        mocap_pos: positions of the mocap bodies, as for `Simulator.rollout`.
        mocap_quat: their quaternions, as for `Simulator.rollout`.
        options: further options of `Simulator.value_and_gradient`, e.g. checkpoints="slots=32".

    Raises:
        ArgumentError: a name is unknown, or a bound does not fit its input.
    """
    check_model(model)
    names = [wrt] if isinstance(wrt, str) else list(wrt)
    if not names:
        raise ArgumentError.expected("wrt", "at least one name", "none", advice='e.g. wrt=("ctrl",)')
    inputs = {
        name: as_float64(name, value)
        for name, value in zip(STATE_AND_CONTROL, (qpos, qvel, ctrl), strict=True)
    }
    given = check_params(model, params)
    control = Control.of(hold, feedback, policy, qfrc_applied, xfrc_applied, mocap_pos, mocap_quat)
    of_mocap = {name: getattr(model, name) for name in MOCAP_INPUTS if model.mocap_names and name in names}
    control = replace(
        control, **{name: pose for name, pose in of_mocap.items() if name not in control.inputs}
    )
    arrays = control.arrays
    for name in names:
        if name not in inputs and name not in given:
            if name not in arrays and name not in model.params:
                known = ", ".join((*STATE_AND_CONTROL, *arrays, *model.params))
                raise ArgumentError.expected("wrt", f"names among {known}", repr(name))
            given[name] = np.array(arrays[name] if name in arrays else model.params[name])
    unknown = [name for name in bounds or {} if name not in names]
    if unknown:
        raise ArgumentError.expected("bounds", f"names among {', '.join(names)}", repr(unknown[0]))
    chosen = Loss([loss]) if isinstance(loss, Term) else loss
    return Problem(sim, model, inputs | given, chosen, control, names, bounds or {}, options)


def _bounds(name: str, value: Float64Array, model: ModelHandle, bounds: Mapping[str, Any]) -> Float64Array:
    """Return the bounds of an input's entries, [size, 2]."""
    if name in bounds:
        pair = bounds[name]
    elif name == "ctrl":
        pair = model.ctrlrange.T
    else:
        pair = (-np.inf, np.inf)
    try:
        low, high = (np.broadcast_to(np.asarray(bound, float), value.shape).ravel() for bound in pair)
    except (TypeError, ValueError):
        shape = list(value.shape)
        raise ArgumentError.expected(
            f"bounds.{name}", f"a lower and an upper bound, numbers or shape {shape}", repr(bounds.get(name))
        ) from None
    return np.stack([low, high], axis=1)


def _like(gradient: Float64Array, value: Float64Array) -> Float64Array:
    """Sum a gradient over environments that share an input."""
    while gradient.ndim > value.ndim:
        gradient = gradient.sum(axis=0)
    return gradient


@dataclass(frozen=True, eq=False)
class Plan:
    """A result of `ilqr`.

    Attributes:
        ctrl: controls, [T, nu].
        qpos: configurations that they give, one per row of `ctrl` and the last, [T + 1, nq].
        qvel: velocities, [T + 1, nv].
        gain: feedback gains about these states, [T, nu, 2 nv]; `Plan.feedback` has them as an argument of
            `rollout`.
        cost: the loss.
        costs: the loss before each iteration, and at the end.
        converged: whether the last iteration gained less than the tolerance.
    """

    ctrl: Float64Array
    qpos: Float64Array
    qvel: Float64Array
    gain: Float64Array
    cost: float
    costs: Sequence[float]
    converged: bool

    @property
    def feedback(self) -> Feedback:
        """The feedback that keeps a disturbed robot on the plan."""
        return Feedback(self.gain, self.qpos[:-1], self.qvel[:-1])


def ilqr(
    sim: Simulator,
    model: ModelHandle,
    qpos: Any,
    qvel: Any,
    ctrl: Any,
    loss: Loss | Term,
    *,
    hold: int = 1,
    iterations: int = 100,
    tolerance: float = 1e-9,
    params: Mapping[str, Any] | None = None,
    qfrc_applied: Any = None,
    xfrc_applied: Any = None,
    mocap_pos: Any = None,
    mocap_quat: Any = None,
) -> Plan:
    """Minimize a loss over the controls of one environment by the iterative linear-quadratic regulator.

    An iteration is two calls: the Jacobians of all steps, and a line search of ten rollouts with feedback.
    The Hessian of the loss is that of its squared terms in tangent coordinates (Gauss-Newton), the dynamics
    are linear (Li and Todorov 2004; line search and regularization after Tassa, Erez and Todorov 2012).

    Args:
        sim: the simulator.
        model: the model.
        qpos: start configuration, [nq].
        qvel: start velocity, [nv].
        ctrl: first controls, [T, nu].
        loss: the loss as data, of terms of qpos, qvel and ctrl.
        hold: steps that each row of `ctrl` acts for; running terms count the states at the ends of all steps.
        iterations: most iterations; one is usual in model predictive control.
        tolerance: relative gain below which it has converged.
        params: model parameters to replace, by name.
        qfrc_applied: generalized forces, [nv] or [T, nv], as for `Simulator.rollout`.
        xfrc_applied: forces and torques on bodies, [nbody, 6] or [T, nbody, 6].
        mocap_pos: positions of the mocap bodies, [nmocap, 3] or [T, nmocap, 3].
        mocap_quat: their quaternions, [nmocap, 4] or [T, nmocap, 4].

    Raises:
        ArgumentError: a shape does not fit the model, or the loss has other terms.
        DivergedError: the simulation diverges with the first controls.
    """
    check_model(model)
    start = [as_float64(name, value) for name, value in (("qpos", qpos), ("qvel", qvel))]
    controls = as_float64("ctrl", ctrl)
    if controls.ndim != 2:
        raise ArgumentError.expected("ctrl", f"shape [T, nu={model.nu}]", list(controls.shape))
    terms = Loss([loss]) if isinstance(loss, Term) else loss
    if not isinstance(terms, Loss):
        raise ArgumentError.expected("loss", "a revolute.Term or a revolute.Loss", type(terms).__name__)
    planner = _Planner(
        sim,
        model,
        start,
        terms,
        hold,
        params,
        given_inputs(qfrc_applied, xfrc_applied, mocap_pos, mocap_quat),
    )
    return planner.improve(controls, iterations, tolerance)


class _Planner:
    """The iterations of `ilqr`."""

    def __init__(
        self,
        sim: Simulator,
        model: ModelHandle,
        start: list[Float64Array],
        loss: Loss,
        hold: int,
        params: Mapping[str, Any] | None,
        inputs: Mapping[str, Any],
    ) -> None:
        self._sim, self._model, self._start, self._loss = sim, model, start, loss
        self._hold, self._params, self._inputs = hold, params, inputs

    def improve(self, ctrl: Float64Array, iterations: int, tolerance: float) -> Plan:
        best = self._simulate(ctrl[None], None)
        if not np.isfinite(best.cost[0]):
            raise DivergedError.expected(
                "ctrl",
                "controls whose simulation stays finite",
                "some that diverge",
                advice="start elsewhere",
            )
        damping, costs, converged = 0.0, [float(best.cost[0])], False
        gain = np.zeros((len(ctrl), self._model.nu, 2 * self._model.nv))
        for _ in range(iterations):
            expansion = self._expand(best)
            while True:
                step = _riccati(expansion, damping)
                found = None if step is None else self._search(best, *step)
                if found is not None and step is not None:
                    break
                damping = max(4.0 * damping, 1e-6)
                if damping > 1e10:
                    return self._plan(best, gain, costs, True)
            best, gain = found, step[1]
            damping = damping / 4.0 if damping > 1e-6 else 0.0
            costs.append(float(best.cost[0]))
            if costs[-2] - costs[-1] <= tolerance * abs(costs[-2]):
                converged = True
                break
        return self._plan(best, gain, costs, converged)

    def _plan(self, best: _Candidates, gain: Float64Array, costs: list[float], converged: bool) -> Plan:
        rows = slice(None, None, self._hold)
        return Plan(best.ctrl[0], best.qpos[0, rows], best.qvel[0, rows], gain, costs[-1], costs, converged)

    def _simulate(self, ctrl: Float64Array, feedback: Feedback | None) -> _Candidates:
        """Simulate candidates [n, T, nu]."""
        trajectory = self._sim.rollout(
            self._model,
            self._start[0],
            self._start[1],
            ctrl,
            hold=self._hold,
            feedback=feedback,
            params=self._params,
            checkpoints="none",
            states="all",
            **self._inputs,
        )
        # the engine keeps actuators within their range
        applied = np.clip(trajectory.ctrl, *self._model.ctrlrange.T)
        value = np.asarray(self._loss.evaluate(trajectory.qpos, trajectory.qvel, applied).value)
        cost = np.where(trajectory.status == 0, value, np.inf)
        return _Candidates(applied, trajectory.qpos, trajectory.qvel, cost)

    def _search(self, best: _Candidates, push: Float64Array, gain: Float64Array) -> _Candidates | None:
        """Try all step lengths; return the best candidate, or None if none is better."""
        rows = slice(0, -1, self._hold)
        feedback = Feedback(gain, best.qpos[0, rows], best.qvel[0, rows])
        limits = self._model.ctrlrange.T
        tried = np.clip(best.ctrl + _STEP_LENGTHS[:, None, None] * push, *limits)
        found = self._simulate(tried, feedback)
        winner = int(np.nanargmin(np.where(np.isfinite(found.cost), found.cost, np.inf)))
        if not found.cost[winner] < best.cost[0]:
            return None
        return found.only(winner)

    def _expand(self, best: _Candidates) -> _Expansion:
        """Linearize the dynamics and expand the loss about a trajectory."""
        qpos, qvel, ctrl = best.qpos[0], best.qvel[0], best.ctrl[0]
        held = np.repeat(ctrl, self._hold, axis=0)
        inputs = {name: self._of_steps(name, array, len(ctrl)) for name, array in self._inputs.items()}
        found = self._sim.jacobian(self._model, qpos[:-1], qvel[:-1], held, params=self._params, **inputs)
        states, controls = _quadratic(self._model, self._loss, qpos, qvel, ctrl)
        low, high = self._model.ctrlrange.T
        return _Expansion(found.A, found.B, states, controls, ctrl <= low, ctrl >= high)

    def _of_steps(self, name: str, array: Float64Array, periods: int) -> Float64Array:
        """Return an input of each step."""
        own = array.shape[array.ndim - (1 if name == "qfrc_applied" else 2) :]
        return np.repeat(np.broadcast_to(array, (periods, *own)), self._hold, axis=0)


@dataclass(frozen=True, eq=False)
class _Candidates:
    """Trajectories of several controls: ctrl [n, T, nu], qpos and qvel [n, steps + 1, …], cost [n]."""

    ctrl: Float64Array
    qpos: Float64Array
    qvel: Float64Array
    cost: Float64Array

    def only(self, number: int) -> _Candidates:
        """Return one of them."""
        return _Candidates(*(getattr(self, name)[number : number + 1] for name in self.__dataclass_fields__))


@dataclass(frozen=True, eq=False)
class _Quadratic:
    """Gradient [times, n] and Hessian [times, n, n] of a loss at each time."""

    gradient: Float64Array
    hessian: Float64Array


@dataclass(frozen=True, eq=False)
class _Expansion:
    """Linear dynamics and quadratic loss: x' = A x + B u, l = g'x + x'Hx/2 for states and for controls.

    A [steps, 2 nv, 2 nv] and B [steps, 2 nv, nu] are those of each step; `at_low` and `at_high` [T, nu] tell
    which controls are at the ends of their range.
    """

    A: Float64Array
    B: Float64Array
    states: _Quadratic
    controls: _Quadratic
    at_low: np.ndarray
    at_high: np.ndarray


def _quadratic(
    model: ModelHandle, loss: Loss, qpos: Float64Array, qvel: Float64Array, ctrl: Float64Array
) -> tuple[_Quadratic, _Quadratic]:
    """Expand a loss at each state, in tangent coordinates, and at each control."""
    arrays = {"qpos": qpos, "qvel": qvel, "ctrl": ctrl}
    parts = {
        name: _Quadratic(np.zeros(array.shape), np.zeros((*array.shape, array.shape[1])))
        for name, array in arrays.items()
    }
    for term in loss.bind(1, {name: array.shape for name, array in arrays.items()}):
        x, part = arrays[term.quantity], parts[term.quantity]
        last = [len(x) - 1]
        times = list(term.times) or (range(len(x)) if term.running else last)
        rows = np.array(times)[:, None]
        error, weight = x[rows, term.entries] - term.target[0], term.weight[0]
        is_squared = term.form == "squared"
        part.gradient[rows, term.entries] += 2 * weight * error if is_squared else weight
        if is_squared:
            part.hessian[rows, term.entries, term.entries] += 2 * weight
    nv, turn = model.nv, tangent_basis(model, qpos)
    gradient = np.concatenate(
        [_apply(turn.swapaxes(1, 2), parts["qpos"].gradient), parts["qvel"].gradient], axis=1
    )
    size = nv + qvel.shape[1]
    hessian = np.zeros((len(qpos), size, size))
    hessian[:, :nv, :nv] = turn.swapaxes(1, 2) @ parts["qpos"].hessian @ turn
    hessian[:, nv:, nv:] = parts["qvel"].hessian
    return _Quadratic(gradient, hessian), parts["ctrl"]


def tangent_basis(model: ModelHandle, qpos: Float64Array) -> Float64Array:
    """Return d qpos / d tangent at configurations [n, nq]: [n, nq, nv].

    The tangent of a quaternion q is a rotation vector r in the moving frame: dq = q (0, r) / 2.
    """
    basis = np.zeros((len(qpos), model.nq, model.nv))
    q = v = 0
    for kind in model.joint_types:
        linear = {"free": 3, "ball": 0}.get(kind, 1)
        basis[:, range(q, q + linear), range(v, v + linear)] = 1.0
        q, v = q + linear, v + linear
        if kind in ("free", "ball"):
            w, x, y, z = qpos[:, q : q + 4].T
            rows = [[-x, -y, -z], [w, -z, y], [z, w, -x], [-y, x, w]]
            basis[:, q : q + 4, v : v + 3] = 0.5 * np.moveaxis(np.array(rows), -1, 0)
            q, v = q + 4, v + 3
    return basis


def _apply(matrices: Float64Array, vectors: Float64Array) -> Float64Array:
    return (matrices @ vectors[..., None])[..., 0]


def _riccati(expansion: _Expansion, damping: float) -> tuple[Float64Array, Float64Array] | None:
    """Return the change of the controls [T, nu] and the gains [T, nu, 2 nv] of the quadratic problem.

    Backwards over the periods, with the value V(x) of the state at a period's end:
        W(x, u) = V + the loss of the states within the period, pulled back step by step by x' = A x + B u
        u = k + K x minimizes W + the loss of u;   V(x) = W(x, k + K x)
    Controls at an end of their range that would leave it stay there. None where W is not convex in u.
    """
    steps, _, nu = expansion.B.shape
    periods = len(expansion.at_low)
    hold, size = steps // periods, expansion.A.shape[1]
    change, gain = np.zeros((periods, nu)), np.zeros((periods, nu, size))
    v, V = np.zeros(size), np.zeros((size, size))
    for period in reversed(range(periods)):
        g, H = expansion.controls.gradient[period].copy(), expansion.controls.hessian[period].copy()
        C = np.zeros((nu, size))
        for step in reversed(range(period * hold, (period + 1) * hold)):
            A, B = expansion.A[step], expansion.B[step]
            v, V = v + expansion.states.gradient[step + 1], V + expansion.states.hessian[step + 1]
            g = g + B.T @ v
            H = H + B.T @ V @ B + C @ B + (C @ B).T
            C = (B.T @ V + C) @ A
            v, V = A.T @ v, A.T @ V @ A
        blocked = (expansion.at_low[period] & (g > 0)) | (expansion.at_high[period] & (g < 0))
        free = np.flatnonzero(~blocked)
        k, K = np.zeros(nu), np.zeros((nu, size))
        try:
            factor = np.linalg.cholesky(H[np.ix_(free, free)] + damping * np.eye(len(free)))
        except np.linalg.LinAlgError:
            return None
        k[free] = -_solve(factor, g[free])
        K[free] = -_solve(factor, C[free])
        v = v + K.T @ (H @ k + g) + C.T @ k
        V = V + K.T @ H @ K + K.T @ C + C.T @ K
        V = 0.5 * (V + V.T)
        change[period], gain[period] = k, K
    return (change, gain) if np.isfinite(change).all() and np.isfinite(gain).all() else None


def _solve(factor: Float64Array, right: Float64Array) -> Float64Array:
    """Solve with a Cholesky factor."""
    return np.linalg.solve(factor.T, np.linalg.solve(factor, right))

"""`Engine`: rollouts and their gradients in this process."""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from revolute.contract.arrays import Float64Array, as_float64
from revolute.contract.checkpoints import Checkpoints
from revolute.contract.controllers import PLAIN, STEP_INPUTS, Control
from revolute.contract.errors import ArgumentError
from revolute.contract.gradient_method import EXACT, GradientMethod
from revolute.contract.loss import Loss, check_loss

from . import native
from ._arguments import QUATERNION_SQUARES, Problem, check_rollout, check_step
from ._controllers import bind, bind_tangents
from ._cotangents import INPUTS, check_clip, check_cotangents, check_tangents, check_times, check_wrt
from ._failures import all_diverged, cancelled, not_finite, too_large, too_many_cotangents
from ._model import Model
from ._options import positive_integer
from ._results import OK, Gradient, Jvp, Rollout, StepJacobian
from ._shaping import (
    Evaluation,
    LossTuple,
    bound_terms,
    evaluated,
    finite_rows,
    gradient_result,
    marked,
    rollout_result,
    with_batch,
)
from .measured_states import (
    States,
    all_probes,
    check_quantities,
    check_states,
    joined_cotangents,
    split_values,
)
from .parameters import (
    PARAMETERS,
    check_params_tan,
    is_per_environment,
    parameter_rows,
    summed_over_environments,
)
from .step_inputs import input_shape, inputs_of, step_inputs

MAX_THREADS = 1024


class Advance(NamedTuple):
    """The end of some steps with constant controls; see `Engine.advance`."""

    qpos: Float64Array
    qvel: Float64Array
    status: npt.NDArray[np.int32]
    unsettled_step: npt.NDArray[np.int64]
    residual: Float64Array


class Engine:
    """Simulates models and differentiates their trajectories.

    Args:
        threads: number of threads that share a batch; by default one per core that this process may use.
            Results do not depend on it.

    Raises:
        ArgumentError: threads is not a positive integer.
    """

    def __init__(self, threads: int | None = None) -> None:
        available = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
        self.threads = available if threads is None else positive_integer("threads", threads, MAX_THREADS)

    def rollout(
        self,
        model: Model,
        qpos: npt.ArrayLike,
        qvel: npt.ArrayLike,
        ctrl: npt.ArrayLike,
        *,
        control: Control = PLAIN,
        params: Mapping[str, npt.ArrayLike] | None = None,
        checkpoints: str | Checkpoints = "every",
        states: str | None = None,
        cancel: native.CancelToken | None = None,
    ) -> Rollout:
        """Simulate one trajectory per environment.

        Args:
            model: the model.
            qpos: start positions, shape [batch, nq], or [nq] for all environments; quaternions are
                normalised.
            qvel: start velocities, shape [batch, nv] or [nv].
            ctrl: controls, shape [batch, time, nu], or [time, nu] for a single environment.
            control: how the rows of ctrl act: how long each is held, and what a controller adds.
            params: model parameters to replace, by the names and shapes of `parameters.PARAMETERS`. A leading
                batch axis gives each environment its own value.
            checkpoints: which states are kept for the gradient: "every", "interval=k", "slots=s", or "none"
                (no gradient).
            states: "all" or "final": which states the result holds besides the checkpoints. The default is
                "all" with checkpoints "every", else "final".
            cancel: token whose `cancel()` stops the call within one step.

        Returns:
            The trajectories; `status` reports environments that diverged. They do not affect the others.

        Raises:
            ArgumentError: a shape, a number or a name is wrong.
            Cancelled: the token was cancelled.
        """
        _check_model(model)
        _check_cancel(cancel)
        policy = Checkpoints.parse(checkpoints)
        wanted = _wants_all_states(states, policy)
        kept = policy.differentiable  # the result keeps ctrl for its gradient
        problem = check_rollout(
            model,
            qpos,
            qvel,
            ctrl,
            params,
            control,
            policy,
            all_states=wanted,
            copy_ctrl=kept,
            copy_states=False,
        )
        return self._simulate(model, problem, policy, wanted, cancel)

    def advance(
        self,
        model: Model,
        qpos: npt.ArrayLike,
        qvel: npt.ArrayLike,
        ctrl: npt.ArrayLike,
        steps: int,
        *,
        inputs: Mapping[str, npt.ArrayLike] | None = None,
        cancel: native.CancelToken | None = None,
    ) -> Advance:
        """Simulate some steps with constant controls, and return only the final state.

        Args:
            model: the model.
            qpos: start positions, shape [batch, nq], or [nq] for all environments.
            qvel: start velocities, shape [batch, nv] or [nv].
            ctrl: controls, shape [batch, nu].
            steps: number of steps, from 0.
            inputs: inputs of `STEP_INPUTS` by name, constant: [batch, size], or [size] for all environments.
            cancel: token whose `cancel()` stops the call within one step.

        Returns:
            Positions [batch, nq], velocities [batch, nv], status, unsettled_step and residual [batch]. They
            equal bit for bit those of a rollout with these controls in every step. The state of a diverged
            environment is NaN.

        Raises:
            ArgumentError: a shape or a number is wrong.
            Cancelled: the token was cancelled.
        """
        _check_model(model)
        _check_cancel(cancel)
        problem = check_step(model, qpos, qvel, ctrl, None)
        held = {}
        if inputs:
            checked = step_inputs(model, inputs, len(problem.ctrl), True)
            held = {name: rows[:, None] for name, rows in checked.items()}
        found = native.advance(
            model.native, problem.qpos, problem.qvel, problem.ctrl, steps, held, self.threads, cancel
        )
        if found is None:
            raise cancelled("advance")
        return Advance(*found)

    def start_states(
        self, model: Model, batch: int, qpos: npt.ArrayLike, qvel: npt.ArrayLike, *, own: bool = True
    ) -> tuple[Float64Array, Float64Array]:
        """Check start states and return the states of a rollout at time 0, without simulating.

        Args:
            model: the model.
            batch: number of environments.
            qpos: start positions, shape [batch, nq], or [nq] for all environments.
            qvel: start velocities, shape [batch, nv] or [nv].
            own: whether to copy the states; if False, the result may share the arguments' memory.

        Returns:
            Positions [batch, nq] and velocities [batch, nv].

        Raises:
            ArgumentError: a shape or a number is wrong.
        """
        _check_model(model)
        problem = check_rollout(model, qpos, qvel, np.empty((batch, 0, model.nu)), None, copy_states=own)
        return problem.qpos, problem.qvel

    def states(
        self, model: Model, rollout: Rollout, *, cancel: native.CancelToken | None = None
    ) -> tuple[Float64Array, Float64Array]:
        """Return all states of a trajectory; missing ones are replayed.

        Args:
            model: the model of the rollout.
            rollout: the trajectories, with checkpoints other than "none" or with their states.
            cancel: token whose `cancel()` stops the call within one step.

        Returns:
            Positions [batch, time + 1, nq] and velocities [batch, time + 1, nv], bit-identical to the
            simulated ones.

        Raises:
            ArgumentError: the rollout is of another model, or has checkpoints "none".
            LimitError: the states do not fit in memory.
            Cancelled: the token was cancelled.
        """
        _check_model(model)
        _check_cancel(cancel)
        _check_rollout_of(model, rollout)
        if rollout.all_states is not None:
            return rollout.all_states
        _check_differentiable(rollout)
        qpos, qvel, ctrl = (
            with_batch(array, rollout.batched)
            for array in (rollout.kept_qpos, rollout.kept_qvel, rollout.ctrl)
        )
        first = np.ascontiguousarray(qpos[:, 0]), np.ascontiguousarray(qvel[:, 0])
        control = rollout.control.as_applied
        controller = bind(model, control, ctrl.shape[0], ctrl.shape[1], rollout.batched)
        problem = Problem(
            first[0], first[1], ctrl, dict(rollout.params), rollout.batched, control, controller
        )
        replayed = self._simulate(model, problem, Checkpoints("none"), True, cancel)
        return replayed.qpos, replayed.qvel

    def _simulate(
        self,
        model: Model,
        problem: Problem,
        checkpoints: Checkpoints,
        all_states: bool,
        cancel: native.CancelToken | None,
    ) -> Rollout:
        """Run a rollout with checked arguments."""
        every = checkpoints.policy == "every"
        try:
            found = native.rollout(
                model.native,
                *problem.native_inputs(),
                checkpoints.policy,
                checkpoints.count,
                all_states and not every,
                self.threads,
                cancel,
            )
        except MemoryError:
            batch, steps = len(problem.ctrl), problem.steps
            count = checkpoints.states(steps) + (steps + 1 if all_states and not every else 0)
            raise too_large(model, batch, steps, count) from None
        if found is None:
            raise cancelled("rollout")
        return rollout_result(model, problem, checkpoints, found)

    def backward(
        self,
        model: Model,
        rollout: Rollout,
        qpos_bar: npt.ArrayLike | None = None,
        qvel_bar: npt.ArrayLike | None = None,
        *,
        ctrl_bar: npt.ArrayLike | None = None,
        times: npt.ArrayLike | None = None,
        wrt: Iterable[str] = INPUTS,
        gradient: str | GradientMethod = EXACT,
        clip: float | None = None,
        on_diverged: str = "raise",
        cancel: native.CancelToken | None = None,
    ) -> Gradient:
        """Pull the gradient of a loss back through a trajectory.

        Args:
            model: the model of the rollout.
            rollout: the trajectories.
            qpos_bar: d loss / d qpos, shape [batch, time + 1, nq]; None for zero. With a leading axis K, the
                call returns K gradients.
            qvel_bar: d loss / d qvel, shape [batch, time + 1, nv]; None for zero. It has the axis K if
                `qpos_bar` has.
            ctrl_bar: d loss / d ctrl at fixed states, by the controls as they acted, shape
                [batch, periods, nu]; None for zero. It has the axis K if the others have.
            times: indices of the states that the cotangents belong to, ascending, e.g. [-1] for the final
                one; the time axis of the cotangents then has this length. None for all states.
            wrt: what to differentiate by: qpos, qvel (the start state), ctrl, the arrays of `control`
                (`feedback.gain`, `feedback.qpos`, `feedback.qvel`, `policy.weights`, `policy.goal`, and
                those of `STEP_INPUTS` that are given), and any parameter that `rollout` accepts.
            gradient: "exact", or "contact_from_distance[=metres]": shapes that do not touch answer by a weak
                force in the derivative alone; see docs/gradients.md.
            clip: largest norm of a state's cotangent (tangent coordinates of qpos, and qvel); longer ones are
                scaled down before they are pulled back through a step. None for no bound.
            on_diverged: "raise" an error if every environment diverged, or "inf" for a gradient of NaN then.
            cancel: token whose `cancel()` stops the call within one step.

        Returns:
            One array per name in `wrt`, shaped like that input. The gradient of a parameter that the
            environments share is the sum over those that completed.

        Raises:
            ArgumentError: a shape does not match the trajectory, or a name is unknown.
            DivergedError: every environment diverged.
            Cancelled: the token was cancelled.

        Source: the stages of engine/include/revolute/step.hpp, reversed step by step.
        """
        _check_model(model)
        _check_cancel(cancel)
        _check_rollout_of(model, rollout)
        _check_differentiable(rollout)
        names, method = check_wrt(wrt, model, rollout.control), _checked_method(model, gradient)
        bound, raises = check_clip(clip), _check_on_diverged(on_diverged)
        completed = np.atleast_1d(rollout.status) == OK
        indices = check_times(times, rollout.steps)
        count = rollout.steps + 1 if indices is None else len(indices)
        shapes = {
            "qpos_bar": (rollout.batch, count, model.nq),
            "qvel_bar": (rollout.batch, count, model.nqvel),
            "ctrl_bar": (rollout.batch, *rollout.ctrl.shape[-2:]),
        }
        given = {"qpos_bar": qpos_bar, "qvel_bar": qvel_bar, "ctrl_bar": ctrl_bar}
        bars, cotangents, has_k = check_cotangents(shapes, given, completed, rollout.batched)
        kept_qpos, kept_qvel, ctrl, status = (
            with_batch(array, rollout.batched)
            for array in (rollout.kept_qpos, rollout.kept_qvel, rollout.ctrl, rollout.status)
        )
        if raises and not np.count_nonzero(completed):
            raise all_diverged(model, np.atleast_1d(rollout.diverged_step))
        try:
            found = native.backward(
                model.native,
                rollout.checkpoints.policy,
                rollout.checkpoints.count,
                kept_qpos,
                kept_qvel,
                ctrl,
                rollout.control.hold,
                bind(model, rollout.control, ctrl.shape[0], ctrl.shape[1], rollout.batched),
                status,
                parameter_rows(rollout.params),
                cotangents,
                bars["qpos_bar"],
                bars["qvel_bar"],
                bars["ctrl_bar"],
                indices,
                names,
                bound,
                method.distance,
                self.threads,
                cancel,
            )
        except MemoryError:
            raise too_many_cotangents(cotangents, ctrl.nbytes) from None
        if found is None:
            raise cancelled("backward")
        pulled, replayed, clipped = found
        return gradient_result(
            model,
            pulled,
            rollout,
            (status, rollout.diverged_step),
            rollout.cost(int(replayed.sum())),
            has_k,
            method=method,
            clipped=clipped if bound else None,
            raises=raises,
        )

    def value_and_gradient(
        self,
        model: Model,
        qpos: npt.ArrayLike,
        qvel: npt.ArrayLike,
        ctrl: npt.ArrayLike,
        loss: Loss,
        *,
        control: Control = PLAIN,
        params: Mapping[str, npt.ArrayLike] | None = None,
        wrt: Iterable[str] = INPUTS,
        checkpoints: str | Checkpoints = "every",
        gradient: str | GradientMethod = EXACT,
        clip: float | None = None,
        on_diverged: str = "raise",
        cancel: native.CancelToken | None = None,
    ) -> tuple[Float64Array | float, Gradient]:
        """Simulate, evaluate a loss and pull its gradient back.

        Packs of environments are simulated and differentiated one after the other. Memory holds only the
        states of the packs being processed.

        Args:
            model: the model.
            qpos: start positions, shape [batch, nq] or [nq].
            qvel: start velocities, shape [batch, nv] or [nv].
            ctrl: controls, shape [batch, time, nu] or [time, nu].
            loss: the loss as data.
            control: how the rows of ctrl act, as in `rollout`. Terms of ctrl weigh the controls as they act,
                each once.
            params: model parameters by name, as in `rollout`.
            wrt: what to differentiate by, as in `backward`.
            checkpoints: which states are kept during the call, as in `rollout`, but not "none". Beyond inputs
                and gradient, only these states grow with time.
            gradient: how to differentiate, as in `backward`.
            clip: bound of the cotangents, as in `backward`.
            on_diverged: "raise" an error if every environment diverged; or "inf": the value of environments
                that diverged, or whose loss overflows, is infinite, and no error is raised for them.
            cancel: token whose `cancel()` stops the call within one step.

        Returns:
            The loss of each environment, [batch] (a float without a batch axis, NaN for a diverged
            environment), and its gradient.

        Raises:
            ArgumentError: an argument or a term of the loss does not fit the model.
            DivergedError: every environment diverged.
            Cancelled: the token was cancelled.
        """
        _check_model(model)
        names = check_wrt(wrt, model, control)
        checked = check_loss(loss)
        bound, raises = check_clip(clip), _check_on_diverged(on_diverged)
        method = _checked_method(model, gradient)
        _check_cancel(cancel)
        policy = Checkpoints.parse(checkpoints)
        if not policy.differentiable:
            raise ArgumentError.expected("checkpoints", "a policy with a gradient", repr(str(policy)))
        problem = check_rollout(
            model, qpos, qvel, ctrl, params, control, policy, copy_ctrl=False, copy_states=False
        )
        measures = any(term.quantity not in INPUTS for term in checked.terms)
        if control.inputs and measures and not problem.steps:
            raise ArgumentError.expected(
                "ctrl",
                f"at least one row for a loss that measures beside {', '.join(control.inputs)}",
                "none",
                advice="use kinematics",
            )
        terms = bound_terms(model, checked, problem)
        found = self._evaluate(model, problem, policy, terms, names, cancel, bound, method)
        return evaluated(model, problem, policy, found, method, clip=bound, raises=raises)

    def _evaluate(
        self,
        model: Model,
        problem: Problem,
        checkpoints: Checkpoints,
        terms: Sequence[LossTuple],
        names: Sequence[str],
        cancel: native.CancelToken | None,
        clip: float = 0.0,
        method: GradientMethod = EXACT,
    ) -> Evaluation:
        """Evaluate and differentiate a loss with checked arguments."""
        try:
            found = native.value_and_gradient(
                model.native,
                *problem.native_inputs(),
                checkpoints.policy,
                checkpoints.count,
                list(terms),
                list(names),
                clip,
                method.distance,
                self.threads,
                cancel,
            )
        except MemoryError:
            steps = problem.steps
            raise too_large(model, len(problem.ctrl), steps, checkpoints.states(steps)) from None
        if found is None:
            raise cancelled("value_and_gradient")
        return Evaluation(*found)

    def jvp(
        self,
        model: Model,
        rollout: Rollout,
        *,
        qpos_tan: npt.ArrayLike | None = None,
        qvel_tan: npt.ArrayLike | None = None,
        ctrl_tan: npt.ArrayLike | None = None,
        params_tan: Mapping[str, npt.ArrayLike] | None = None,
        control_tan: Mapping[str, npt.ArrayLike] | None = None,
        cancel: native.CancelToken | None = None,
    ) -> Jvp:
        """Push a tangent of the inputs forward through a trajectory. At least one tangent is required.

        Args:
            model: the model of the rollout.
            rollout: the trajectories.
            qpos_tan: tangent of the start positions, shape [batch, nv], or [nv] for all environments; None
                for zero. The tangent of a quaternion is a rotation vector in the moving frame.
            qvel_tan: tangent of the start velocities, shape [batch, nv] or [nv]; None for zero.
            ctrl_tan: tangent of the controls, shape [batch, time, nu], or [time, nu] for all environments;
                None for zero.
            params_tan: tangents of model parameters by name, shaped as the parameters; None for zero.
            control_tan: tangents of the arrays of `control` by their names in `wrt`, e.g. "policy.weights",
                shaped as these; that of "feedback.qpos" has nv numbers. None for zero.
            cancel: token whose `cancel()` stops the call within one step.

        Returns:
            The tangents of all states, and of the controls as they acted. A controller answers to them;
            `ctrl_tan` is that of the controls that it adds to.

        Raises:
            ArgumentError: a shape does not match the trajectory, or a name is not known.
            DivergedError: every environment diverged.
            Cancelled: the token was cancelled.

        Source: the stages of engine/include/revolute/step.hpp on dual numbers.
        """
        _check_model(model)
        _check_cancel(cancel)
        _check_rollout_of(model, rollout)
        ctrl, status = (with_batch(array, rollout.batched) for array in (rollout.ctrl, rollout.status))
        batch = len(ctrl)
        given = {"qpos_tan": qpos_tan, "qvel_tan": qvel_tan, "ctrl_tan": ctrl_tan}
        by_name = params_tan is not None or control_tan is not None
        if not by_name and all(value is None for value in given.values()):
            names = f"{', '.join(given)}, params_tan, control_tan"
            raise ArgumentError.expected(names, "a tangent in at least one", "None in all")
        shapes = {"qpos_tan": (batch, model.nv), "qvel_tan": (batch, model.nqvel), "ctrl_tan": ctrl.shape}
        tangents = check_tangents(shapes, given, rollout.batched)
        params_tangents = check_params_tan(model, params_tan, batch, rollout.batched)
        axes = (*ctrl.shape[:2], rollout.batched)
        control_tangents = bind_tangents(model, rollout.control, control_tan, *axes)
        completed = status == OK
        if not completed.any():
            raise all_diverged(model, np.atleast_1d(rollout.diverged_step))
        states = self.states(model, rollout, cancel=cancel)
        pushed = native.jvp(
            model.native,
            *(with_batch(array, rollout.batched) for array in states),
            ctrl,
            rollout.control.hold,
            bind(model, rollout.control, *axes),
            parameter_rows(rollout.params),
            *tangents.values(),
            parameter_rows(params_tangents),
            control_tangents,
            self.threads,
            cancel,
        )
        if pushed is None:
            raise cancelled("jvp")
        finite = completed & finite_rows(array[None] for array in pushed)
        if not finite.any():
            raise not_finite("jvp", completed)
        return Jvp(*(marked(array, finite, rollout.batched) for array in pushed))

    def jacobian(
        self,
        model: Model,
        qpos: npt.ArrayLike,
        qvel: npt.ArrayLike,
        ctrl: npt.ArrayLike,
        *,
        params: Mapping[str, npt.ArrayLike] | None = None,
        inputs: Mapping[str, npt.ArrayLike] | None = None,
        cancel: native.CancelToken | None = None,
    ) -> StepJacobian:
        """Differentiate one step with respect to its state and controls.

        Args:
            model: the model.
            qpos: positions, shape [batch, nq], or [nq] for all environments.
            qvel: velocities, shape [batch, nv] or [nv].
            ctrl: controls, shape [batch, nu], or [nu] for a single environment.
            params: model parameters by name, as in `rollout`.
            inputs: inputs of `STEP_INPUTS` by name, with the leading axes of ctrl, or without for all.
            cancel: token whose `cancel()` stops the call.

        Returns:
            The matrices A and B, in the tangent convention and order of MuJoCo's `mjd_transitionFD`, in new
            arrays.

        Raises:
            ArgumentError: a shape, a number or a name is wrong.
            DivergedError: the step of every environment diverges.
            Cancelled: the token was cancelled.
        """
        _check_model(model)
        _check_cancel(cancel)
        found: Any = False
        if params is None and not inputs:
            # fast path: check and compute in one native call; separate checks would cost a tenth of the time
            controls = as_float64("ctrl", ctrl)
            state = as_float64("qpos", qpos), as_float64("qvel", qvel)
            found = native.sound_jacobian(
                model.native, *state, controls, *QUATERNION_SQUARES, self.threads, cancel
            )
        if found is False:
            problem = check_step(model, qpos, qvel, ctrl, params)
            found = native.jacobian(
                model.native,
                problem.qpos,
                problem.qvel,
                problem.ctrl if problem.batched else problem.ctrl[0],
                step_inputs(model, inputs, len(problem.ctrl), problem.batched),
                parameter_rows(problem.params),
                self.threads,
                cancel,
            )
        if found is None:
            raise cancelled("jacobian")
        by_state, by_ctrl, any_finite = found
        if not any_finite:
            raise all_diverged(model, np.zeros(len(by_state) if by_state.ndim == 3 else 1, np.int64))
        return StepJacobian(by_state, by_ctrl)

    def states_to_measure(
        self,
        model: Model,
        qpos: npt.ArrayLike,
        qvel: npt.ArrayLike | None = None,
        ctrl: npt.ArrayLike | None = None,
        *,
        time: npt.ArrayLike | None = None,
        params: Mapping[str, npt.ArrayLike] | None = None,
        inputs: Mapping[str, npt.ArrayLike] | None = None,
        diverged: bool = False,
    ) -> States:
        """Check states for `measure`, `measure_backward` and `measure_jacobian`.

        Args:
            model: the model.
            qpos: configurations, [nq], [batch, nq] or [batch, time, nq].
            qvel: velocities with the same leading axes, or [nv] for all; None for zero.
            ctrl: controls with the same leading axes, or [nu] for all; sensors of forces and accelerations
                need them.
            time: time in s for clocks, a number or one per time; None for zero.
            params: model parameters by name, as in `rollout`.
            inputs: inputs of `STEP_INPUTS` by name, with the leading axes of qpos, or without for all.
            diverged: whether states may be NaN; their measured quantities are NaN.

        Raises:
            ArgumentError: a shape, a number or a name is wrong.
        """
        _check_model(model)
        return check_states(model, qpos, qvel, ctrl, time, params, inputs or {}, diverged=diverged)

    def states_of(
        self,
        model: Model,
        rollout: Rollout,
        times: npt.ArrayLike | None = None,
        *,
        cancel: native.CancelToken | None = None,
    ) -> States:
        """Return the states of a trajectory for `measure`, with the controls that act there.

        The state at time t goes with the control of step t, the last one with that of the last step.

        Args:
            model: the model of the rollout.
            rollout: the trajectories.
            times: indices of states, ascending; negative ones count from the end; None for all.
            cancel: token whose `cancel()` stops the call within one step.

        Raises:
            ArgumentError: the rollout is of another model, or times do not fit it.
            Cancelled: the token was cancelled.
        """
        qpos, qvel = self.states(model, rollout, cancel=cancel)
        chosen = check_times(times, rollout.steps)
        indices = np.arange(rollout.steps + 1) if chosen is None else chosen
        states = [with_batch(array, rollout.batched)[:, indices] for array in (qpos, qvel)]
        ctrl, inputs = self._controls_at(model, rollout, indices)
        lead = (rollout.batch, len(indices)) if rollout.batched else (len(indices),)
        time = indices.astype(np.float64) * model.timestep
        return States(states[0], states[1], ctrl, inputs, time, dict(rollout.params), lead)

    def _controls_at(
        self, model: Model, rollout: Rollout, times: npt.NDArray[np.int64]
    ) -> tuple[Float64Array, dict[str, Float64Array]]:
        """Return the controls and other inputs [batch, times, n] that act at states of a trajectory.

        Without steps these are no controls, and the inputs that are the same at all times.
        """
        ctrl, control = with_batch(rollout.ctrl, rollout.batched), rollout.control.as_applied
        if not rollout.steps:
            ctrl = np.zeros((rollout.batch, 1, model.nu))
            gone: dict[str, Any] = {name: None for name, array in control.inputs.items() if not array.size}
            control = replace(control, **gone)
        rows = np.minimum(times, max(0, rollout.steps - 1)) // control.hold
        found = bind(model, control, ctrl.shape[0], ctrl.shape[1], rollout.batched) or {}
        inputs = {name: np.ascontiguousarray(found[name][:, rows]) for name in STEP_INPUTS if name in found}
        return ctrl[:, rows], inputs

    def measure(
        self,
        model: Model,
        quantities: Iterable[str],
        states: States,
        *,
        cancel: native.CancelToken | None = None,
    ) -> dict[str, Float64Array]:
        """Measure at states: poses, velocities, centres of mass and sensors.

        Args:
            model: the model.
            quantities: names of `contract.measures.MEASURES`, such as "site_pos" for all sites, or
                "site_pos:hand" for one; "sensor" for all sensors of the file.
            states: from `states_to_measure` or `states_of`.
            cancel: token whose `cancel()` stops the call.

        Returns:
            One array per name: [..., elements, n] of all elements, [..., n] of one element or of sensors,
            with the leading axes of the states.

        Raises:
            ArgumentError: a name is unknown, or the engine does not compute a sensor.
            Cancelled: the token was cancelled.
        """
        wanted = check_quantities(model, "quantities", quantities)
        probes = all_probes(wanted, states)
        values = native.measure(*_measure_inputs(model, probes, states), self.threads, cancel)
        if values is None:
            raise cancelled("measure")
        return split_values(wanted, values, states.lead)

    def measure_backward(
        self,
        model: Model,
        cotangents: Mapping[str, npt.ArrayLike],
        states: States,
        *,
        wrt: Iterable[str] = ("qpos", "qvel"),
        cancel: native.CancelToken | None = None,
    ) -> dict[str, Float64Array]:
        """Pull cotangents of measured quantities back to the states.

        Args:
            model: the model.
            cotangents: d loss / d quantity by name, shaped as from `measure`; with a leading axis K, the call
                returns K gradients.
            states: as in `measure`.
            wrt: what to differentiate by: qpos, qvel, ctrl, those of `STEP_INPUTS`, and names of parameters.
            cancel: token whose `cancel()` stops the call.

        Returns:
            One array per name in `wrt`: with the leading axes of qpos, or shaped like the parameter, summed
            over the states.

        Raises:
            ArgumentError: a name is unknown, or a shape does not fit.
            Cancelled: the token was cancelled.
        """
        names = check_wrt(wrt, model, others=inputs_of(model))
        wanted = check_quantities(model, "cotangents", cotangents)
        states = _with_zero_forces(model, states, names)
        bars, has_k = joined_cotangents(wanted, cotangents, states)
        probes = all_probes(wanted, states)
        pulled = native.measure_backward(
            *_measure_inputs(model, probes, states), bars, names, self.threads, cancel
        )
        if pulled is None:
            raise cancelled("measure_backward")
        found = {name: self._measured_gradient(model, name, pulled[name], states) for name in names}
        return found if has_k else {name: array[0] for name, array in found.items()}

    def _measured_gradient(
        self, model: Model, name: str, pulled: Float64Array, states: States
    ) -> Float64Array:
        if name not in PARAMETERS:
            own = input_shape(model, name) if name in STEP_INPUTS else pulled.shape[-1:]
            return pulled.reshape(len(pulled), *states.lead, *own)
        pulled = pulled.reshape(pulled.shape[:2] + PARAMETERS[name].shape(model))
        if name in states.params and is_per_environment(name, states.params[name]):
            return pulled
        return summed_over_environments(pulled, np.full(len(states.qpos), True))

    def measure_jacobian(
        self,
        model: Model,
        quantities: Iterable[str],
        states: States,
        *,
        cancel: native.CancelToken | None = None,
    ) -> dict[str, Float64Array]:
        """Differentiate measured quantities by the tangent of qpos, as MuJoCo's Jacobians are.

        Args:
            model: the model.
            quantities: names, as in `measure`.
            states: as in `measure`.
            cancel: token whose `cancel()` stops the call.

        Returns:
            For each name an array with the axes of the quantity and then nv.

        Raises:
            ArgumentError: a name is unknown.
            Cancelled: the token was cancelled.
        """
        wanted = check_quantities(model, "jacobians", quantities)
        found = {}
        for name, quantity in wanted.items():
            probes = all_probes({name: quantity}, states)
            count = int(np.prod(quantity.shape))
            unit = np.broadcast_to(np.eye(count)[:, None, None], (count, *states.qpos.shape[:2], count))
            pulled = native.measure_backward(
                *_measure_inputs(model, probes, states),
                np.ascontiguousarray(unit),
                ["tangent"],
                self.threads,
                cancel,
            )
            if pulled is None:
                raise cancelled("measure_jacobian")
            rows = np.moveaxis(pulled["tangent"], 0, 2)
            found[name] = np.ascontiguousarray(rows).reshape(*states.lead, *quantity.shape, model.nv)
        return found

    def contacts(self, model: Model, states: States) -> dict[str, npt.NDArray[Any]]:
        """Find the contacts at states and their forces.

        Args:
            model: the model.
            states: from `states_to_measure` (with controls) or `states_of`.

        Returns:
            Arrays with a row per contact: state (its place among the states [batch, count], flattened), geom
            [n, 2], distance [n], position [n, 3], frame [n, 3, 3] (rows: normal from the first shape to the
            second, two tangents) and force [n, 6] on the second shape along these axes, with the torque.

        Raises:
            ArgumentError: the states have no controls.
        """
        if states.ctrl is None:
            raise ArgumentError.expected("ctrl", "controls, which forces depend on", "none")
        batch, count = states.qpos.shape[:2]
        rows = parameter_rows(states.params)
        flat = {name: np.repeat(row, count, axis=0) if len(row) > 1 else row for name, row in rows.items()}
        arrays = (states.qpos, states.qvel, states.ctrl)
        given = (each.reshape(batch * count, each.shape[-1]) for each in arrays)
        inputs = {name: each.reshape(batch * count, each.shape[-1]) for name, each in states.inputs.items()}
        found = native.contact_forces(model.native, *given, inputs, flat)
        return {"state": np.repeat(np.arange(batch * count), found.pop("count")), **found}


def _measure_inputs(model: Model, probes: Sequence[Any], states: States) -> tuple[Any, ...]:
    rows = parameter_rows(states.params)
    return (
        model.native,
        list(probes),
        states.qpos,
        states.qvel,
        states.ctrl,
        states.inputs,
        states.time,
        rows,
    )


def _with_zero_forces(model: Model, states: States, names: Sequence[str]) -> States:
    """Return states with zeros for the applied forces that are differentiated by and not given."""
    axes = states.qpos.shape[:2]
    zeros = {
        name: np.zeros((*axes, int(np.prod(input_shape(model, name)))))
        for name in names
        if name in ("qfrc_applied", "xfrc_applied") and name not in states.inputs
    }
    return states._replace(inputs={**states.inputs, **zeros})


def _check_model(model: Any) -> None:
    if not isinstance(model, Model):
        raise ArgumentError.expected("model", "a Model from load_model", type(model).__name__)


def _check_cancel(cancel: Any) -> None:
    if cancel is not None and not isinstance(cancel, native.CancelToken):
        raise ArgumentError.expected("cancel", "a CancelToken", type(cancel).__name__)


def _check_rollout_of(model: Model, rollout: Any) -> None:
    """Raise an error for a trajectory of another model; its gradient would be silently wrong."""
    if not isinstance(rollout, Rollout):
        raise ArgumentError.expected("rollout", "a Rollout from Engine.rollout", type(rollout).__name__)
    if rollout.model_id != model.id:
        raise ArgumentError.expected(
            "rollout",
            f"a trajectory of model '{model.name}' ({model.id[:8]})",
            f"one of {rollout.model_id[:8]}",
            advice="pass the model that was simulated",
        )


def _check_differentiable(rollout: Rollout) -> None:
    if not rollout.checkpoints.differentiable:
        raise ArgumentError.expected(
            "rollout",
            "a trajectory with checkpoints",
            "one with checkpoints 'none'",
            advice="simulate it with checkpoints='slots=32' or another policy",
        )


def _check_on_diverged(word: Any) -> bool:
    """Return whether a call raises an error if every environment diverged."""
    if word not in ("raise", "inf"):
        raise ArgumentError.expected("on_diverged", "'raise' or 'inf'", repr(word)[:60])
    return bool(word == "raise")


def _wants_all_states(states: Any, checkpoints: Checkpoints) -> bool:
    if states not in (None, "all", "final"):
        raise ArgumentError.expected("states", "'all' or 'final'", repr(states))
    return checkpoints.policy == "every" if states is None else states == "all"


def _checked_method(model: Model, gradient: str | GradientMethod) -> GradientMethod:
    """Return how to differentiate, if the model's contact model knows it."""
    method = GradientMethod.parse(gradient)
    if not method.is_exact and model.options["contact_model"] != "mujoco":
        raise ArgumentError.expected(
            "gradient",
            "'exact' with contact_model=\"hard\"",
            repr(str(method)),
            advice='load the model with contact_model="mujoco"',
        )
    return method

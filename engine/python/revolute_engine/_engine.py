"""`Engine`: rollouts and their gradients in this process."""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping
from typing import Any

import numpy as np
import numpy.typing as npt

from revolute.errors import ArgumentError
from revolute.loss import Loss, check_loss

from . import _native
from ._arguments import Problem, check_rollout, check_step
from ._cotangents import INPUTS, check_cotangents, check_tangents, check_wrt
from ._failures import all_diverged, cancelled, not_finite, too_large, too_many_cotangents
from ._model import Model
from ._options import positive_integer
from ._parameters import PARAMETERS, check_params_tan, is_per_environment, parameter_rows
from ._results import NOT_FINITE, OK, Gradient, Jvp, Rollout, StepJacobian

Float64Array = npt.NDArray[np.float64]

MAX_THREADS = 1024


class Engine:
    """Simulates models and differentiates their trajectories.

    Args:
        threads: number of threads that share a batch; by default one per core this process may use. Results
            do not depend on it.

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
        params: Mapping[str, npt.ArrayLike] | None = None,
        cancel: _native.CancelToken | None = None,
    ) -> Rollout:
        """Simulate one trajectory per environment.

        Args:
            model: the model.
            qpos: start positions, shape [batch, nq], or [nq] for all environments; quaternions are
                normalised.
            qvel: start velocities, shape [batch, nv] or [nv].
            ctrl: controls, shape [batch, time, nu], or [time, nu] for a single environment.
            params: model parameters instead of the model's own, by name, shaped as in MuJoCo, or with a
                leading batch axis to give each environment its own: geom_friction [ngeom] (sliding),
                body_mass [nbody], body_ipos [nbody, 3], body_inertia [nbody, 3], dof_damping [nv],
                dof_armature [nv], dof_frictionloss [nv], jnt_stiffness [njnt], gravity [3], actuator_gear
                [nu], restitution [].
            cancel: token whose `cancel()` stops the call within one step.

        Returns:
            The trajectories; an environment that diverges says so in `status` and does not disturb the
            others.

        Raises:
            ArgumentError: a shape, a number or a name is wrong.
            Cancelled: the token was cancelled.
        """
        _check_model(model)
        _check_cancel(cancel)
        problem = check_rollout(model, qpos, qvel, ctrl, params)
        try:
            states = _native.rollout(
                model.native,
                problem.qpos,
                problem.qvel,
                problem.ctrl,
                parameter_rows(problem.params),
                self.threads,
                cancel,
            )
        except MemoryError:
            raise too_large(model, *problem.ctrl.shape[:2]) from None
        if states is None:
            raise cancelled("rollout")
        return _rollout_result(model, problem, *states)

    def backward(
        self,
        model: Model,
        rollout: Rollout,
        qpos_bar: npt.ArrayLike | None = None,
        qvel_bar: npt.ArrayLike | None = None,
        *,
        wrt: Iterable[str] = INPUTS,
        cancel: _native.CancelToken | None = None,
    ) -> Gradient:
        """Pull the gradient of a loss back through a trajectory.

        Args:
            model: the model of the rollout.
            rollout: the trajectories.
            qpos_bar: d loss / d qpos, shape [batch, time + 1, nq]; a leading axis K asks for K gradients.
                None is zero.
            qvel_bar: d loss / d qvel, shape [batch, time + 1, nv], likewise.
            wrt: what to differentiate by: qpos, qvel (the start state), ctrl, and any of the parameters that
                `rollout` accepts.
            cancel: token whose `cancel()` stops the call within one step.

        Returns:
            One array per name in `wrt`, shaped like that input; a model parameter that is shared by the
            environments has the sum over those that completed.

        Raises:
            ArgumentError: a shape does not match the trajectory, or a name is not known.
            DivergedError: every environment diverged.
            Cancelled: the token was cancelled.

        Source: the stages of engine/include/revolute/step.hpp, reversed step by step.
        """
        _check_model(model)
        _check_cancel(cancel)
        _check_rollout_of(model, rollout)
        names = check_wrt(wrt)
        arrays = {name: _with_batch(getattr(rollout, name), rollout.batched) for name in (*INPUTS, "status")}
        diverged_step = np.atleast_1d(rollout.diverged_step)
        completed = arrays["status"] == OK
        shapes = {"qpos_bar": arrays["qpos"].shape, "qvel_bar": arrays["qvel"].shape}
        given = {"qpos_bar": qpos_bar, "qvel_bar": qvel_bar}
        bars, has_k = check_cotangents(shapes, given, completed, rollout.batched)
        if not completed.any():
            raise all_diverged(model, diverged_step)
        try:
            pulled = _native.backward(
                model.native,
                *(arrays[name] for name in INPUTS),
                parameter_rows(rollout.params),
                *(bars[name] for name in shapes),
                [name for name in names if name in PARAMETERS],
                self.threads,
                cancel,
            )
        except MemoryError:
            raise too_many_cotangents(len(bars["qpos_bar"]), arrays["ctrl"].nbytes) from None
        if pulled is None:
            raise cancelled("backward")
        finite = completed & _finite_rows(pulled[name].swapaxes(0, 1) for name in names)
        if not finite.any():
            raise not_finite("backward", completed)
        status = np.where(completed & ~finite, NOT_FINITE, arrays["status"]).astype(np.int32)
        shaped = {name: _shaped(model, name, pulled[name], rollout, finite, has_k) for name in names}
        return Gradient(shaped, status if rollout.batched else status[0, ...], rollout.diverged_step)

    def value_and_gradient(
        self,
        model: Model,
        qpos: npt.ArrayLike,
        qvel: npt.ArrayLike,
        ctrl: npt.ArrayLike,
        loss: Loss,
        *,
        params: Mapping[str, npt.ArrayLike] | None = None,
        wrt: Iterable[str] = INPUTS,
        cancel: _native.CancelToken | None = None,
    ) -> tuple[Float64Array | float, Gradient, Rollout]:
        """Simulate, evaluate a loss and pull its gradient back.

        Args:
            model: the model.
            qpos: start positions, shape [batch, nq] or [nq].
            qvel: start velocities, shape [batch, nv] or [nv].
            ctrl: controls, shape [batch, time, nu] or [time, nu].
            loss: the loss as data.
            params: model parameters by name, as in `rollout`.
            wrt: what to differentiate by, as in `backward`.
            cancel: token whose `cancel()` stops the call within one step.

        Returns:
            The loss of each environment [batch] (a float without a batch axis; NaN where it diverged), its
            total gradient, and the trajectories.

        Raises:
            ArgumentError: an argument or a term of the loss does not fit the model.
            DivergedError: every environment diverged.
            Cancelled: the token was cancelled.
        """
        names = check_wrt(wrt)
        checked = check_loss(loss)
        rollout = self.rollout(model, qpos, qvel, ctrl, params=params, cancel=cancel)
        evaluated = checked.evaluate(rollout.qpos, rollout.qvel, rollout.ctrl)
        gradient = self.backward(
            model, rollout, evaluated.qpos_bar, evaluated.qvel_bar, wrt=names, cancel=cancel
        )
        if "ctrl" in names:
            total = {**gradient.arrays, "ctrl": gradient.arrays["ctrl"] + evaluated.ctrl_bar}
            gradient = Gradient(total, gradient.status, gradient.diverged_step)
        value = evaluated.value if rollout.batched else float(evaluated.value)
        return value, gradient, rollout

    def jvp(
        self,
        model: Model,
        rollout: Rollout,
        *,
        qpos_tan: npt.ArrayLike | None = None,
        qvel_tan: npt.ArrayLike | None = None,
        ctrl_tan: npt.ArrayLike | None = None,
        params_tan: Mapping[str, npt.ArrayLike] | None = None,
        cancel: _native.CancelToken | None = None,
    ) -> Jvp:
        """Push a direction of the inputs forward through a trajectory.

        Args:
            model: the model of the rollout.
            rollout: the trajectories.
            qpos_tan: tangent of the start positions, shape [batch, nv], or [nv] for all environments; of a
                quaternion, the rotation vector in the moving frame. None is zero.
            qvel_tan: tangent of the start velocities, shape [batch, nv] or [nv].
            ctrl_tan: tangent of the controls, shape [batch, time, nu], or [time, nu] for all environments.
            params_tan: tangents of model parameters by name, shaped as the parameters.
            cancel: token whose `cancel()` stops the call within one step.

        Returns:
            The tangents of all states.

        Raises:
            ArgumentError: a shape does not match the trajectory, or a name is not known.
            DivergedError: every environment diverged.
            Cancelled: the token was cancelled.

        Source: the stages of engine/include/revolute/step.hpp on dual numbers.
        """
        _check_model(model)
        _check_cancel(cancel)
        _check_rollout_of(model, rollout)
        qpos, qvel, ctrl, status = (
            _with_batch(getattr(rollout, name), rollout.batched) for name in (*INPUTS, "status")
        )
        batch = len(ctrl)
        given = {"qpos_tan": qpos_tan, "qvel_tan": qvel_tan, "ctrl_tan": ctrl_tan}
        if params_tan is None and all(value is None for value in given.values()):
            names = ", ".join(given)
            raise ArgumentError.expected(f"{names}, params_tan", "a tangent in at least one", "None in all")
        shapes = {"qpos_tan": (batch, model.nv), "qvel_tan": (batch, model.nv), "ctrl_tan": ctrl.shape}
        tangents = check_tangents(shapes, given, rollout.batched)
        params_tangents = check_params_tan(model, params_tan, batch, rollout.batched)
        completed = status == OK
        if not completed.any():
            raise all_diverged(model, np.atleast_1d(rollout.diverged_step))
        pushed = _native.jvp(
            model.native,
            qpos,
            qvel,
            ctrl,
            parameter_rows(rollout.params),
            *tangents.values(),
            parameter_rows(params_tangents),
            self.threads,
            cancel,
        )
        if pushed is None:
            raise cancelled("jvp")
        finite = completed & _finite_rows(pushed)
        if not finite.any():
            raise not_finite("jvp", completed)
        qpos_out, qvel_out = (_marked(array, finite, rollout.batched) for array in pushed)
        return Jvp(qpos_out, qvel_out)

    def jacobian(
        self,
        model: Model,
        qpos: npt.ArrayLike,
        qvel: npt.ArrayLike,
        ctrl: npt.ArrayLike,
        *,
        params: Mapping[str, npt.ArrayLike] | None = None,
        cancel: _native.CancelToken | None = None,
    ) -> StepJacobian:
        """Differentiate one step by its state and controls.

        Args:
            model: the model.
            qpos: positions, shape [batch, nq], or [nq] for all environments.
            qvel: velocities, shape [batch, nv] or [nv].
            ctrl: controls, shape [batch, nu], or [nu] for a single environment.
            params: model parameters by name, as in `rollout`.
            cancel: token whose `cancel()` stops the call.

        Returns:
            The matrices A and B, in the tangent convention and order of MuJoCo's `mjd_transitionFD`.

        Raises:
            ArgumentError: a shape, a number or a name is wrong.
            DivergedError: the step of every environment diverges.
            Cancelled: the token was cancelled.
        """
        _check_model(model)
        _check_cancel(cancel)
        problem = check_step(model, qpos, qvel, ctrl, params)
        matrices = _native.jacobian(
            model.native,
            problem.qpos,
            problem.qvel,
            problem.ctrl,
            parameter_rows(problem.params),
            self.threads,
            cancel,
        )
        if matrices is None:
            raise cancelled("jacobian")
        finite = np.all([np.isfinite(matrix).all(axis=(1, 2)) for matrix in matrices], axis=0)
        if not finite.any():
            raise all_diverged(model, np.zeros(len(finite), np.int64))
        by_state, by_ctrl = (_marked(matrix, finite, problem.batched) for matrix in matrices)
        return StepJacobian(by_state, by_ctrl)


def _check_model(model: Any) -> None:
    if not isinstance(model, Model):
        raise ArgumentError.expected("model", "a Model from load_model", type(model).__name__)


def _check_cancel(cancel: Any) -> None:
    if cancel is not None and not isinstance(cancel, _native.CancelToken):
        raise ArgumentError.expected("cancel", "a CancelToken", type(cancel).__name__)


def _check_rollout_of(model: Model, rollout: Any) -> None:
    """Refuse a trajectory of another model: its gradient would be wrong without a sign."""
    if not isinstance(rollout, Rollout):
        raise ArgumentError.expected("rollout", "a Rollout from Engine.rollout", type(rollout).__name__)
    if rollout.model_id != model.id:
        raise ArgumentError.expected(
            "rollout",
            f"a trajectory of model '{model.name}' ({model.id[:8]})",
            f"one of {rollout.model_id[:8]}",
            advice="pass the model that was simulated",
        )


def _marked(array: Float64Array, good: npt.NDArray[np.bool_], batched: bool) -> Float64Array:
    """Put NaN where an environment diverged, and leave the batch axis out where the user did."""
    array[~good] = np.nan
    array.setflags(write=False)
    return array if batched else array[0]


def _with_batch(array: npt.NDArray, batched: bool) -> npt.NDArray:
    return array if batched else array[None]


def _rollout_result(
    model: Model,
    problem: Problem,
    qpos: Float64Array,
    qvel: Float64Array,
    status: npt.NDArray[np.int32],
    diverged_step: npt.NDArray[np.int64],
) -> Rollout:
    """Shape the states as the user shaped the input, and make them read-only."""
    ctrl = problem.ctrl
    batch, steps = ctrl.shape[:2]
    checkpoint_bytes = qpos.nbytes + qvel.nbytes
    if not problem.batched:
        qpos, qvel, ctrl = qpos[0], qvel[0], ctrl[0]
        status, diverged_step = status[0, ...], diverged_step[0, ...]
    for array in (qpos, qvel, ctrl, status, diverged_step):
        array.setflags(write=False)
    for value in problem.params.values():
        value.setflags(write=False)
    return Rollout(
        model_id=model.id,
        qpos=qpos,
        qvel=qvel,
        ctrl=ctrl,
        params=problem.params,
        status=status,
        diverged_step=diverged_step,
        batched=problem.batched,
        states_stored=batch * (steps + 1),
        checkpoint_bytes=checkpoint_bytes,
        replayed_steps=batch * steps,
    )


def _finite_rows(arrays: Iterable[Float64Array]) -> npt.NDArray[np.bool_]:
    """Return for which environments (first axis) every number is finite."""
    return np.all([np.isfinite(array.reshape(len(array), -1)).all(axis=1) for array in arrays], axis=0)


def _shaped(
    model: Model,
    name: str,
    pulled: Float64Array,
    rollout: Rollout,
    completed: npt.NDArray[np.bool_],
    has_k: bool,
) -> Float64Array:
    """Give one gradient the shape of its input; mark or leave out diverged environments."""
    if name in PARAMETERS:
        pulled = pulled.reshape(pulled.shape[:2] + PARAMETERS[name].shape(model))
        if not (name in rollout.params and is_per_environment(name, rollout.params[name])):
            summed = pulled[:, completed].sum(axis=1)
            return summed if has_k else summed[0, ...]
    gradient = np.array(pulled)
    gradient[:, ~completed] = np.nan
    if not rollout.batched:
        gradient = gradient[:, 0]
    return gradient if has_k else gradient[0]

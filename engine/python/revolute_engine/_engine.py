"""`Engine`: rollouts and their gradients in this process."""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping
from typing import Any

import numpy as np
import numpy.typing as npt

from revolute.errors import ArgumentError, DivergedError, LimitError
from revolute.loss import Loss, check_loss

from . import _native
from ._arguments import (
    INPUTS,
    PARAMETERS,
    Problem,
    check_cotangents,
    check_rollout,
    check_wrt,
)
from ._model import Model
from ._options import positive_integer
from ._results import OK, Cancelled, Gradient, Rollout

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
            params: model parameters by name (geom_friction, body_mass), shape [n], or [batch, n] per
                environment.
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
                model.native, problem.qpos, problem.qvel, problem.ctrl, problem.params, self.threads, cancel
            )
        except MemoryError:
            raise _too_large(model, problem) from None
        if states is None:
            raise _cancelled("rollout")
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
            wrt: what to differentiate by: qpos, qvel (the start state), ctrl, geom_friction, body_mass.
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
            raise _all_diverged(model, diverged_step)
        params = {name: np.atleast_2d(value) for name, value in rollout.params.items()}
        try:
            pulled = _native.backward(
                model.native,
                *(arrays[name] for name in INPUTS),
                params,
                *(bars[name] for name in shapes),
                [name for name in names if name in PARAMETERS],
                self.threads,
                cancel,
            )
        except MemoryError:
            raise _too_many_cotangents(len(bars["qpos_bar"]), arrays["ctrl"].nbytes) from None
        if pulled is None:
            raise _cancelled("backward")
        shaped = {name: _shaped(name, pulled[name], rollout, completed, has_k) for name in names}
        return Gradient(shaped, rollout.status, rollout.diverged_step)

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
    params = {name: value[0] if name in problem.shared else value for name, value in problem.params.items()}
    for array in (qpos, qvel, ctrl, status, diverged_step, *params.values()):
        array.setflags(write=False)
    return Rollout(
        model_id=model.id,
        qpos=qpos,
        qvel=qvel,
        ctrl=ctrl,
        params=params,
        status=status,
        diverged_step=diverged_step,
        batched=problem.batched,
        states_stored=batch * (steps + 1),
        checkpoint_bytes=checkpoint_bytes,
        replayed_steps=batch * steps,
    )


def _shaped(
    name: str, pulled: Float64Array, rollout: Rollout, completed: npt.NDArray[np.bool_], has_k: bool
) -> Float64Array:
    """Give one gradient the shape of its input; mark or leave out diverged environments."""
    if name in PARAMETERS and not _is_per_environment(rollout, name):
        summed = pulled[:, completed].sum(axis=1)
        return summed if has_k else summed[0]
    gradient = np.array(pulled)
    gradient[:, ~completed] = np.nan
    if not rollout.batched:
        gradient = gradient[:, 0]
    return gradient if has_k else gradient[0]


def _is_per_environment(rollout: Rollout, name: str) -> bool:
    """Whether a model parameter was given with a batch axis."""
    return name in rollout.params and rollout.params[name].ndim == 2


def _cancelled(call: str) -> Cancelled:
    return Cancelled(f"{call}: stopped by its cancel token; nothing was computed")


def _all_diverged(model: Model, diverged_step: npt.NDArray[np.int64]) -> DivergedError:
    first = int(np.argmin(diverged_step))
    return DivergedError(
        f"rollout: expected at least one environment with finite states, got none of {len(diverged_step)}: "
        f"model '{model.name}' diverged first at step {int(diverged_step[first])} in environment {first}; "
        "use a smaller timestep or smaller controls",
        argument="rollout",
    )


def _too_large(model: Model, problem: Problem) -> LimitError:
    batch, steps = problem.ctrl.shape[:2]
    size = batch * (steps + 1) * (model.nq + model.nv) * 8
    return LimitError(
        f"ctrl: expected a trajectory that fits in memory, got {batch} environments of {steps} steps "
        f"({size / 1e9:.3g} GB); simulate fewer at a time",
        argument="ctrl",
    )


def _too_many_cotangents(count: int, size: int) -> LimitError:
    return LimitError(
        f"qpos_bar: expected gradients that fit in memory, got {count} of {size / 1e9:.3g} GB each; "
        "pull fewer cotangents back at a time",
        argument="qpos_bar",
    )

"""Calls that keep no record: ValueAndGradient with the loss in the request, Jacobian and CheckGradient."""

from __future__ import annotations

import contextlib
import dataclasses
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextvars import ContextVar
from typing import Any

import numpy as np

from revolute.contract.checkpoints import Checkpoints
from revolute.contract.controllers import PLAIN, Control
from revolute.contract.gradient_method import EXACT, GradientMethod
from revolute.contract.gradient_report import GradientReport
from revolute.contract.loss import Loss
from revolute_engine import Engine, Gradient, StepJacobian, check_gradient
from revolute_engine.gradient_check import check_options, held_bytes
from revolute_engine.merged_calls import RolloutCall, ValueAndGradientCall

from ..compute.memory_budget import MemoryBudget
from ..compute.merged_calls import value_and_gradient_work
from ..compute.pool import EnginePool
from ..compute.stepping import jacobian_bytes
from ..compute.trajectory_bytes import controller_bytes, kept_bytes, working_bytes
from .models import Models


@dataclasses.dataclass(frozen=True)
class ValueAndGradient:
    """A loss per environment, and its gradient."""

    value: np.ndarray
    gradient: Gradient


_MANY_STEPS = 100_000
"""Approximate number of steps of a gradient check, which takes hundreds of trajectories."""

Progress = Callable[[str, int, int], None]

_progress: ContextVar[Progress | None] = ContextVar("progress", default=None)


@contextlib.contextmanager
def reporting_progress(report: Progress | None) -> Iterator[None]:
    """Report the progress of gradient checks within the block; see `check_gradient`."""
    token = _progress.set(report)
    try:
        yield
    finally:
        _progress.reset(token)


class Derivatives:
    """ValueAndGradient, Jacobian and CheckGradient.

    Args:
        engine: computes the derivatives.
        pool: runs the engine calls.
        budget: bounds the memory of running calls.
        models: the registered models.
    """

    def __init__(self, engine: Engine, pool: EnginePool, budget: MemoryBudget, models: Models) -> None:
        self._engine = engine
        self._pool = pool
        self._budget = budget
        self._models = models

    async def value_and_gradient(
        self,
        model_id: str,
        qpos: Any,
        qvel: Any,
        ctrl: Any,
        loss: Loss,
        params: Mapping[str, Any] | None,
        wrt: Sequence[str],
        *,
        control: Control = PLAIN,
        checkpoints: str,
        gradient: GradientMethod = EXACT,
        clip: float | None = None,
        on_diverged: str = "raise",
    ) -> ValueAndGradient:
        """Simulate, evaluate a loss, and return its value and gradient; no record is kept.

        Args:
            model_id: the model.
            qpos: start configurations, [batch, nq] or [nq].
            qvel: start velocities, [batch, nv] or [nv].
            ctrl: controls, [batch, time, nu] or [time, nu].
            loss: the loss.
            params: model parameters by name.
            wrt: names of inputs and parameters to differentiate by.
            control: how the rows of ctrl act.
            checkpoints: which states are kept for the backward pass.
            gradient: how to differentiate.
            clip: largest norm of a state's cotangent; None for no bound.
            on_diverged: "raise" or "inf".

        Raises:
            ArgumentError: shapes or values do not fit the model, or the loss does not fit the trajectory.
            NotFoundError: the model is not registered.
            DivergedError: no environment stayed finite.
        """
        model = await self._models.get(model_id)
        policy = Checkpoints.parse(checkpoints)

        def size() -> int:
            """Return the bytes of the checkpoints and of the states that the backward pass replays."""
            states = kept_bytes(model, ctrl, policy, control) + working_bytes(model, ctrl, policy, control)
            return states + controller_bytes(model, ctrl, control, wrt)

        with self._budget.reserve("a value and gradient", size):
            inputs = RolloutCall(qpos, qvel, ctrl, params or None, policy, control=control)
            call = ValueAndGradientCall(inputs, loss, tuple(wrt), clip, on_diverged, gradient)
            work = value_and_gradient_work(self._engine, model, call)
            value, found = await self._pool.run_work(work)
            return ValueAndGradient(np.asarray(value), found)

    async def jacobian(
        self,
        model_id: str,
        qpos: Any,
        qvel: Any,
        ctrl: Any,
        params: Mapping[str, Any] | None = None,
        *,
        inputs: Mapping[str, Any] | None = None,
    ) -> StepJacobian:
        """Differentiate one step by its state and controls; no record is kept.

        Raises:
            ArgumentError: shapes or values do not fit the model.
            NotFoundError: the model is not registered.
            DivergedError: no environment's step is finite.
        """
        model = await self._models.get(model_id)
        batch = len(ctrl) if np.ndim(ctrl) == 2 else 1
        with self._budget.reserve("a Jacobian", jacobian_bytes(model, batch)):
            return await self._pool.run(
                lambda token: self._engine.jacobian(
                    model, qpos, qvel, ctrl, params=params or None, inputs=inputs, cancel=token
                ),
                batch * (model.nv + model.nqvel),
            )

    async def check_gradient(
        self,
        model_id: str,
        start: Mapping[str, Any],
        *,
        steps: int,
        directions: int,
        seed: int,
        tolerance: float,
        wrt: Sequence[str] | None,
        control: Control = PLAIN,
    ) -> GradientReport:
        """Check the gradients of one trajectory; no record is kept.

        Args:
            model_id: the model.
            start: qpos, qvel and ctrl, each may be None, and params.
            steps: length of the trajectory if ctrl is None.
            directions: number of random directions per input.
            seed: seed of all random numbers.
            tolerance: largest relative error that passes.
            wrt: inputs to check; None for all.
            control: how the rows of ctrl act.

        Raises:
            ArgumentError: shapes or values do not fit the model, or a number is out of range.
            NotFoundError: the model is not registered.
            DivergedError: the trajectory diverges.
            LimitError: the trajectories for the finite differences do not fit into memory.
        """
        model = await self._models.get(model_id)
        numbers = dataclasses.asdict(check_options(steps, directions, seed, tolerance))
        rows = steps if start["ctrl"] is None else len(np.atleast_1d(start["ctrl"]))
        length = rows * control.hold
        with self._budget.reserve("a check of gradients", held_bytes(model, length, directions)):
            progress = _progress.get()
            return await self._pool.run(
                lambda token: check_gradient(
                    self._engine,
                    model,
                    **start,
                    **numbers,
                    control=control,
                    wrt=wrt,
                    progress=progress,
                    cancel=token,
                ),
                _MANY_STEPS,
            )

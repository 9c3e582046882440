"""Results of the engine: trajectories, gradients, tangents and Jacobians."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import numpy.typing as npt

from revolute.contract.arrays import Float64Array
from revolute.contract.checkpoints import CheckpointReport, Checkpoints
from revolute.contract.controllers import PLAIN, Control
from revolute.contract.errors import ArgumentError, NotFoundError
from revolute.contract.errors import CancelledError as Cancelled

from . import native

OK, DIVERGED, NOT_FINITE = 0, 1, 2
"""Values of `status`. NOT_FINITE is for gradients only: finite states with non-finite derivatives."""

__all__ = ["DIVERGED", "OK", "Cancelled", "Gradient", "Jvp", "Rollout", "StepJacobian"]


@dataclass(frozen=True, eq=False)
class Rollout:
    """One trajectory per environment. Arrays are read-only, and have a batch axis only if the input has one.

    Attributes:
        model_id: id of the model that was simulated.
        checkpoints: which states are kept for the gradient.
        kept_qpos: positions of the kept states [batch, states, nq], in order of time; NaN after the last
            finite state of a diverged environment.
        kept_qvel: velocities of the kept states, and behind them activations [batch, states, nv + na], in the
            same form.
        final_qpos: positions after the last step [batch, nq].
        final_qvel: velocities after the last step [batch, nv].
        ctrl: controls as they acted [batch, periods, nu], with the controller's part; with checkpoints "none"
            they may share the caller's memory.
        params: the given model parameters by name, without or with batch axis.
        status: 0 completed, 1 diverged, int32 [batch]; 0-d without a batch axis.
        diverged_step: first step whose result is not finite, or -1, int64 [batch]; 0-d without a batch axis.
        batched: whether the arrays have a batch axis.
        all_states: positions and velocities of all time + 1 states, if they were requested.
        unsettled_step: first step whose constraints the solver did not settle, or -1, int64 [batch] (0-d
            without a batch axis); None in trajectories of earlier releases. Newton's method of "mujoco" and
            the solver "exact" settle at rounding, sweeps when they leave at most 1 mm/s.
        residual: largest violation of a constraint that the solver left, m/s or rad/s [batch]: how much more
            one update of a row would change its velocity. 0 with "mujoco".
        control: how the rows of ctrl acted.
    """

    model_id: str
    checkpoints: Checkpoints
    kept_qpos: Float64Array
    kept_qvel: Float64Array
    final_qpos: Float64Array
    final_qvel: Float64Array
    ctrl: Float64Array
    params: Mapping[str, Float64Array]
    status: npt.NDArray[np.int32]
    diverged_step: npt.NDArray[np.int64]
    batched: bool
    all_states: tuple[Float64Array, Float64Array] | None
    unsettled_step: npt.NDArray[np.int64] | None = None
    residual: Float64Array | None = None
    control: Control = PLAIN

    @property
    def qpos(self) -> Float64Array:
        """Positions [batch, time + 1, nq]; NaN after the last finite state of a diverged environment.

        Raises:
            ArgumentError: the rollout does not hold all states.
        """
        return self._held("qpos")[0]

    @property
    def qvel(self) -> Float64Array:
        """Velocities, and behind them activations [batch, time + 1, nv + na]; see `qpos`."""
        return self._held("qvel")[1]

    @property
    def steps(self) -> int:
        """Number of steps T."""
        return self.ctrl.shape[-2] * self.control.hold

    @property
    def batch(self) -> int:
        """Number of environments."""
        return self.status.size

    @property
    def report(self) -> CheckpointReport:
        """Cost of the checkpoints."""
        replayed = native.replayed_steps(self.checkpoints.policy, self.checkpoints.count, self.steps)
        numbers = self.final_qpos.shape[-1] + self.final_qvel.shape[-1]
        return checkpoint_report(numbers, self.checkpoints, self.batch, self.steps, self.batch * replayed)

    def without_states(self) -> Rollout:
        """Return the trajectory with only the states that its gradient needs."""
        return self if self.checkpoints.policy == "every" else replace(self, all_states=None)

    def _held(self, name: str) -> tuple[Float64Array, Float64Array]:
        if self.all_states is None:
            raise ArgumentError.expected(
                f"rollout.{name}",
                "a rollout that holds all its states",
                f"one with checkpoints '{self.checkpoints}' and states 'final'",
                advice="Engine.states(model, rollout) replays them; final_qpos and final_qvel are here",
            )
        return self.all_states


def checkpoint_report(
    numbers: int, checkpoints: Checkpoints, batch: int, steps: int, replayed: int
) -> CheckpointReport:
    """Return the cost of checkpoints.

    Args:
        numbers: size of one state, nq + nv.
        checkpoints: the policy.
        batch: number of environments.
        steps: number of steps.
        replayed: number of replayed forward steps, summed over environments.
    """
    states = batch * checkpoints.states(steps)
    return CheckpointReport(states, 8 * numbers * states, replayed)


@dataclass(frozen=True, eq=False)
class Gradient:
    """Gradients by name, as attributes and by index: `gradient.ctrl`, `gradient["ctrl"]`.

    Attributes:
        arrays: one array per requested name, shaped like that input, with a leading axis K if the cotangents
            had one. Rows of diverged environments are NaN; sums over environments leave them out.
        status: 0 completed, 1 diverged, as in the rollout; 2 finite states, but a non-finite gradient, whose
            rows are NaN.
        diverged_step: as in the rollout.
        report: cost of the checkpoints; `replayed_steps` is the number of steps actually replayed.
        method: how it was differentiated, "exact" or "contact_from_distance=…".
        unsettled_step: as in the rollout, from `value_and_gradient` only.
        residual: as in the rollout, from `value_and_gradient` only.
        clipped: number of steps whose cotangent was scaled down to `clip`, int64 [batch], with a leading axis
            K like the arrays; None without `clip`.
        notes: remarks, such as on an input whose gradient is exactly zero.
    """

    arrays: Mapping[str, Float64Array]
    status: npt.NDArray[np.int32]
    diverged_step: npt.NDArray[np.int64]
    report: CheckpointReport
    clipped: npt.NDArray[np.int64] | None = None
    notes: tuple[str, ...] = ()
    method: str = "exact"
    unsettled_step: npt.NDArray[np.int64] | None = None
    residual: Float64Array | None = None

    def __getitem__(self, name: str) -> Float64Array:
        if name not in self.arrays:
            raise NotFoundError.expected("gradient", f"a name among {', '.join(self.arrays)}", repr(name))
        return self.arrays[name]

    def __getattr__(self, name: str) -> Any:
        arrays = self.__dict__.get("arrays", {})
        if name not in arrays:
            raise AttributeError(
                f"gradient: expected a name among {', '.join(arrays)}, got '{name}'; ask for it in wrt"
            )
        return arrays[name]

    def __iter__(self) -> Iterator[str]:
        return iter(self.arrays)

    def keys(self) -> list[str]:
        """Return the names in `arrays`."""
        return list(self.arrays)


@dataclass(frozen=True, eq=False)
class Jvp:
    """The derivative of a trajectory along one direction of its inputs, in tangent coordinates.

    Attributes:
        qpos: tangents of the positions [batch, time + 1, nv]. The tangent of a quaternion is a rotation
            vector in the moving frame. NaN for an environment with non-finite states or derivatives.
        qvel: tangents of the velocities [batch, time + 1, nv], NaN for the same environments.
        ctrl: tangents of the controls as they acted [batch, periods, nu], NaN for the same environments.
    """

    qpos: Float64Array
    qvel: Float64Array
    ctrl: Float64Array


@dataclass(frozen=True, eq=False)
class StepJacobian:
    """The derivative of one step in tangent coordinates, in the order of MuJoCo's `mjd_transitionFD`.

    With x = (dq, v, act) and dq a tangent of the positions: dx+ = A dx + B du; nx = 2 nv + na.

    Attributes:
        A: derivative by the state [batch, nx, nx]. NaN for an environment whose step diverges.
        B: derivative by the controls [batch, nx, nu], NaN for the same environments.
    """

    A: Float64Array
    B: Float64Array

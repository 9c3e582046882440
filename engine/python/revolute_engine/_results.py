"""What the engine gives back: trajectories and gradients."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import numpy.typing as npt

from revolute.contract.checkpoints import CheckpointReport, Checkpoints
from revolute.contract.errors import ArgumentError, NotFoundError
from revolute.contract.errors import CancelledError as Cancelled

from . import native

Float64Array = npt.NDArray[np.float64]

OK, DIVERGED, NOT_FINITE = 0, 1, 2
"""Values of `status`; the last of gradients only: the states are finite, their derivatives are not."""

__all__ = ["DIVERGED", "OK", "Cancelled", "Gradient", "Jvp", "Rollout", "StepJacobian"]


@dataclass(frozen=True, eq=False)
class Rollout:
    """A trajectory per environment; all arrays are read-only. Without a batch axis in the input there is none
    here.

    Attributes:
        model_id: id of the model that was simulated.
        checkpoints: which states are kept for the gradient.
        kept_qpos: their positions [batch, states, nq], ascending in time from the start; NaN after the last
            good state of a diverged environment.
        kept_qvel: their velocities [batch, states, nv], likewise.
        final_qpos: positions after the last step [batch, nq].
        final_qvel: velocities after the last step [batch, nv].
        ctrl: controls [batch, time, nu]; with checkpoints "none" the caller's memory.
        params: model parameters that were given, by name, without or with batch axis.
        status: 0 completed, 1 diverged, int32 [batch]; 0-d without a batch axis.
        diverged_step: first step whose result is not finite, -1 when there is none, int64 [batch] likewise.
        batched: whether there is a batch axis.
        all_states: positions and velocities of all time + 1 states, where they were asked for.
        unsettled_step: first step whose constraints the solver of contact_model="mujoco" did not solve to
            convergence, -1 when there is none, int64 [batch] likewise; None where it was not recorded.
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

    @property
    def qpos(self) -> Float64Array:
        """Positions [batch, time + 1, nq]; NaN after the last good state of a diverged environment.

        Raises:
            ArgumentError: only some states are held.
        """
        return self._held("qpos")[0]

    @property
    def qvel(self) -> Float64Array:
        """Velocities [batch, time + 1, nv], likewise."""
        return self._held("qvel")[1]

    @property
    def steps(self) -> int:
        """Number of steps T."""
        return self.ctrl.shape[-2]

    @property
    def batch(self) -> int:
        """Number of environments."""
        return self.status.size

    @property
    def report(self) -> CheckpointReport:
        """What the checkpoints cost."""
        replayed = native.replayed_steps(self.checkpoints.policy, self.checkpoints.count, self.steps)
        numbers = self.final_qpos.shape[-1] + self.final_qvel.shape[-1]
        return checkpoint_report(numbers, self.checkpoints, self.batch, self.steps, self.batch * replayed)

    def without_states(self) -> Rollout:
        """Return the trajectory with no states but those that its gradient needs."""
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
    """Return what checkpoints cost.

    Args:
        numbers: those of one state, nq + nv.
        checkpoints: the policy.
        batch: environments.
        steps: of each.
        replayed: forward steps taken again, all environments together.
    """
    states = batch * checkpoints.states(steps)
    return CheckpointReport(states, 8 * numbers * states, replayed)


@dataclass(frozen=True, eq=False)
class Gradient:
    """Gradients by name, as attributes and by index: `gradient.ctrl`, `gradient["ctrl"]`.

    Attributes:
        arrays: one array per name that was asked for, shaped like that input, with a leading axis K when the
            cotangents had one. Rows of diverged environments are NaN, and sums leave them out.
        status: 0 completed, 1 diverged, as in the rollout; 2 where the states stayed finite but the gradient
            did not: its rows are NaN too.
        diverged_step: as in the rollout.
        report: what the checkpoints cost; its replayed steps were counted as they were taken.
    """

    arrays: Mapping[str, Float64Array]
    status: npt.NDArray[np.int32]
    diverged_step: npt.NDArray[np.int64]
    report: CheckpointReport

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
        """Return the names that were differentiated by."""
        return list(self.arrays)


@dataclass(frozen=True, eq=False)
class Jvp:
    """The derivative of a trajectory along one direction of its inputs, in tangent coordinates.

    Attributes:
        qpos: tangents of the positions [batch, time + 1, nv]: of a quaternion, the rotation vector in the
            moving frame. NaN for an environment that diverged, or whose derivative left the finite numbers.
        qvel: tangents of the velocities [batch, time + 1, nv], likewise.
    """

    qpos: Float64Array
    qvel: Float64Array


@dataclass(frozen=True, eq=False)
class StepJacobian:
    """The derivative of one step in tangent coordinates, in the order of MuJoCo's `mjd_transitionFD`.

    With x = (dq, v), dq a tangent of the positions: dx+ = A dx + B du.

    Attributes:
        A: by the state [batch, 2 nv, 2 nv]. NaN for an environment whose step diverges.
        B: by the controls [batch, 2 nv, nu], likewise.
    """

    A: Float64Array
    B: Float64Array

"""Computes a rollout in segments, with the same bits as in one piece.

A step depends only on the state, so a rollout can stop after any step and continue from the state it reached.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import numpy.typing as npt

from revolute.contract.arrays import Float64Array
from revolute.contract.controllers import MLP, PLAIN, Control, Feedback
from revolute.contract.errors import ArgumentError

from . import native
from ._arguments import check_rollout
from ._controllers import AXES_OF_OWN, bind, check_no_clock
from ._engine import Engine
from ._model import Model
from ._results import OK, Rollout
from .merged_calls import RolloutCall, rollout_of_every_state

_SEGMENT_BYTES = 256 * 1024
"""Default size of a segment's states in bytes."""


@dataclass(frozen=True)
class Segment:
    """Consecutive states of a rollout, with a batch axis if the input has one.

    Attributes:
        first: time of the first state; 0 is the start.
        qpos: positions [batch, states, nq]; NaN after the last finite state of a diverged environment.
        qvel: velocities [batch, states, nv]; NaN like qpos.
        ctrl: controls as they acted in the steps to these states [batch, periods, nu], with a controller.
    """

    first: int
    qpos: Float64Array
    qvel: Float64Array
    ctrl: Float64Array | None = None


class SegmentedRollout:
    """A rollout that is computed segment by segment. The arguments are those of `Engine.rollout`.

    Raises:
        ArgumentError: an argument is wrong; the whole rollout is checked in advance.
    """

    def __init__(
        self,
        model: Model,
        qpos: Any,
        qvel: Any,
        ctrl: Any,
        params: Mapping[str, Any] | None = None,
        *,
        control: Control = PLAIN,
    ) -> None:
        self._model = model
        self._problem = check_rollout(model, qpos, qvel, ctrl, params, control=control)
        check_no_clock(self._problem.controller)
        batch, self.steps = len(self._problem.ctrl), self._problem.steps
        # as they act
        self._ctrl = np.empty_like(self._problem.ctrl)
        self._qpos = np.empty((batch, self.steps + 1, model.nq))
        self._qvel = np.empty((batch, self.steps + 1, model.nqvel))
        self._status = np.zeros(batch, np.int32)
        self._diverged_step = np.full(batch, -1, np.int64)
        self._unsettled_step = np.full(batch, -1, np.int64)
        self._residual = np.zeros(batch)
        self._started = False
        self.done = 0
        """Number of steps computed so far."""

    @property
    def over(self) -> bool:
        """Whether all steps are computed."""
        return self._started and self.done == self.steps

    def call(self, steps: int | None = None) -> RolloutCall:
        """Return the next segment as a separate rollout; pass its result to `take`.

        Args:
            steps: length of the segment; None for a default that suits a network.

        Raises:
            ArgumentError: `steps` is not a multiple of the steps that controls are held for.
        """
        problem, model = self._problem, self._model
        hold = problem.control.hold
        if steps is None:
            steps = _default_steps(len(self._status) * (model.nq + model.nqvel), hold)
        elif steps % hold:
            raise ArgumentError.expected("segment_steps", f"a multiple of hold={hold}", steps)
        first, count = self.done // hold, steps // hold
        ctrl = problem.ctrl[:, first : first + count]
        control = self._control(first, ctrl.shape[1])
        if not self._started:
            return RolloutCall(problem.qpos, problem.qvel, ctrl, problem.params, control=control)
        # diverged environments continue from the model's default state; their results are discarded
        diverged = (self._status != OK)[:, None]
        qpos = np.where(diverged, model.qpos0, self._qpos[:, self.done])
        qvel = np.where(diverged, model.qvel0, self._qvel[:, self.done])
        return RolloutCall(qpos, qvel, ctrl, problem.params, control=control)

    def _control(self, first: int, periods: int) -> Control:
        """Return how some rows of ctrl act, from the row `first`."""
        control = periods_of(self._problem.control, first, periods)
        if control.policy is None or first == 0:
            return control
        return replace(control, previous_ctrl=np.nan_to_num(self._ctrl[:, first - 1], posinf=0.0, neginf=0.0))

    def take(self, found: Rollout) -> Segment:
        """Add the result of the next segment, and return the segment."""
        first = self.done + 1 if self._started else 0
        diverged = self._status != OK
        new = slice(first, self.done + found.steps + 1)
        self._qpos[:, new] = found.qpos[:, first - self.done :]
        self._qvel[:, new] = found.qvel[:, first - self.done :]
        self._qpos[diverged, new], self._qvel[diverged, new] = np.nan, np.nan
        newly_diverged = ~diverged & (found.status != OK)
        place = self.done // self._problem.control.hold
        periods = slice(place, place + found.ctrl.shape[1])
        self._ctrl[:, periods] = found.ctrl
        self._status[newly_diverged] = found.status[newly_diverged]
        self._diverged_step[newly_diverged] = self.done + found.diverged_step[newly_diverged]
        assert found.unsettled_step is not None and found.residual is not None
        # an environment that diverged before is not judged
        unsettled = ~diverged & (self._unsettled_step < 0) & (found.unsettled_step >= 0)
        self._unsettled_step[unsettled] = self.done + found.unsettled_step[unsettled]
        self._residual = np.where(diverged, self._residual, np.maximum(self._residual, found.residual))
        self._started = True
        self.done += found.steps
        qpos, qvel = self._qpos[:, new], self._qvel[:, new]
        ctrl = self._ctrl[:, periods] if self._problem.control.has_controller else None
        if self._problem.batched:
            return Segment(first, qpos, qvel, ctrl)
        return Segment(first, qpos[0], qvel[0], None if ctrl is None else ctrl[0])

    def compute(
        self, engine: Engine, steps: int | None = None, cancel: native.CancelToken | None = None
    ) -> Segment:
        """Compute the next segment.

        Args:
            engine: the engine.
            steps: length of the segment; None for a default that suits a network.
            cancel: token whose `cancel()` stops the call within one step.

        Raises:
            Cancelled: the token was cancelled.
        """
        call = self.call(steps)
        found = engine.rollout(
            self._model,
            call.qpos,
            call.qvel,
            call.ctrl,
            control=call.control,
            params=call.params,
            cancel=cancel,
        )
        return self.take(found)

    def result(self) -> Rollout:
        """Return the whole rollout, after all steps are computed."""
        assert self.over
        arrays: dict[str, npt.NDArray[Any]] = {
            "qpos": self._qpos,
            "qvel": self._qvel,
            "status": self._status,
            "diverged_step": self._diverged_step,
            "unsettled_step": self._unsettled_step,
            "residual": self._residual,
            "ctrl": self._ctrl,
        }
        return rollout_of_every_state(self._model, self._problem, arrays)


def segments_of(rollout: Rollout, steps: int | None = None) -> Iterator[Segment]:
    """Split a finished rollout into the segments that a `SegmentedRollout` would give.

    Args:
        rollout: the rollout.
        steps: length of a segment; None for a default that suits a network.
    """
    batch = rollout.status.size
    numbers = batch * (rollout.qpos.shape[-1] + rollout.qvel.shape[-1])
    count = _default_steps(numbers, rollout.control.hold) if steps is None else steps
    first, done, hold = 0, 0, rollout.control.hold
    while first == 0 or done < rollout.steps:
        periods = slice(done // hold, min(done + count, rollout.steps) // hold)
        done = min(done + count, rollout.steps)
        ctrl = rollout.ctrl[..., periods, :] if rollout.control.has_controller else None
        states = slice(first, done + 1)
        yield Segment(first, rollout.qpos[..., states, :], rollout.qvel[..., states, :], ctrl)
        first = done + 1


def _default_steps(numbers: int, hold: int) -> int:
    """Return the default length of a segment, for states of `numbers` numbers."""
    steps = max(1, _SEGMENT_BYTES // (8 * max(1, numbers)))
    return max(1, steps // hold) * hold


def periods_of(control: Control, first: int, periods: int) -> Control:
    """Return how some rows of ctrl act.

    Args:
        control: how all of them act.
        first: the first of these rows.
        periods: their number.
    """

    def part(name: str, array: Float64Array) -> Float64Array:
        axis = array.ndim - AXES_OF_OWN[name] - 1
        if axis < 0 or array.shape[axis] == 1:
            return array
        return array[(slice(None),) * axis + (slice(first, first + periods),)]

    found: dict[str, Any] = {name: part(name, array) for name, array in control.inputs.items()}
    if control.feedback is not None:
        arrays = control.feedback.to_dict().items()
        found["feedback"] = Feedback(**{name: part(f"feedback.{name}", array) for name, array in arrays})
    if control.policy is not None and control.policy.goal is not None:
        goal = part("policy.goal", control.policy.goal)
        found["policy"] = MLP.from_dict({**control.policy.to_dict(), "goal": goal})
    return replace(control, **found) if found else control


def check_control(model: Model, control: Control, batch: int, periods: int) -> None:
    """Check that the arrays of a controller and other inputs fit a model and rows of ctrl.

    Args:
        model: the model.
        control: how the rows of ctrl act.
        batch: number of environments.
        periods: number of rows.

    Raises:
        ArgumentError: an array or a layer does not fit.
    """
    bind(model, control, batch, periods, True)

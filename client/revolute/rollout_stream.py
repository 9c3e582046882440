"""A rollout that delivers its states while it is being computed."""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from .contract.arrays import Float64Array
from .contract.controllers import Control
from .contract.errors import UnavailableError
from .link import Link
from .model import ModelHandle
from .trajectory import Trajectory
from .unpicklable import Unpicklable
from .unsettled import warn_unsettled


@dataclass(frozen=True, eq=False)
class Segment:
    """Consecutive states of a rollout; its arrays are read-only.

    Attributes:
        first: time of the first of these states; 0 is the start.
        qpos: configurations, [batch, states, nq].
        qvel: velocities, [batch, states, nv].
    """

    first: int
    qpos: Float64Array
    qvel: Float64Array


class RolloutStream(Unpicklable, Iterator[Segment]):
    """Iterator over the segments of a rollout; a context manager that stops the rollout on exit.

    After the last segment, `trajectory` holds the whole rollout, which the engine or server keeps as after
    `Simulator.rollout`. If the stream is closed earlier, nothing is kept.

    Attributes:
        model: the model that is simulated.
        trajectory: the trajectory; None until the last segment was read.
    """

    _pickle_advice = (
        "send its arrays, or on a server the id from trajectory.detach(), for Simulator.trajectory"
    )

    def __init__(
        self,
        link: Link,
        model: ModelHandle,
        source: Iterator[dict[str, Any]],
        ctrl: np.ndarray,
        params: Mapping[str, np.ndarray],
        control: Control,
    ) -> None:
        self.model = model
        self.trajectory: Trajectory | None = None
        self._link = link
        self._source = source
        # fetch the first document now, so that wrong arguments raise here and not at the first segment
        self._documents = itertools.chain([next(source)], source)
        # with a controller, the segments bring them as they act
        self._ctrl = np.array(ctrl) if control.has_controller else ctrl
        self._params = params
        self._control = control
        shape = (*ctrl.shape[:-2], ctrl.shape[-2] * control.hold + 1)
        self._states = {
            "qpos": np.empty((*shape, model.nq)),
            "qvel": np.empty((*shape, len(model.qvel0))),
        }

    def __next__(self) -> Segment:
        if self.trajectory is not None:
            raise StopIteration
        document = next(self._documents, None)
        if document is None:
            raise UnavailableError(
                f"{self._link.address}: expected the end of a rollout, got the end of the stream; call again"
            )
        if "trajectory_id" in document:
            self._finish(document)
            raise StopIteration
        return self._segment(document)

    def close(self) -> None:
        """Stop the rollout. The trajectory is kept only if all segments were read."""
        close = getattr(self._source, "close", None)
        if close is not None:
            close()

    def _segment(self, document: Mapping[str, Any]) -> Segment:
        """Copy a segment into the trajectory's arrays and return views of it."""
        first = document["first"]
        views = []
        for name, whole in self._states.items():
            rows = whole[..., first : first + document[name].shape[-2], :]
            rows[...] = document[name]
            rows.flags.writeable = False
            views.append(rows)
        if "ctrl" in document:
            place = max(0, first - 1) // self._control.hold
            acted = document["ctrl"]
            self._ctrl[..., place : place + acted.shape[-2], :] = acted
        return Segment(first, *views)

    def _finish(self, document: Mapping[str, Any]) -> None:
        final = {f"final_{name}": states[..., -1, :] for name, states in self._states.items()}
        warn_unsettled(
            "stream_rollout",
            self.model,
            document.get("unsettled_step"),
            document.get("residual"),
            stacklevel=3,
        )
        whole = {**document, **self._states, **final, "checkpoints": "every", "hold": self._control.hold}
        self.trajectory = Trajectory(
            self._link,
            self.model,
            whole,
            self._ctrl,
            owned=True,
            params=self._params,
            inputs=self._control.inputs,
        )

    def __enter__(self) -> RolloutStream:
        return self

    def __exit__(self, *exception: object) -> None:
        self.close()

    def __repr__(self) -> str:
        state = "over" if self.trajectory is not None else "under way"
        steps = self._ctrl.shape[-2] * self._control.hold
        return f"<revolute rollout of '{self.model.name}': {steps} steps, {state}>"

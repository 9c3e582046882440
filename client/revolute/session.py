"""Sessions as users hold them: a batch of environments that advances call by call, the same for every
transport."""

from __future__ import annotations

import numbers
from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from .arrays import Float64Array, as_float64
from .derivatives import StepJacobian
from .errors import ArgumentError, NotFoundError
from .model import ModelHandle

if TYPE_CHECKING:
    from .simulator import Simulator

_MAX_STEPS = 2**62
MAX_BATCH = 2**31 - 1
"""Environments of one session."""


@dataclass(frozen=True, eq=False)
class State:
    """State of a session; its arrays are the caller's own.

    Attributes:
        qpos: configurations, [batch, nq].
        qvel: velocities, [batch, nv].
        time: time since the last reset in s.
        step_count: steps since the last reset.
        status: [batch] int32, 0 for an environment that is finite, 1 for one that diverged since the last
            reset; its numbers are NaN until the next one.
    """

    qpos: Float64Array
    qvel: Float64Array
    time: float
    step_count: int
    status: npt.NDArray[np.int32]

    @classmethod
    def from_document(cls, document: Mapping[str, Any]) -> State:
        """Build a state from a SessionState document."""
        return cls(**{name: document[name] for name in cls.__dataclass_fields__})


class Session:
    """A batch of environments that keeps its state between calls; a context manager that closes it.

    Attributes:
        id: handle of the session.
        model: the model that is simulated.
        batch: number of environments.
    """

    def __init__(self, simulator: Simulator, model: ModelHandle, batch: Any) -> None:
        self.model = model
        self.batch = whole_number("batch", batch, least=1, most=MAX_BATCH)
        self._simulator = simulator
        document = {"model_id": model.id, "batch": self.batch}
        self.id: str = simulator._call("CreateSession", document)["session_id"]

    def reset(self, qpos: Any = None, qvel: Any = None) -> State:
        """Set the state and put time and step count back to 0.

        Args:
            qpos: configuration, [batch, nq], or [nq] for all environments; None for the model's default.
            qvel: velocity, [batch, nv], or [nv] for all environments; None for the model's default.

        Returns:
            The new state.

        Raises:
            ArgumentError: a shape or value does not fit the model.
            NotFoundError: the session was closed.
        """
        document = {
            "session_id": self.id,
            "qpos": None if qpos is None else as_float64("qpos", qpos),
            "qvel": None if qvel is None else as_float64("qvel", qvel),
        }
        return State.from_document(self._simulator._call("Reset", document))

    def step(self, ctrl: Any, steps: int = 1) -> State:
        """Advance all environments with controls held; all or nothing.

        Args:
            ctrl: controls, [batch, nu], or [nu] for all environments.
            steps: number of steps; 0 leaves the state as it is.

        Returns:
            The new state.

        Raises:
            ArgumentError: a shape or value does not fit the model.
            NotFoundError: the session was closed.
        """
        document = {
            "session_id": self.id,
            "ctrl": as_float64("ctrl", ctrl),
            "steps": whole_number("steps", steps, least=0),
        }
        return State.from_document(self._simulator._call("Step", document))

    def jacobian(self, ctrl: Any) -> StepJacobian:
        """Differentiate the step from the session's state with given controls; the state stays as it is.

        Args:
            ctrl: controls, [batch, nu], or [nu] for all environments.

        Returns:
            The matrices A [batch, 2 nv, 2 nv] and B [batch, 2 nv, nu], in the tangent convention and order of
            MuJoCo's `mjd_transitionFD`; NaN for an environment that diverged.

        Raises:
            ArgumentError: a shape or value does not fit the model.
            NotFoundError: the session was closed.
            DivergedError: every environment diverged.
        """
        document = {"session_id": self.id, "ctrl": as_float64("ctrl", ctrl)}
        return StepJacobian.from_document(self._simulator._call("SessionJacobian", document))

    def state(self) -> State:
        """Return the state.

        Raises:
            NotFoundError: the session was closed.
        """
        return State.from_document(self._simulator._call("GetState", {"session_id": self.id}))

    def close(self) -> None:
        """Close the session.

        Raises:
            NotFoundError: it was closed before.
        """
        self._simulator._call("DeleteSession", {"session_id": self.id})

    def __enter__(self) -> Session:
        return self

    def __exit__(self, *exception: object) -> None:
        try:
            self.close()
        except NotFoundError:
            return

    def __repr__(self) -> str:
        return f"<revolute session of '{self.model.name}': batch={self.batch}, id={self.id[:12]}>"


def whole_number(name: str, value: Any, *, least: int, most: int = _MAX_STEPS) -> int:
    """Return `value` as an int from `least` to `most`.

    Raises:
        ArgumentError: it is not a whole number, or outside of that range.
    """
    if isinstance(value, numbers.Integral) and not isinstance(value, bool) and least <= int(value) <= most:
        return int(value)
    above = isinstance(value, numbers.Integral) and int(value) > most
    bound = f"at most {most}" if above else f"at least {least}"
    raise ArgumentError.expected(name, f"a whole number of {bound}", repr(value))

"""Trajectories and gradients as users hold them, the same for every transport."""

from __future__ import annotations

import weakref
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from .arrays import Float64Array, as_float64, named_float64
from .derivatives import Jvp
from .errors import ArgumentError, NotFoundError
from .model import ModelHandle

if TYPE_CHECKING:
    from .simulator import Simulator

STATE_AND_CONTROL = ("qpos", "qvel", "ctrl")
"""What a gradient is taken by unless told otherwise."""


@dataclass(frozen=True)
class CheckpointReport:
    """What a trajectory costs to keep.

    Attributes:
        states_stored: states kept, all environments together.
        checkpoint_bytes: bytes of the kept states.
        replayed_steps: forward steps that one backward pass repeats, all environments together.
    """

    states_stored: int
    checkpoint_bytes: int
    replayed_steps: int


class Gradient(Mapping[str, Float64Array]):
    """A gradient: one array per name in `wrt`, as attribute or by key, shaped like that input.

    Attributes:
        status: [batch] int32, 0 for an environment that stayed finite, 1 for one that diverged, 2 for one
            whose states are finite but whose gradient is not; rows of the latter two are NaN.
        diverged_step: [batch] int64, first step whose result is not finite, -1 where there is none.
    """

    def __init__(
        self,
        arrays: Mapping[str, Float64Array],
        status: npt.NDArray[np.int32],
        diverged_step: npt.NDArray[np.int64],
    ) -> None:
        self._arrays = dict(arrays)
        self.status = status
        self.diverged_step = diverged_step

    @classmethod
    def from_document(
        cls, document: Mapping[str, Any], names: Sequence[str], diverged_step: npt.NDArray[np.int64]
    ) -> Gradient:
        """Build a gradient from a Gradient document, in the order of `names`."""
        arrays = {name: document["arrays"][name] for name in names}
        return cls(arrays, document["status"], diverged_step)

    def __getitem__(self, name: str) -> Float64Array:
        try:
            return self._arrays[name]
        except KeyError:
            raise KeyError(f"{name}: expected one of {', '.join(self._arrays)}") from None

    def __getattr__(self, name: str) -> Float64Array:
        arrays = self.__dict__.get("_arrays", {})
        if name in arrays:
            return arrays[name]
        raise AttributeError(
            f"{name}: expected one of {', '.join(arrays)}; name it in wrt to have it computed"
        )

    def __iter__(self) -> Iterator[str]:
        return iter(self._arrays)

    def __len__(self) -> int:
        return len(self._arrays)

    def __repr__(self) -> str:
        shapes = ", ".join(f"{name} {list(array.shape)}" for name, array in self._arrays.items())
        return f"<revolute gradient: {shapes}>"


class Trajectory:
    """A rollout, kept where it was computed so that it can be differentiated; a context manager that deletes
    it.

    Its arrays are read-only; copy one to change it. A trajectory is deleted when it leaves its `with` block,
    by `delete`, or some time after the last reference to it is gone; `detach` leaves it to others.

    Attributes:
        id: handle, also for other processes (`Simulator.trajectory`).
        model: the model that was simulated.
        qpos: configurations at times 0 … T, [batch, T + 1, nq].
        qvel: velocities at times 0 … T, [batch, T + 1, nv].
        ctrl: controls, [batch, T, nu].
        status: [batch] int32, 0 for an environment that stayed finite, 1 for one that diverged; rows after
            the last good state of the latter are NaN.
        diverged_step: [batch] int64, first step whose result is not finite, -1 where there is none.
        report: what the trajectory costs to keep.
    """

    def __init__(
        self,
        simulator: Simulator,
        model: ModelHandle,
        document: Mapping[str, Any],
        ctrl: np.ndarray,
        *,
        owned: bool,
    ) -> None:
        self.id: str = document["trajectory_id"]
        self.model = model
        self.qpos: Float64Array = _read_only(document["qpos"])
        self.qvel: Float64Array = _read_only(document["qvel"])
        self.ctrl: Float64Array = _read_only(ctrl)
        self.status: npt.NDArray[np.int32] = _read_only(document["status"])
        self.diverged_step: npt.NDArray[np.int64] = _read_only(document["diverged_step"])
        self.report = CheckpointReport(**document["report"])
        self._simulator = simulator
        self._finalizer = weakref.finalize(self, simulator._drop_later, self.id) if owned else None
        if self._finalizer:
            self._finalizer.atexit = False

    def backward(
        self, qpos_bar: Any = None, qvel_bar: Any = None, *, wrt: Sequence[str] = STATE_AND_CONTROL
    ) -> Gradient:
        """Pull the gradient of a loss back through this trajectory.

        Args:
            qpos_bar: d loss / d qpos, shaped like `qpos`; a leading axis K asks for K gradients; None for
                zero.
            qvel_bar: d loss / d qvel, shaped like `qvel`, with the axis K if `qpos_bar` has it; None for
                zero.
            wrt: what to differentiate by: "qpos", "qvel" (start state), "ctrl", and any of the parameters
                that `Simulator.rollout` takes.

        Returns:
            Gradient with one array per name in `wrt`, shaped like that input, with the axis K in front if the
            cotangents have it; a parameter that was not given per environment is summed over the
            environments.

        Raises:
            ArgumentError: a shape does not match the trajectory, or a name is unknown.
            NotFoundError: the trajectory was deleted.
            DivergedError: every environment diverged.
        """
        names = checked_names(wrt)
        document = {
            "trajectory_id": self.id,
            "qpos_bar": None if qpos_bar is None else as_float64("qpos_bar", qpos_bar),
            "qvel_bar": None if qvel_bar is None else as_float64("qvel_bar", qvel_bar),
            "wrt": names,
        }
        found = self._simulator._call("Backward", document)
        return Gradient.from_document(found, names, np.array(self.diverged_step))

    def jvp(
        self,
        *,
        qpos_tan: Any = None,
        qvel_tan: Any = None,
        ctrl_tan: Any = None,
        params_tan: Mapping[str, Any] | None = None,
    ) -> Jvp:
        """Push a direction of the inputs forward through this trajectory; at least one is given.

        Args:
            qpos_tan: tangent of the start configuration, [batch, nv], or [nv] for all environments; of a
                quaternion, the rotation vector in the moving frame; None for zero.
            qvel_tan: tangent of the start velocity, [batch, nv] or [nv]; None for zero.
            ctrl_tan: tangent of the controls, shaped like `ctrl`, or [T, nu] for all environments; None for
                zero.
            params_tan: tangents of model parameters by name, shaped like the parameters.

        Returns:
            The tangents of all states.

        Raises:
            ArgumentError: a shape does not match the trajectory, or a name is unknown.
            NotFoundError: the trajectory was deleted.
            DivergedError: every environment diverged.
        """
        given = {"qpos_tan": qpos_tan, "qvel_tan": qvel_tan, "ctrl_tan": ctrl_tan}
        arrays = {name: None if value is None else as_float64(name, value) for name, value in given.items()}
        document = {
            "trajectory_id": self.id,
            **arrays,
            "params_tan": named_float64("params_tan", params_tan),
        }
        return Jvp.from_document(self._simulator._call("Jvp", document))

    def delete(self) -> None:
        """Forget the trajectory where it is kept; the arrays of this object stay.

        Raises:
            NotFoundError: it was deleted before.
        """
        self.detach()
        self._simulator._call("DeleteTrajectory", {"trajectory_id": self.id})

    def detach(self) -> str:
        """Keep the trajectory after this object is gone, until someone deletes it; return its id."""
        if self._finalizer:
            self._finalizer.detach()
            self._finalizer = None
        return self.id

    def __enter__(self) -> Trajectory:
        return self

    def __exit__(self, *exception: object) -> None:
        try:
            self.delete()
        except NotFoundError:
            return

    def __repr__(self) -> str:
        return (
            f"<revolute trajectory of '{self.model.name}': qpos {list(self.qpos.shape)}, id={self.id[:12]}>"
        )


def checked_names(wrt: Any) -> list[str]:
    """Return `wrt` as a list of names.

    Raises:
        ArgumentError: it is not a sequence of words, or empty.
    """
    if isinstance(wrt, str):
        wrt = [wrt]
    if not isinstance(wrt, Sequence) or not all(isinstance(name, str) for name in wrt):
        raise ArgumentError.expected(
            "wrt", "a sequence of names", repr(wrt), advice='e.g. wrt=("qpos", "ctrl")'
        )
    if not wrt:
        raise ArgumentError.expected("wrt", "at least one name", "none", advice='e.g. wrt=("qpos", "ctrl")')
    return list(wrt)


def _read_only(array: np.ndarray) -> Any:
    view = array.view()
    view.flags.writeable = False
    return view

"""Sessions: a batch of environments that advances call by call."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from .contract.argument_names import reject_unknown_arguments
from .contract.arrays import Float64Array, as_float64, given_float64
from .contract.controllers import MLP, Control, Feedback, given_inputs
from .contract.errors import NotFoundError, RevoluteError
from .contract.scalars import positive_number, whole_number
from .derivatives import StepJacobian
from .link import Link
from .measured import (
    Contacts,
    Kinematics,
    default_quantities,
    joined_sensors,
    read_sensors,
    sensor_quantities,
)
from .model import ModelHandle, check_params
from .unpicklable import Unpicklable
from .unsettled import warn_unsettled

if TYPE_CHECKING:
    from .view import SessionViewer

MAX_BATCH = 2**31 - 1
"""Largest number of environments in one session."""


@dataclass(frozen=True, eq=False)
class State:
    """State of a session; changing its arrays does not change the session.

    Attributes:
        qpos: configurations, [batch, nq].
        qvel: velocities, and behind them activations, [batch, nv + na].
        time: time in s, step_count times the model's timestep.
        step_count: largest of step_counts.
        step_counts: [batch] int64, steps of each environment since its last reset.
        status: [batch] int32, 0 for a finite environment, 1 for one that diverged since the last reset.
            The state of a diverged environment is NaN until the next reset.
        sensordata: readings of the sensors that were asked for, [batch, numbers]; else None.
        unsettled_step: [batch] int64, number since the last reset of the first step whose constraints the
            solver did not settle, or -1; None from a server of an earlier release.
        residual: [batch], largest `Trajectory.residual` since the last reset; None like `unsettled_step`.
        mocap_pos: where the mocap bodies are, [batch, nmocap, 3]; None for a model without any.
        mocap_quat: their quaternions as given, [batch, nmocap, 4]; None for a model without any.
        measured: quantities that `step` was told to measure, by name: [batch, …].
        ctrl: controls that acted last, with the part of a feedback or policy, [batch, nu]; zero after a reset
            and for an environment that diverged. None from a server of an earlier release.
    """

    qpos: Float64Array
    qvel: Float64Array
    time: float
    step_count: int
    status: npt.NDArray[np.int32]
    step_counts: npt.NDArray[np.int64]
    sensordata: Float64Array | None = None
    unsettled_step: npt.NDArray[np.int64] | None = None
    residual: Float64Array | None = None
    mocap_pos: Float64Array | None = None
    mocap_quat: Float64Array | None = None
    measured: Mapping[str, Float64Array] = field(default_factory=dict)
    ctrl: Float64Array | None = None

    @classmethod
    def from_document(cls, document: Mapping[str, Any]) -> State:
        """Build a state from a SessionState document."""
        state = cls.__new__(cls)
        # the constructor of a frozen class sets its fields one by one: a third of GetState in process
        vars(state).update({"measured": {}, **document})
        return state


@dataclass(frozen=True)
class SessionInfo:
    """Description of a session.

    Attributes:
        session_id: id for `Simulator.open_session`.
        model_id: the model that is simulated.
        batch: number of environments.
        step_count: steps since the last reset.
        lease: duration of its lease in s.
        expires_in: time in s until the lease ends; every call on the session renews the lease.
        age: time in s since the session was created.
        durable: whether the server's store keeps it, see `Simulator.session`.
    """

    session_id: str
    model_id: str
    batch: int
    step_count: int
    lease: float
    expires_in: float
    age: float
    durable: bool


class Session(Unpicklable):
    """A batch of environments that keeps its state between calls; a context manager that closes it.

    Attributes:
        id: id for `Simulator.open_session`.
        model: the model that is simulated.
        batch: number of environments.
        lease: seconds without a call after which a server ends the session; infinite in process.
        durable: whether the server's store keeps it, see `Simulator.session`.
    """

    _pickle_advice = "send the arrays of its state(), or on a server its id, for Simulator.open_session"

    def __init__(self, link: Link, model: ModelHandle, document: Mapping[str, Any]) -> None:
        self.model = model
        self.id: str = document["session_id"]
        self.batch: int = document["batch"]
        self.lease: float = document["lease"]
        self.durable: bool = document["durable"]
        self._link = link

    @reject_unknown_arguments
    def reset(
        self,
        qpos: Any = None,
        qvel: Any = None,
        *,
        mocap_pos: Any = None,
        mocap_quat: Any = None,
        where: Any = None,
    ) -> State:
        """Set the state, and set step counts to 0. Parameters stay.

        Args:
            qpos: configuration, [batch, nq], or [nq] for all environments; None for the model's default.
            qvel: velocity, [batch, nv], or [nv] for all environments; None for the model's default.
            mocap_pos: positions of the mocap bodies, [batch, nmocap, 3] or [nmocap, 3]; None for the model's.
            mocap_quat: their quaternions, [batch, nmocap, 4] or [nmocap, 4]; None for the model's.
            where: [batch] booleans, the environments to reset; the others continue. None for all.

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
            "where": None if where is None else np.asarray(as_float64("where", where)),
            **given_float64({"mocap_pos": mocap_pos, "mocap_quat": mocap_quat}),
        }
        return State.from_document(self._link.call("Reset", document))

    @reject_unknown_arguments
    def set_params(self, params: Mapping[str, Any]) -> None:
        """Set the model's parameters for later steps, e.g. other masses in each environment.

        Args:
            params: values by name, as for `Simulator.rollout`; with a leading batch axis each environment has
                its own. Parameters that are not named have the model's values again.

        Raises:
            ArgumentError: a name, shape or value does not fit the model.
            NotFoundError: the session was closed, or its lease ended.
        """
        self._link.call("SetParams", {"session_id": self.id, "params": check_params(self.model, params)})

    @reject_unknown_arguments
    def step(
        self,
        ctrl: Any,
        steps: int | None = None,
        *,
        hold: int = 1,
        feedback: Feedback | None = None,
        policy: MLP | None = None,
        qfrc_applied: Any = None,
        xfrc_applied: Any = None,
        mocap_pos: Any = None,
        mocap_quat: Any = None,
        sensors: bool | Sequence[str] = False,
        measure: Sequence[str] = (),
    ) -> State:
        """Advance all environments. If the call fails, no environment advances.

        Args:
            ctrl: controls of all steps, [batch, nu], or [nu] for all environments; or [batch, T, nu], each
                row for `hold` steps.
            steps: number of steps, a multiple of `hold`; None for `hold` steps per row of `ctrl`. 0 changes
                nothing but the poses of mocap bodies.
            hold: steps that each row of `ctrl` acts for, and after which a controller acts again.
            feedback: linear feedback that is added to `ctrl`, as for `Simulator.rollout`: its arrays may have
                a row for each `hold` steps, [T, …] or [batch, T, …].
            policy: network whose output is added to `ctrl`; not together with `feedback`. Its
                "previous_ctrl" is `State.ctrl`. It may not observe a clock.
            qfrc_applied: generalized forces in these steps, [batch, nv], or [nv] for all environments; or
                [batch, T, nv].
            xfrc_applied: force in N and torque in N m on each body in these steps, in world axes at its mass
                centre, [batch, nbody, 6] or [nbody, 6]; or [batch, T, nbody, 6].
            mocap_pos: positions of the mocap bodies, [batch, nmocap, 3] or [nmocap, 3]; or
                [batch, T, nmocap, 3]. They stay there in later steps. None leaves them where they are.
            mocap_quat: their quaternions (w x y z), [batch, nmocap, 4] or [nmocap, 4], as `mocap_pos`.
            sensors: True, or names of sensors of the file, to read in the new state with the controls that
                acted last, as `sensors` does.
            measure: quantities to measure in the new state with the same call, such as "site_pos:hand", for
                `State.measured`; names as for `Simulator.kinematics`.

        Returns:
            The new state, bit for bit that of a rollout. An `UnsettledWarning` tells of steps whose
            constraints the solver did not settle.

        Raises:
            ArgumentError: a shape or value does not fit the model.
            NotFoundError: the session was closed.
        """
        control = as_float64("ctrl", ctrl)
        rows = control.shape[1] if control.ndim == 3 else 1
        document = {
            "session_id": self.id,
            "ctrl": control,
            "steps": None if steps is None else whole_number("steps", steps, least=0),
            **Control.of(hold, feedback, policy).to_dict(),
        }
        document |= given_inputs(qfrc_applied, xfrc_applied, mocap_pos, mocap_quat)
        readings = [] if sensors is False else sensor_quantities(self.model, sensors)
        quantities = [*readings, *([measure] if isinstance(measure, str) else measure)]
        if quantities:
            document["measure"] = quantities
        state = State.from_document(self._link.call("Step", document))
        first = state.step_count - (rows * hold if steps is None else steps)
        warn_unsettled("step", self.model, state.unsettled_step, state.residual, stacklevel=3, since=first)
        return replace(state, sensordata=joined_sensors(state.measured, readings)) if readings else state

    def sensors(self, names: bool | Sequence[str] = True, *, ctrl: Any = None) -> Float64Array:
        """Read sensors in the current state, as MuJoCo computes them.

        Args:
            names: names of sensors of the file; True for all.
            ctrl: controls, [batch, nu] or [nu], which sensors of forces and accelerations depend on; None
                for zero.

        Returns:
            The readings, [batch, numbers], one sensor after the other.

        Raises:
            ArgumentError: there is no such sensor, or the engine does not compute it.
            NotFoundError: the session was closed.
        """
        return self._read(self._control(ctrl), sensor_quantities(self.model, names))

    def kinematics(self, *, quantities: Sequence[str] | None = None) -> Kinematics:
        """Measure poses and velocities in the current state; see `Simulator.kinematics`.

        Args:
            quantities: names; by default all poses and velocities.

        Raises:
            ArgumentError: a name is unknown.
            NotFoundError: the session was closed.
        """
        names = default_quantities(self.model, True) if quantities is None else list(quantities)
        return Kinematics(self._link, self.model, {"session_id": self.id}, names)

    def contacts(self, ctrl: Any = None) -> Contacts:
        """Find the contacts in the current state, and their forces.

        Args:
            ctrl: controls, [batch, nu] or [nu], which the forces depend on; None for zero.

        Raises:
            ArgumentError: a shape does not fit the model.
            NotFoundError: the session was closed.
        """
        states = {"session_id": self.id, "ctrl": self._control(ctrl)}
        return Contacts.find(self._link, self.model, states, [0])

    def _control(self, ctrl: Any) -> Float64Array:
        return np.zeros(self.model.nu) if ctrl is None else as_float64("ctrl", ctrl)

    def _read(self, ctrl: Float64Array, quantities: Sequence[str]) -> Float64Array:
        return read_sensors(self._link, {"session_id": self.id, "ctrl": ctrl}, quantities)

    @reject_unknown_arguments
    def jacobian(
        self,
        ctrl: Any,
        *,
        qfrc_applied: Any = None,
        xfrc_applied: Any = None,
        mocap_pos: Any = None,
        mocap_quat: Any = None,
    ) -> StepJacobian:
        """Differentiate one step from the current state. The state does not change.

        Args:
            ctrl: controls, [batch, nu], or [nu] for all environments.
            qfrc_applied: generalized forces, as for `step`.
            xfrc_applied: forces and torques on bodies, as for `step`.
            mocap_pos: positions of the mocap bodies in this step; None for those of the session.
            mocap_quat: their quaternions in this step; None for those of the session.

        Returns:
            The matrices A [batch, nx, nx] and B [batch, nx, nu], nx = 2 nv + na, in the tangent
            convention and order of MuJoCo's `mjd_transitionFD`; NaN for an environment that diverged.

        Raises:
            ArgumentError: a shape or value does not fit the model.
            NotFoundError: the session was closed.
            DivergedError: every environment diverged.
        """
        document = {
            "session_id": self.id,
            "ctrl": as_float64("ctrl", ctrl),
            **given_inputs(qfrc_applied, xfrc_applied, mocap_pos, mocap_quat),
        }
        return StepJacobian.from_document(self._link.call("SessionJacobian", document))

    def state(self) -> State:
        """Return the current state.

        Raises:
            NotFoundError: the session was closed.
        """
        return State.from_document(self._link.call("GetState", {"session_id": self.id}))

    @reject_unknown_arguments
    def set_state(
        self,
        qpos: Any = None,
        qvel: Any = None,
        *,
        step_count: Any = None,
        ctrl: Any = None,
        mocap_pos: Any = None,
        mocap_quat: Any = None,
    ) -> State:
        """Replace the state, or parts of it, without resetting the step counts.

        Args:
            qpos: configuration, [batch, nq], or [nq] for all environments; None keeps the current one.
            qvel: velocity, [batch, nv], or [nv] for all environments; None keeps the current one. Giving both
                revives environments that diverged.
            step_count: steps since the last reset, a number or [batch]; None keeps the current ones. To
                restore a saved `State`, pass its qpos, qvel, step_counts, ctrl and poses of mocap bodies.
            ctrl: controls that acted last, which policies observe as "previous_ctrl", [batch, nu], or [nu]
                for all environments; None keeps the current ones.
            mocap_pos: positions of the mocap bodies, as for `reset`; None keeps the current ones.
            mocap_quat: their quaternions, as for `reset`; None keeps the current ones.

        Returns:
            The new state.

        Raises:
            ArgumentError: a shape or value does not fit the model.
            NotFoundError: the session was closed, or its lease ended.
        """
        document: dict[str, Any] = {
            "session_id": self.id,
            "qpos": None if qpos is None else as_float64("qpos", qpos),
            "qvel": None if qvel is None else as_float64("qvel", qvel),
            **given_float64({"mocap_pos": mocap_pos, "mocap_quat": mocap_quat, "ctrl": ctrl}),
        }
        if np.ndim(step_count):
            document["step_counts"] = as_float64("step_count", step_count)
        elif step_count is not None:
            document["step_count"] = whole_number("step_count", step_count, least=0)
        return State.from_document(self._link.call("SetState", document))

    @reject_unknown_arguments
    def fork(self, *, lease: float | None = None) -> Session:
        """Open a second, independent session in the same state.

        Args:
            lease: as for `Simulator.session`; None for the lease of this session.

        Returns:
            The new session.

        Raises:
            NotFoundError: the session was closed, or its lease ended.
            LimitError: the server has no room for another session.
        """
        document = {"session_id": self.id, "lease": checked_lease(lease)}
        return Session(self._link, self.model, self._link.call("ForkSession", document))

    @reject_unknown_arguments
    def view(self, *, rate: float = 20.0, host: str = "127.0.0.1", port: int = 8080) -> SessionViewer:
        """Show the session in a web browser while anyone steps it. Needs the extra `revolute[view]`.

        Args:
            rate: states to ask for per second; this keeps the lease.
            host: address to listen at.
            port: port to listen at; the next free one if it is taken.

        Returns:
            The viewer; its `address` is the page, and `close` ends it.

        Raises:
            ImportError: the extra is not installed.
            NotFoundError: the session was closed, or its lease ended.
            UnavailableError: nothing can listen at this address.
        """
        from .view import SessionViewer

        return SessionViewer(self, rate=rate, host=host, port=port)

    def keep_alive(self) -> float:
        """Renew the lease, as every call on the session does.

        Returns:
            The duration of the lease in s.

        Raises:
            NotFoundError: the session was closed, or its lease ended.
        """
        lease: float = self._link.call("KeepAlive", {"session_id": self.id})["lease"]
        return lease

    def info(self) -> SessionInfo:
        """Describe the session without renewing its lease.

        Raises:
            NotFoundError: the session was closed, or its lease ended.
        """
        return SessionInfo(**self._link.call("GetSession", {"session_id": self.id}))

    def close(self) -> None:
        """Close the session.

        Raises:
            NotFoundError: the session was already closed.
        """
        self._link.call("DeleteSession", {"session_id": self.id})

    def __enter__(self) -> Session:
        return self

    def __exit__(self, kind: type[BaseException] | None, *exception: object) -> None:
        try:
            self.close()
        except NotFoundError:
            return
        except RevoluteError:
            # an exception from inside the block takes precedence
            if kind is None:
                raise

    def __repr__(self) -> str:
        return f"<revolute session of '{self.model.name}': batch={self.batch}, id={self.id[:12]}>"


def checked_lease(lease: Any) -> float | None:
    """Return a lease in seconds, or None for the server's default.

    Raises:
        ArgumentError: it is neither None nor a positive number.
    """
    return None if lease is None else positive_number("lease", lease, "a positive number of seconds")

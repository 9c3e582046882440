"""Trajectories and gradients."""

from __future__ import annotations

import html
import os
import weakref
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from types import MappingProxyType
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from .contract.argument_names import reject_unknown_arguments
from .contract.arrays import Float64Array, as_float64, named_float64
from .contract.checkpoints import CheckpointReport, Checkpoints
from .contract.errors import ArgumentError, NotFoundError, RevoluteError
from .contract.gradient_method import EXACT, GradientMethod, OnDiverged
from .contract.scalars import positive_number
from .derivatives import Jvp
from .link import Link
from .measured import (
    Contacts,
    Kinematics,
    default_quantities,
    joined_sensors,
    read_sensors,
    sensor_quantities,
)
from .model import ModelHandle
from .named_arrays import NamedArrays
from .trajectory_file import write
from .unpicklable import Unpicklable

if TYPE_CHECKING:
    from .render import Camera
    from .view import TrajectoryViewer

STATE_AND_CONTROL = ("qpos", "qvel", "ctrl")
"""Default of `wrt`."""


class Gradient(NamedArrays):
    """A gradient: one array per name in `wrt`, as attribute or by key, shaped like that input.

    Attributes:
        status: [batch] int32, 0 for an environment that stayed finite, 1 for one that diverged, 2 for one
            whose states are finite but whose gradient is not. Rows with status 1 or 2 are NaN.
        diverged_step: [batch] int64, first step whose result is not finite, or -1.
        report: cost of the checkpoints; `replayed_steps` is the number of steps actually replayed.
        method: how it was differentiated, "exact" or "contact_from_distance=…" with the distance in metres.
        clipped: [batch] int64, number of steps whose cotangent was scaled down to `clip`, with a leading axis
            K like the arrays; None without `clip`.
        notes: remarks, such as on an input whose gradient is exactly zero.
    """

    _advice = "name it in wrt to have it computed"

    def __init__(
        self,
        arrays: Mapping[str, Float64Array],
        status: npt.NDArray[np.int32],
        diverged_step: npt.NDArray[np.int64],
        report: CheckpointReport,
        clipped: npt.NDArray[np.int64] | None = None,
        notes: Sequence[str] = (),
        method: str = "exact",
    ) -> None:
        self._arrays = dict(arrays)
        self.status = status
        self.diverged_step = diverged_step
        self.report = report
        self.method = method
        self.clipped = clipped
        self.notes = tuple(notes)

    @classmethod
    def from_document(
        cls, document: Mapping[str, Any], names: Sequence[str], diverged_step: npt.NDArray[np.int64]
    ) -> Gradient:
        """Build a gradient from a Gradient document, in the order of `names`."""
        arrays = {name: document["arrays"][name] for name in names}
        report = CheckpointReport(**document["report"])
        clipped, notes = document.get("clipped"), document.get("notes", ())
        # a server of an earlier release knows no other method
        method = document.get("method") or "exact"
        return cls(arrays, document["status"], diverged_step, report, clipped, notes, method)

    def __repr__(self) -> str:
        shapes = ", ".join(f"{name} {list(array.shape)}" for name, array in self._arrays.items())
        return f"<revolute gradient: {shapes}>"


class Trajectory(Unpicklable):
    """A rollout that can be differentiated; a context manager that deletes it on exit.

    The engine or server keeps the states that the gradient needs. They are deleted at the end of a `with`
    block, by `delete`, or some time after the last reference to this object is gone; `detach` prevents that.
    Arrays are read-only; copy one to change it.

    Attributes:
        id: id for `Simulator.trajectory`, in this or another process.
        model: the model that was simulated.
        final_qpos: configuration at time T, [batch, nq].
        final_qvel: velocity at time T, [batch, nv].
        ctrl: controls as they acted, [batch, T / hold, nu], with the part of a feedback or policy.
        hold: steps that each row of `ctrl` acted for.
        params: model parameters that the rollout replaced, by name.
        inputs: what the rollout was given of `qfrc_applied`, `xfrc_applied`, `mocap_pos` and `mocap_quat`, by
            name.
        checkpoints: which states are kept for the gradient.
        status: [batch] int32, 0 for an environment that stayed finite, 1 for one that diverged. States of a
            diverged environment are NaN after its last finite one.
        diverged_step: [batch] int64, first step whose result is not finite, or -1.
        unsettled_step: [batch] int64, first step whose constraints the solver did not settle, or -1; None
            from a server of an earlier release. Newton's method of contact_model="mujoco" and
            solver="exact" settle at rounding, sweeps when they leave at most 1 mm/s.
        residual: [batch], largest violation of a constraint that the solver of contact_model="hard" left, in
            m/s or rad/s; 0 with "mujoco"; None like `unsettled_step`.
        report: cost of the checkpoints.
        measured: quantities that `rollout` was told to measure, by name: [batch, T + 1, …].
    """

    _pickle_advice = "send its arrays, or on a server the id from detach(), for Simulator.trajectory"

    def __init__(
        self,
        link: Link,
        model: ModelHandle,
        document: Mapping[str, Any],
        ctrl: np.ndarray,
        *,
        owned: bool,
        params: Mapping[str, np.ndarray],
        inputs: Mapping[str, np.ndarray] = MappingProxyType({}),
    ) -> None:
        self.id: str = document["trajectory_id"]
        self.model = model
        self.checkpoints = Checkpoints.parse(document["checkpoints"])
        self.final_qpos: Float64Array = _read_only(document["final_qpos"])
        self.final_qvel: Float64Array = _read_only(document["final_qvel"])
        self._states = _states(document) if "qpos" in document else None
        self.ctrl: Float64Array = _read_only(ctrl)
        self.params: Mapping[str, Float64Array] = {name: _read_only(value) for name, value in params.items()}
        self.inputs: Mapping[str, Float64Array] = {name: _read_only(value) for name, value in inputs.items()}
        # servers of earlier versions do not send it
        self.hold: int = document.get("hold") or 1
        self.status: npt.NDArray[np.int32] = _read_only(document["status"])
        self.diverged_step: npt.NDArray[np.int64] = _read_only(document["diverged_step"])
        self.unsettled_step: npt.NDArray[np.int64] | None = _read_only_or_none(document, "unsettled_step")
        self.residual: Float64Array | None = _read_only_or_none(document, "residual")
        self.report = CheckpointReport(**document["report"])
        self.measured: Mapping[str, Float64Array] = {
            name: _read_only(array) for name, array in document.get("measured", {}).items()
        }
        self._sensordata: Float64Array | None = None
        self._sensor_quantities: list[str] = []
        self._link = link
        kept = owned and self.checkpoints.differentiable
        self._finalizer = weakref.finalize(self, link.delete_later, self.id) if kept else None
        if self._finalizer:
            self._finalizer.atexit = False

    @property
    def qpos(self) -> Float64Array:
        """Configurations at times 0 … T, [batch, T + 1, nq].

        If the rollout returned only the final state, the first access to `qpos` or `qvel` replays all states
        from the start and stores them in this object.

        Raises:
            ArgumentError: the rollout ran with checkpoints "none".
            NotFoundError: the trajectory was deleted.
        """
        return self._all_states()[0]

    @property
    def qvel(self) -> Float64Array:
        """Velocities at times 0 … T, and behind them activations, [batch, T + 1, nv + na]; see `qpos`."""
        return self._all_states()[1]

    @property
    def has_states(self) -> bool:
        """Whether `qpos` and `qvel` are here, so that reading them asks no engine."""
        return self._states is not None

    @property
    def act(self) -> Float64Array:
        """Activations at times 0 … T, [batch, T + 1, na]: the end of `qvel`."""
        return self.qvel[..., self.model.nv :]

    @property
    def sensordata(self) -> Float64Array:
        """Readings of the sensors at times 0 … T, [batch, T + 1, nsensordata], as MuJoCo computes them.

        Those of forces and accelerations at time t are with the control of step t, at time T with that of the
        last step. The first access computes all sensors of the file, unless `rollout` was given `sensors`.

        Raises:
            ArgumentError: the file has no sensors or one that the engine does not compute; the text names it.
            NotFoundError: the trajectory was deleted.
        """
        if self._sensordata is None:
            self._check_kept()
            self._sensor_quantities = sensor_quantities(self.model, True)
            self._sensordata = read_sensors(self._link, {"trajectory_id": self.id}, self._sensor_quantities)
        return self._sensordata

    def take_sensors(self, quantities: Sequence[str]) -> None:
        """Set `sensordata` from quantities in `measured`, such as "sensor:imu"."""
        self._sensor_quantities = list(quantities)
        self._sensordata = joined_sensors(self.measured, quantities)

    @reject_unknown_arguments
    def kinematics(
        self, times: Sequence[int] | None = None, *, quantities: Sequence[str] | None = None
    ) -> Kinematics:
        """Measure poses and velocities at states of this trajectory, with its parameters.

        Args:
            times: indices of the states, ascending, e.g. [-1] for the final one; None for all T + 1 states.
            quantities: names as for `Simulator.kinematics`; by default all poses and velocities.

        Returns:
            The quantities, [batch, times, …]. Their `backward` gives cotangents for `Trajectory.backward` at
            the same times.

        Raises:
            ArgumentError: a name is unknown, or times do not fit the trajectory.
            NotFoundError: the trajectory was deleted.
        """
        names = default_quantities(self.model, True) if quantities is None else checked_names(quantities)
        return Kinematics(self._link, self.model, self._states_at(times), names)

    @reject_unknown_arguments
    def contacts(self, times: Sequence[int] | None = None) -> Contacts:
        """Find the contacts at states of this trajectory, and their forces.

        Args:
            times: indices of the states, as for `kinematics`.

        Raises:
            ArgumentError: times do not fit the trajectory.
            NotFoundError: the trajectory was deleted.
        """
        count = self.ctrl.shape[-2] * self.hold + 1
        chosen = list(range(count)) if times is None else _whole_numbers("times", times)
        indices = [time + count if time < 0 else time for time in chosen]
        return Contacts.find(self._link, self.model, self._states_at(times), indices)

    def _states_at(self, times: Sequence[int] | None) -> dict[str, Any]:
        self._check_kept()
        return {
            "trajectory_id": self.id,
            "times": None if times is None else _whole_numbers("times", times),
        }

    def _all_states(self) -> tuple[Float64Array, Float64Array]:
        if self._states is None:
            self._check_kept()
            document = {"trajectory_id": self.id, "states": "all"}
            self._states = _states(self._link.call("GetTrajectory", document))
        return self._states

    def _check_kept(self) -> None:
        if not self.checkpoints.differentiable:
            raise ArgumentError.expected(
                "trajectory",
                "one with checkpoints",
                "one with checkpoints 'none'",
                advice="simulate it with checkpoints='slots=32' or another policy",
            )

    @reject_unknown_arguments
    def backward(
        self,
        qpos_bar: Any = None,
        qvel_bar: Any = None,
        *,
        ctrl_bar: Any = None,
        sensordata_bar: Any = None,
        times: Sequence[int] | None = None,
        wrt: Sequence[str] = STATE_AND_CONTROL,
        clip: float | None = None,
        gradient: str | GradientMethod = EXACT,
        on_diverged: OnDiverged = "raise",
    ) -> Gradient:
        """Pull the gradient of a loss back through this trajectory.

        Args:
            qpos_bar: d loss / d qpos, shaped like `qpos`; None for zero. With a leading axis K, the call
                returns K gradients.
            qvel_bar: d loss / d qvel, shaped like `qvel`; None for zero. It has the axis K if `qpos_bar` has.
            ctrl_bar: d loss / d ctrl at fixed states, shaped like `ctrl`, also with `times`; None for zero.
                It has the axis K if the others have.
            sensordata_bar: d loss / d sensordata, shaped like `sensordata`; None for zero. It takes neither
                an axis K nor `times`.
            times: indices of the states that the cotangents belong to, ascending, e.g. [-1] for the final
                one; the time axis of the cotangents then has this length. None for all T + 1 states.
            wrt: what to differentiate by: "qpos" and "qvel" (start state), "ctrl", any parameter that
                `Simulator.rollout` takes, and the arrays of its controller: "feedback.gain", "feedback.qpos",
                "feedback.qvel", "policy.weights" (one vector; `MLP.arrays` splits it), "policy.goal", and
                those of `inputs`. The gradient by a quaternion of `mocap_quat` is by its four numbers, as is
                that of qpos.
            clip: largest norm of a state's cotangent (tangent coordinates of qpos, and qvel, without units);
                longer ones are scaled down before they are pulled back through a step, for each environment
                and step. This tames gradients through chaotic contacts, and biases them: the result is no
                longer the gradient of the loss. None for no bound.
            gradient: "exact", or "contact_from_distance[=metres]": shapes that do not touch answer by a weak
                force in the derivative alone. It needs contact_model="mujoco"; docs/gradients.md explains it.
            on_diverged: "raise" an error if every environment diverged, or "inf" for a gradient of NaN then.

        Returns:
            Gradient with one array per name in `wrt`, shaped like that input, with a leading axis K if the
            cotangents have one. The gradient of a parameter or an array of a controller that all environments
            share is the sum over them.

        Raises:
            ArgumentError: a shape does not match the trajectory, or a name is unknown.
            NotFoundError: the trajectory was deleted.
            DivergedError: every environment diverged, and `on_diverged` is "raise".
        """
        names = checked_names(wrt)
        self._check_kept()
        bars = {"qpos_bar": qpos_bar, "qvel_bar": qvel_bar, "ctrl_bar": ctrl_bar}
        given = {name: None if bar is None else as_float64(name, bar) for name, bar in bars.items()}
        if sensordata_bar is not None:
            if times is not None:
                raise ArgumentError.expected("times", "None beside sensordata_bar", repr(times)[:60])
            chosen = {"clip": clip, "gradient": gradient, "on_diverged": on_diverged}
            return self._backward_of_sensors(given, sensordata_bar, names, chosen)
        document = {
            "trajectory_id": self.id,
            **given,
            "wrt": names,
            "times": None if times is None else _whole_numbers("times", times),
            **method_field(gradient),
            "clip": None if clip is None else positive_number("clip", clip),
            "on_diverged": on_diverged,
        }
        found = self._link.call("Backward", document)
        return Gradient.from_document(found, names, np.array(self.diverged_step))

    def _backward_of_sensors(
        self,
        bars: Mapping[str, Float64Array | None],
        sensordata_bar: Any,
        names: Sequence[str],
        chosen: Mapping[str, Any],
    ) -> Gradient:
        """Pull cotangents of the sensors back to the states, and these with the given ones to the inputs."""
        shape, bar = self.sensordata.shape, as_float64("sensordata_bar", sensordata_bar)
        if bar.shape != shape:
            raise ArgumentError.expected("sensordata_bar", f"shape {list(shape)}", list(bar.shape))
        parameters = [name for name in names if name in self.model.params]
        inputs = [name for name in names if name in self.inputs]
        document = {
            "states": {"trajectory_id": self.id},
            "cotangents": self._split_sensors(bar),
            "wrt": [*STATE_AND_CONTROL, *parameters, *inputs],
        }
        direct = self._link.call("Measure", document)["gradient"]
        total = {f"{name}_bar": direct[name] for name in ("qpos", "qvel")}
        if self.ctrl.shape[-2]:
            total["ctrl_bar"] = self._by_period(direct["ctrl"], self.ctrl.ndim - 2)
        for name, given in bars.items():
            if given is not None:
                total[name] = total[name] + given
        found = self.backward(**total, wrt=names, **chosen)
        for name in parameters:
            found._arrays[name] = found[name] + direct[name]
        for name in inputs:
            found._arrays[name] = found[name] + self._as_given(name, direct[name])
        return found

    def _as_given(self, name: str, by_state: Float64Array) -> Float64Array:
        """Return cotangents of an input at states 0 … T in the shape of the input, sums where it repeats."""
        given, batched = self.inputs[name], self.ctrl.ndim == 3
        own = given.shape[given.ndim - (by_state.ndim - 1 - batched) :]
        if self.ctrl.shape[-2]:
            rows = self._by_period(by_state, int(batched))
        elif given.ndim == len(own) or given.shape[-len(own) - 1]:
            # T = 0: an input that is the same at all times acts at the only state
            rows = by_state
        else:
            return np.zeros(given.shape)
        if batched and (given.ndim < rows.ndim or len(given) == 1 < len(rows)):
            rows = rows[self.status == 0].sum(axis=0, keepdims=True)
        shape = (*(1,) * (rows.ndim - given.ndim), *given.shape)
        repeated = tuple(axis for axis, size in enumerate(shape) if size == 1 < rows.shape[axis])
        return rows.sum(axis=repeated, keepdims=True).reshape(given.shape)

    def _by_period(self, by_state: Float64Array, axis: int) -> Float64Array:
        """Sum cotangents of inputs at states 0 … T, on an axis, over the states that each row acts at."""
        first = np.moveaxis(by_state, axis, 0)
        steps = np.array(first[:-1])
        # the state at time T is measured with the last row
        steps[-1] += first[-1]
        rows = steps.reshape(self.ctrl.shape[-2], self.hold, *steps.shape[1:]).sum(axis=1)
        return np.moveaxis(rows, 0, axis)

    def _split_sensors(self, bar: Float64Array) -> dict[str, Float64Array]:
        """Return cotangents by the quantities that `sensordata` consists of."""
        if self._sensor_quantities == ["sensor"]:
            return {"sensor": bar}
        sizes = dict(zip(self.model.sensor_names, self.model.sensor_dims, strict=True))
        counts = [sizes[name.partition(":")[2]] for name in self._sensor_quantities]
        parts = np.split(bar, np.cumsum(counts)[:-1], axis=-1)
        return dict(zip(self._sensor_quantities, parts, strict=True))

    @reject_unknown_arguments
    def jvp(
        self,
        *,
        qpos_tan: Any = None,
        qvel_tan: Any = None,
        ctrl_tan: Any = None,
        params_tan: Mapping[str, Any] | None = None,
        control_tan: Mapping[str, Any] | None = None,
    ) -> Jvp:
        """Push a tangent of the inputs forward through this trajectory. At least one argument is required.

        Args:
            qpos_tan: tangent of the start configuration, [batch, nv], or [nv] for all environments; the
                tangent of a quaternion is a rotation vector in the moving frame; None for zero.
            qvel_tan: tangent of the start velocity, [batch, nv] or [nv]; None for zero.
            ctrl_tan: tangent of the controls, shaped like `ctrl`, or [T, nu] for all environments; None for
                zero. A controller of the rollout answers to the states' tangents by itself.
            params_tan: tangents of model parameters by name, shaped like the parameters.
            control_tan: tangents of "qfrc_applied" and of the arrays of the rollout's feedback or policy, by
                their names in `wrt` of `backward`, shaped like these; that of "feedback.qpos" has nv numbers.

        Returns:
            The tangents of all states.

        Raises:
            ArgumentError: a shape does not match the trajectory, or a name is unknown.
            NotFoundError: the trajectory was deleted.
            DivergedError: every environment diverged.
        """
        self._check_kept()
        given = {"qpos_tan": qpos_tan, "qvel_tan": qvel_tan, "ctrl_tan": ctrl_tan}
        arrays = {name: None if value is None else as_float64(name, value) for name, value in given.items()}
        document = {
            "trajectory_id": self.id,
            **arrays,
            "params_tan": named_float64("params_tan", params_tan),
            "control_tan": named_float64("control_tan", control_tan),
        }
        return Jvp.from_document(self._link.call("Jvp", document))

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write the trajectory to an NPZ file for `Simulator.load_trajectory`, with its model.

        The file has the start state, the controls as they acted, `inputs` and the parameters, not the states,
        which are simulated again. A feedback or policy is not in it.

        Raises:
            ArgumentError: the file cannot be written, or the rollout ran with checkpoints "none".
        """
        run = {
            "checkpoints": str(self.checkpoints),
            "hold": self.hold,
            "inputs": {
                "qpos": np.array(self.qpos[..., 0, :]),
                "qvel": np.array(self.qvel[..., 0, :]),
                "ctrl": np.array(self.ctrl),
                **{name: np.array(value) for name, value in self.inputs.items()},
            },
            "params": {name: np.asarray(value) for name, value in self.params.items()},
            "final": {"qpos": np.array(self.final_qpos), "qvel": np.array(self.final_qvel)},
        }
        write(self.model.source, run, path)

    @reject_unknown_arguments
    def render(
        self,
        path: str | os.PathLike[str],
        *,
        camera: Camera | str | None = None,
        size: tuple[int, int] | None = None,
        fps: float | None = None,
        speed: float = 1.0,
        frames: int = 6,
        env: int = 0,
        contacts: bool = False,
        gradient: Mapping[str, Any] | None = None,
    ) -> Path:
        """Draw the motion off-screen and write it to a file. Needs the extra `revolute[render]`.

        Args:
            path: `.mp4` for a video, `.gif` for an animated picture, `.png` for a film strip.
            camera: a `revolute.render.Camera`, the name of a camera in the file, or "track" to follow the
                first body that moves; None for a fixed view of the whole motion.
            size: width and height of a picture in pixels; by default 640 x 480, for .gif 320 x 240, for
                each picture of a film strip 240 x 240.
            fps: pictures per second of a video; by default 30, for .gif 20.
            speed: seconds of motion per second of video.
            frames: pictures of a film strip, evenly spaced in time.
            env: number of the environment in the batch.
            contacts: draw contact forces as arrows.
            gradient: what `backward` returned; drawn as arrows at the joints, along which the loss falls.

        Returns:
            The path.

        Raises:
            ImportError: the extra is not installed.
            ArgumentError: an argument does not fit the trajectory.
            UnavailableError: there is no OpenGL to draw with.
        """
        from .render import render

        return render(
            self,
            path,
            camera=camera,
            size=size,
            fps=fps,
            speed=speed,
            frames=frames,
            env=env,
            contacts=contacts,
            gradient=gradient,
        )

    @reject_unknown_arguments
    def view(
        self,
        *,
        gradient: Mapping[str, Any] | Callable[[], Mapping[str, Any]] | None = None,
        host: str = "127.0.0.1",
        port: int = 8080,
    ) -> TrajectoryViewer:
        """Show the motion in a web browser. Needs the extra `revolute[view]`.

        Args:
            gradient: what `backward` returned, or a function that returns it, called when somebody asks for
                it on the page.
            host: address to listen at.
            port: port to listen at; the next free one if it is taken.

        Returns:
            The viewer; its `address` is the page, and `close` ends it.

        Raises:
            ImportError: the extra is not installed.
            UnavailableError: nothing can listen at this address.
        """
        from .view import TrajectoryViewer

        return TrajectoryViewer(self, gradient=gradient, host=host, port=port)

    def delete(self) -> None:
        """Delete the trajectory in the engine or on the server. The arrays of this object remain valid.

        Raises:
            NotFoundError: the trajectory was already deleted.
        """
        self.detach()
        if self.checkpoints.differentiable:
            self._link.call("DeleteTrajectory", {"trajectory_id": self.id})

    def detach(self) -> str:
        """Keep the trajectory until `delete` is called, even after this object is gone.

        Returns:
            The id of the trajectory.
        """
        if self._finalizer:
            self._finalizer.detach()
            self._finalizer = None
        return self.id

    def __enter__(self) -> Trajectory:
        return self

    def __exit__(self, kind: type[BaseException] | None, *exception: object) -> None:
        try:
            self.delete()
        except NotFoundError:
            return
        except RevoluteError:
            # an exception from inside the block takes precedence
            if kind is None:
                raise

    def _repr_html_(self) -> str:
        """Return a summary for notebooks, with a moving picture if it can be drawn."""
        text = html.escape(repr(self))
        try:
            from .render import animated_html

            return f"<div>{animated_html(self)}<br/><code>{text}</code></div>"
        except (ImportError, RevoluteError):
            return f"<code>{text}</code>"

    def __repr__(self) -> str:
        return (
            f"<revolute trajectory of '{self.model.name}': ctrl {list(self.ctrl.shape)}, "
            f"checkpoints={self.checkpoints}, id={self.id[:12]}>"
        )


def method_field(gradient: Any) -> dict[str, str]:
    """Return the field of a request that says how to differentiate; empty for the exact gradient."""
    method = GradientMethod.parse(gradient)
    return {} if method.is_exact else {"gradient": str(method)}


def checked_names(wrt: Any, argument: str = "wrt") -> list[str]:
    """Return `wrt`, or another argument, as a list of names.

    Raises:
        ArgumentError: `wrt` is not a sequence of strings, or is empty.
    """
    if isinstance(wrt, str):
        wrt = [wrt]
    if not isinstance(wrt, (list, tuple, Sequence)) or not all(isinstance(name, str) for name in wrt):
        advice = 'e.g. wrt=("qpos", "ctrl")' if argument == "wrt" else None
        raise ArgumentError.expected(argument, "a sequence of names", repr(wrt)[:60], advice=advice)
    if not wrt:
        raise ArgumentError.expected("wrt", "at least one name", "none", advice='e.g. wrt=("qpos", "ctrl")')
    return list(wrt)


def _whole_numbers(name: str, values: Any) -> list[int]:
    """Return a sequence of whole numbers as a list."""
    array = np.atleast_1d(np.asarray(values))
    if array.ndim != 1 or array.dtype.kind not in "iu":
        text = repr(values)
        raise ArgumentError.expected(
            name, "a sequence of whole numbers", text if len(text) <= 60 else f"{text[:57]}..."
        )
    return [int(value) for value in array]


def _states(document: Mapping[str, Any]) -> tuple[Float64Array, Float64Array]:
    return _read_only(document["qpos"]), _read_only(document["qvel"])


def _read_only_or_none(document: Mapping[str, Any], name: str) -> Any:
    array = document.get(name)
    return None if array is None else _read_only(array)


def _read_only(array: np.ndarray) -> Any:
    if not array.flags.writeable:
        return array
    view = array.view()
    view.flags.writeable = False
    return view

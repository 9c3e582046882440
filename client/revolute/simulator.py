"""`Simulator`, the object that `connect` returns: loads models, simulates and differentiates."""

from __future__ import annotations

import os
import warnings
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Literal

import numpy as np

from .contract.argument_names import reject_unknown_arguments
from .contract.arrays import Float64Array, as_float64, owned_float64, repeated_controls
from .contract.checkpoints import EVERY, Checkpoints
from .contract.controllers import MLP, Control, Feedback, given_inputs
from .contract.errors import ArgumentError, ModelError
from .contract.gradient_method import EXACT, GradientMethod, OnDiverged
from .contract.gradient_report import GradientReport
from .contract.load_options import GivenOptions, spell_out_options
from .contract.loss import Loss, Term, check_loss
from .contract.scalars import positive_number, whole_number
from .contract.transport import IN_PROCESS, Transport
from .derivatives import StepJacobian
from .link import Link
from .loss_function import LossFunction, States, evaluate, infinite_where_diverged
from .measured import Kinematics, default_quantities, sensor_quantities
from .model import ModelHandle, Source, check_model, check_options, check_params
from .rollout_stream import RolloutStream
from .session import MAX_BATCH, Session, SessionInfo, checked_lease
from .source_files import add_searched_paths, read_source
from .trajectory import (
    STATE_AND_CONTROL,
    Gradient,
    Trajectory,
    checked_names,
    method_field,
)
from .trajectory_file import read
from .unpicklable import Unpicklable
from .unsettled import warn_unsettled

if TYPE_CHECKING:
    from typing_extensions import Unpack


class Simulator(Unpicklable):
    """Simulates and differentiates models; a context manager that closes its connection.

    Attributes:
        address: address of the server, or "in-process".
    """

    _pickle_advice = "call revolute.connect() in each process, and load its models there"

    def __init__(self, transport: Transport) -> None:
        self.address = transport.address
        self._link = Link(transport)
        self._loaded: set[str] = set()

    @reject_unknown_arguments
    @spell_out_options
    def load_model(
        self,
        source: Any,
        *,
        assets: Mapping[str, bytes] | None = None,
        mesh_paths: Sequence[str | os.PathLike[str]] = (),
        package_paths: Mapping[str, str | os.PathLike[str]] | None = None,
        name: str | None = None,
        **options: Unpack[GivenOptions],
    ) -> ModelHandle:
        """Load a model from a URDF or MJCF file, its text, or by the name of a built-in model.

        The file and the files it refers to are read here and travel as bytes. An option that is None takes
        its default.

        Args:
            source: path, XML text, or built-in name (`models()`).
            **options: how the model is built and simulated; see `contract.load_options.LoadOptions`.
            assets: contents of files by the reference as the text writes it; they win over files on disk.
            mesh_paths: further folders to look for mesh files in.
            package_paths: folder of each ROS package that `package://name/…` names.
            name: name for messages; the file's name by default.

        Returns:
            The model.

        Raises:
            ArgumentError: an option has a wrong type or value.
            ModelError: the file cannot be read or asks for an unsupported feature; names file and element.
            NotFoundError: there is no such file or built-in model.
        """
        checked = check_options(options)
        model = read_source(
            source,
            options=checked,
            assets=assets,
            mesh_paths=mesh_paths,
            package_paths=package_paths,
            name=name,
        )
        handle = self._register(model)
        for note in handle.warnings:
            warnings.warn(f"{model.name or model.builtin or 'XML text'}: {note}", stacklevel=3)
        return handle

    def _register(self, source: Source) -> ModelHandle:
        """Load a model from its source."""
        document = {
            "builtin": source.builtin or None,
            "text": source.text or None,
            "assets": dict(source.assets),
            "options": dict(source.options),
            "name": source.name or None,
        }
        try:
            answer = self._link.call("RegisterModel", document)
        except ModelError as error:
            raise add_searched_paths(error, source) from None
        return self._handle(answer, source)

    def _handle(self, info: Mapping[str, Any], source: Source) -> ModelHandle:
        """Return the handle of a model that the engine or server has."""
        link, request = self._link, {"model_id": info["model_id"]}
        handle = ModelHandle.from_document(info, source, lambda: link.call("GetModelFiles", request))
        self._loaded.add(handle.id)
        return handle

    def open_model(self, model_id: str) -> ModelHandle:
        """Return a model that somebody has already loaded on this server, or in this process.

        Args:
            model_id: its id, as in `ModelHandle.id` and `SessionInfo.model_id`.

        Raises:
            NotFoundError: there is no such model.
        """
        if not isinstance(model_id, str):
            raise ArgumentError.expected("model_id", "a string", type(model_id).__name__)
        return self._handle(self._link.call("GetModel", {"model_id": model_id}), Source())

    def _id(self, model: Any) -> str:
        """Return the id of a model; in process, load one that another simulator has loaded."""
        known = check_model(model)
        if self.address == IN_PROCESS and known.id not in self._loaded:
            self._register(known.source)
        return known.id

    def models(self) -> list[str]:
        """Return the names of the built-in models."""
        return list(self._link.call("ListModels", {})["builtin"])

    @reject_unknown_arguments
    def rollout(
        self,
        model: ModelHandle,
        qpos: Any,
        qvel: Any,
        ctrl: Any,
        *,
        hold: int = 1,
        feedback: Feedback | None = None,
        policy: MLP | None = None,
        qfrc_applied: Any = None,
        xfrc_applied: Any = None,
        mocap_pos: Any = None,
        mocap_quat: Any = None,
        params: Mapping[str, Any] | None = None,
        checkpoints: str | Checkpoints = EVERY,
        states: Literal["all", "final"] | None = None,
        sensors: bool | Sequence[str] = False,
        measure: Sequence[str] = (),
    ) -> Trajectory:
        """Simulate a batch of environments under given controls.

        Args:
            model: the model.
            qpos: start configuration, [batch, nq], or [nq] for all environments.
            qvel: start velocity, [batch, nv], or [nv] for all environments.
            ctrl: controls, [batch, T, nu]. With [T, nu], results have no batch axis. T may be 0. In all
                arrays, a batch axis of length 1 repeats.
            hold: steps that each row of `ctrl` acts for; the trajectory has as many steps as `ctrl` has rows,
                times `hold`.
            feedback: linear feedback that is added to each row of `ctrl` at its first step.
            policy: network whose output is added to each row of `ctrl` at its first step; not
                together with `feedback`.
            qfrc_applied: generalized forces besides those of actuators, held like `ctrl`: [nv], [T, nv] with
                a row per row of `ctrl`, or [batch, T, nv]. An axis of length 1, and one that is left out,
                repeats.
            xfrc_applied: force in N and torque in N m on each body, in world axes at its mass centre, as
                MuJoCo's: [nbody, 6], [T, nbody, 6] or [batch, T, nbody, 6].
            mocap_pos: positions of the mocap bodies, [nmocap, 3], with axes as above; None for the model's.
            mocap_quat: their quaternions (w x y z), [nmocap, 4], which are normalised; None for the model's.
            params: model parameters to replace, by name. A leading batch axis gives each environment its own
                value. `model.params` has the names and the model's values, e.g. body_mass [nbody]. Some
                elements are replaced by name: {"body_mass": {"chassis": 5.1}}.
            checkpoints: which states are kept for the gradient: "every" (all T + 1 states), "interval=k"
                (each k-th), "slots=s" (at most s, for any length), or "none" (no gradient; nothing is kept
                or copied). The gradient is bit-identical under every policy.
            states: which states the call returns: "all" or "final". The default is "all" with checkpoints
                "every", else "final".
            sensors: True, or names of sensors of the file, to compute `trajectory.sensordata` with the call;
                it needs checkpoints.
            measure: quantities to measure at all states with the call, such as "site_pos:hand", for
                `trajectory.measured`; names as for `kinematics`. It needs checkpoints. If T is 0, it sees the
                applied forces and poses that have no axis of time, and controls of zero.

        Returns:
            The trajectory; its `status` reports environments that diverged. An `UnsettledWarning` tells of
            steps whose constraints the solver did not settle.

        Raises:
            ArgumentError: a shape, value or name does not fit the model.
            NotFoundError: the model is gone, or was loaded by another simulator of another server.
            LimitError: the request exceeds a limit of the server.
        """
        kept = Checkpoints.parse(checkpoints)
        if states not in (None, "all", "final"):
            raise ArgumentError.expected("states", "'all' or 'final'", repr(states))
        inputs = self._inputs(model, qpos, qvel, ctrl, params)
        readings = sensor_quantities(model, sensors) if sensors is not False else []
        quantities = [*readings, *(checked_names(measure, "measure") if measure else ())]
        if quantities and not kept.differentiable:
            raise ArgumentError.expected("checkpoints", "a policy that keeps states to measure at", "'none'")
        control = Control.of(hold, feedback, policy, qfrc_applied, xfrc_applied, mocap_pos, mocap_quat)
        if kept.differentiable and not control.has_controller and self.address != IN_PROCESS:
            inputs["ctrl"] = owned_float64("ctrl", inputs["ctrl"])
        inputs |= {"checkpoints": str(kept), "states": states, **control.to_dict()}
        if quantities:
            inputs["measure"] = quantities
        answer = self._link.rollout(inputs)
        _warn_unsettled("rollout", model, answer)
        # with a controller the controls come with the answer; in process, share the engine's copy of ctrl
        acted = answer["ctrl"] if "ctrl" in answer else _repeated(inputs)
        # a name here would keep the trajectory alive in the frames of an earlier attempt's error
        return self._rolled_out(model, answer, acted, inputs["params"], control.inputs, readings)

    def _rolled_out(
        self,
        model: ModelHandle,
        answer: Mapping[str, Any],
        ctrl: Float64Array,
        params: Mapping[str, Float64Array],
        step_inputs: Mapping[str, Float64Array],
        readings: Sequence[str],
    ) -> Trajectory:
        """Return the trajectory of an answer, with the sensors that were asked for."""
        trajectory = Trajectory(
            self._link, model, answer, ctrl, owned=True, params=params, inputs=step_inputs
        )
        if readings:
            trajectory.take_sensors(readings)
        return trajectory

    @reject_unknown_arguments
    def stream_rollout(
        self,
        model: ModelHandle,
        qpos: Any,
        qvel: Any,
        ctrl: Any,
        *,
        hold: int = 1,
        feedback: Feedback | None = None,
        policy: MLP | None = None,
        qfrc_applied: Any = None,
        xfrc_applied: Any = None,
        mocap_pos: Any = None,
        mocap_quat: Any = None,
        params: Mapping[str, Any] | None = None,
        segment_steps: int | None = None,
    ) -> RolloutStream:
        """Simulate like `rollout`, and deliver the states while they are being computed.

        The engine computes at most one segment ahead of the reader.

        Args:
            model: the model.
            qpos: start configuration, as for `rollout`.
            qvel: start velocity, as for `rollout`.
            ctrl: controls, as for `rollout`.
            hold: steps that each row of `ctrl` acts for, as for `rollout`.
            feedback: feedback that is added to `ctrl`, as for `rollout`.
            policy: network whose output is added to `ctrl`, as for `rollout`.
            qfrc_applied: generalized forces, as for `rollout`.
            xfrc_applied: forces and torques on bodies, as for `rollout`.
            mocap_pos: positions of the mocap bodies, as for `rollout`.
            mocap_quat: their quaternions, as for `rollout`.
            params: model parameters to replace, as for `rollout`.
            segment_steps: steps per segment, a multiple of `hold`; by default, as many as fit in 256 KiB.

        Returns:
            An iterator of segments, each with `first`, `qpos` and `qvel`. After the last segment, its
            `trajectory` equals the result of `rollout` bit for bit. To stop early, close the iterator or use
            it as a context manager.

        Raises:
            ArgumentError: a shape, value or name does not fit the model.
            NotFoundError: the model is gone, or was loaded by another simulator of another server.
            LimitError: the request exceeds a limit of the server.
        """
        inputs = self._inputs(model, qpos, qvel, ctrl, params)
        inputs["ctrl"] = owned_float64("ctrl", inputs["ctrl"])
        steps = None if segment_steps is None else whole_number("segment_steps", segment_steps, least=1)
        control = Control.of(hold, feedback, policy, qfrc_applied, xfrc_applied, mocap_pos, mocap_quat)
        document = {"inputs": inputs | control.to_dict(), "segment_steps": steps}
        documents = self._link.stream("StreamRollout", document)
        return RolloutStream(self._link, model, documents, _repeated(inputs), inputs["params"], control)

    def trajectory(self, model: ModelHandle, trajectory_id: str) -> Trajectory:
        """Open a trajectory by its id, e.g. one that another process kept with `Trajectory.detach`.

        Args:
            model: the model that was simulated.
            trajectory_id: its id.

        Returns:
            The trajectory. It is not deleted when this object is garbage collected.

        Raises:
            ArgumentError: the trajectory belongs to another model.
            NotFoundError: there is no such trajectory.
        """
        if not isinstance(trajectory_id, str):
            raise ArgumentError.expected("trajectory_id", "a string", type(trajectory_id).__name__)
        document = self._link.call("GetTrajectory", {"trajectory_id": trajectory_id, "states": "final"})
        if document["model_id"] != check_model(model).id:
            raise ArgumentError.expected("model", f"the trajectory's model {document['model_id']}", model.id)
        params = document.get("params", {})
        inputs = document.get("inputs", {})
        return Trajectory(
            self._link, model, document, document["ctrl"], owned=False, params=params, inputs=inputs
        )

    def load_trajectory(self, path: str | os.PathLike[str]) -> Trajectory:
        """Simulate a trajectory again that `Trajectory.save` wrote; its `model` is loaded, too.

        Args:
            path: the file.

        Returns:
            The trajectory, which can be differentiated. On the same build it has the same bits; if its final
            state differs from the file's, a warning says so.

        Raises:
            NotFoundError: there is no such file.
            ArgumentError: the file is not one of `Trajectory.save`.
        """
        source, arguments, final = read(path)
        trajectory = self.rollout(self._register(source), **arguments)
        same = (
            np.array_equal(getattr(trajectory, f"final_{name}"), final[name], equal_nan=True)
            for name in final
        )
        if not all(same):
            text = "the final state differs from the file's: another build or machine wrote it"
            warnings.warn(f"{path}: {text}", stacklevel=2)
        return trajectory

    @reject_unknown_arguments
    def value_and_gradient(
        self,
        model: ModelHandle,
        qpos: Any,
        qvel: Any,
        ctrl: Any,
        loss: Loss | Term | LossFunction,
        *,
        hold: int = 1,
        feedback: Feedback | None = None,
        policy: MLP | None = None,
        qfrc_applied: Any = None,
        xfrc_applied: Any = None,
        mocap_pos: Any = None,
        mocap_quat: Any = None,
        params: Mapping[str, Any] | None = None,
        wrt: Sequence[str] = STATE_AND_CONTROL,
        checkpoints: str | Checkpoints = EVERY,
        gradient: str | GradientMethod = EXACT,
        clip: float | None = None,
        on_diverged: OnDiverged = "raise",
    ) -> tuple[Any, Gradient]:
        """Simulate, evaluate a loss and differentiate it, in one call. Nothing is kept afterwards.

        Args:
            model: the model.
            qpos: start configuration, as for `rollout`.
            qvel: start velocity, as for `rollout`.
            ctrl: controls, as for `rollout`.
            loss: the loss as data, or a Python function. The function is called once with the trajectory
                (`qpos`, `qvel`, `ctrl`, `status`, `diverged_step`) and returns (value, qpos_bar, qvel_bar),
                or with ctrl_bar as a fourth: the loss, d loss / d qpos and d loss / d qvel for all states,
                and d loss / d ctrl at fixed states; None means zero.
            hold: steps that each row of `ctrl` acts for, as for `rollout`. Terms of ctrl weigh the controls
                as they act, each once.
            feedback: feedback that is added to `ctrl`, as for `rollout`.
            policy: network whose output is added to `ctrl`, as for `rollout`.
            qfrc_applied: generalized forces, as for `rollout`.
            xfrc_applied: forces and torques on bodies, as for `rollout`.
            mocap_pos: positions of the mocap bodies, as for `rollout`.
            mocap_quat: their quaternions, as for `rollout`.
            params: model parameters to replace, as for `rollout`.
            wrt: what to differentiate by, as for `Trajectory.backward`.
            checkpoints: which states are kept during the call, as for `rollout`, but not "none". Memory
                beyond inputs and gradient is proportional to these states.
            gradient: how to differentiate, as for `Trajectory.backward`.
            clip: bound of the cotangents, as for `Trajectory.backward`.
            on_diverged: "raise": the value of an environment that diverged is NaN, and it is an error if all
                diverged. "inf", for line searches: the value is infinite, even if only the loss overflows,
                and no error is raised; the gradient is NaN there.

        Returns:
            The loss and its gradient. The loss is [batch], a float without the batch axis, or the value that
            the Python function returned.

        Raises:
            ArgumentError: a shape, value or name does not fit the model, or the loss does not fit the
                trajectory.
            DivergedError: every environment diverged.
        """
        inputs = self._inputs(model, qpos, qvel, ctrl, params)
        inputs["checkpoints"] = str(Checkpoints.parse(checkpoints))
        inputs |= Control.of(
            hold, feedback, policy, qfrc_applied, xfrc_applied, mocap_pos, mocap_quat
        ).to_dict()
        names = checked_names(wrt)
        document: dict[str, Any] = {"inputs": inputs, "wrt": names, "on_diverged": on_diverged}
        document["clip"] = None if clip is None else positive_number("clip", clip)
        document |= method_field(gradient)
        if callable(loss):
            value, found = self._custom_loss(document, loss)
        else:
            document["loss"] = check_loss(loss, or_function=True).to_dict()
            found = self._link.call("ValueAndGradient", document)
            value = found["value"] if found["value"].ndim else float(found["value"])
        _warn_unsettled("value_and_gradient", model, found)
        return value, Gradient.from_document(found["gradient"], names, np.array(found["diverged_step"]))

    @reject_unknown_arguments
    def jacobian(
        self,
        model: ModelHandle,
        qpos: Any,
        qvel: Any,
        ctrl: Any,
        *,
        qfrc_applied: Any = None,
        xfrc_applied: Any = None,
        mocap_pos: Any = None,
        mocap_quat: Any = None,
        params: Mapping[str, Any] | None = None,
    ) -> StepJacobian:
        """Differentiate one step with respect to its state and controls.

        Args:
            model: the model.
            qpos: configuration before the step, [batch, nq], or [nq] for all environments.
            qvel: velocity before the step, [batch, nv] or [nv].
            ctrl: controls of the step, [batch, nu]. With [nu], results have no batch axis.
            qfrc_applied: generalized forces in the step, [batch, nv], or [nv] for all environments.
            xfrc_applied: forces and torques on bodies, as for `rollout`, [batch, nbody, 6] or [nbody, 6].
            mocap_pos: positions of the mocap bodies, [batch, nmocap, 3] or [nmocap, 3].
            mocap_quat: their quaternions, [batch, nmocap, 4] or [nmocap, 4].
            params: model parameters to replace, as for `rollout`.

        Returns:
            The matrices A [batch, nx, nx] and B [batch, nx, nu], nx = 2 nv + na, in the tangent
            convention and order of MuJoCo's `mjd_transitionFD`.

        Raises:
            ArgumentError: a shape, value or name does not fit the model.
            DivergedError: the step of every environment diverges.
        """
        inputs = self._inputs(model, qpos, qvel, ctrl, params)
        return StepJacobian.from_document(
            self._link.call(
                "Jacobian", inputs | given_inputs(qfrc_applied, xfrc_applied, mocap_pos, mocap_quat)
            )
        )

    @reject_unknown_arguments
    def kinematics(
        self,
        model: ModelHandle,
        qpos: Any,
        qvel: Any = None,
        *,
        ctrl: Any = None,
        qfrc_applied: Any = None,
        xfrc_applied: Any = None,
        mocap_pos: Any = None,
        mocap_quat: Any = None,
        params: Mapping[str, Any] | None = None,
        quantities: Sequence[str] | None = None,
    ) -> Kinematics:
        """Measure poses and velocities of bodies, shapes and sites, and centres of mass, in the world frame.

        Args:
            model: the model.
            qpos: configurations, [nq], [batch, nq] or [batch, time, nq].
            qvel: velocities with the same leading axes, or [nv] for all; None for zero.
            ctrl: controls with the same leading axes, or [nu] for all; only sensors of forces and
                accelerations need them.
            qfrc_applied: generalized forces, as `ctrl`, [..., nv] or [nv].
            xfrc_applied: forces and torques on bodies, as `ctrl`, [..., nbody, 6] or [nbody, 6].
            mocap_pos: positions of the mocap bodies, [..., nmocap, 3] or [nmocap, 3]; None for the model's.
            mocap_quat: their quaternions, [..., nmocap, 4] or [nmocap, 4]; None for the model's.
            params: model parameters to replace, as for `rollout`.
            quantities: names such as "site_pos" or, of one element, "site_pos:hand", or in another frame,
                "site_pos:hand@body:chassis"; "sensor" for all sensors. By default all poses, and with qvel
                all velocities: `body_pos`, `body_quat`, `body_mat`, `body_linvel`, `body_angvel`, the same of
                `geom` and `site`, `body_com`, `subtree_com`, `subtree_linvel`, `subtree_angmom`.

        Returns:
            The quantities, with `backward` and `jacobian`.

        Raises:
            ArgumentError: a shape, value or name does not fit the model.
        """
        states = {
            "model_id": self._id(model),
            "qpos": as_float64("qpos", qpos),
            "qvel": None if qvel is None else as_float64("qvel", qvel),
            "ctrl": None if ctrl is None else as_float64("ctrl", ctrl),
            "params": check_params(model, params),
            **given_inputs(qfrc_applied, xfrc_applied, mocap_pos, mocap_quat),
        }
        names = (
            default_quantities(model, qvel is not None) if quantities is None else checked_names(quantities)
        )
        return Kinematics(self._link, model, states, names)

    @reject_unknown_arguments
    def check_gradient(
        self,
        model: ModelHandle,
        qpos: Any = None,
        qvel: Any = None,
        ctrl: Any = None,
        *,
        steps: int = 200,
        hold: int = 1,
        feedback: Feedback | None = None,
        policy: MLP | None = None,
        qfrc_applied: Any = None,
        xfrc_applied: Any = None,
        mocap_pos: Any = None,
        mocap_quat: Any = None,
        params: Mapping[str, Any] | None = None,
        wrt: Sequence[str] | None = None,
        directions: int = 3,
        seed: int = 0,
        tolerance: float = 1e-5,
        progress: Callable[[str, int, int], None] | None = None,
    ) -> GradientReport:
        """Check the gradients of one trajectory against finite differences and forward derivatives.

        Args:
            model: the model.
            qpos: start configuration, [nq]; by default the first keyframe, else the default configuration
                lifted out of the ground.
            qvel: start velocity, [nv]; by default small random numbers.
            ctrl: controls, [T, nu]; by default small random numbers. For servos they are added to the
                controls that hold the start configuration.
            steps: rows of `ctrl` when it is not given.
            hold: steps that each row of `ctrl` acts for, as for `rollout`.
            feedback: feedback that is added to `ctrl`, as for `rollout`, without a batch axis.
            policy: network whose output is added to `ctrl`, as for `rollout`, without a batch axis.
            qfrc_applied: generalized forces besides those of actuators, [nv] or [T, nv].
            xfrc_applied: forces and torques on bodies, as for `rollout`, [nbody, 6] or [T, nbody, 6].
            mocap_pos: positions of the mocap bodies, [nmocap, 3] or [T, nmocap, 3].
            mocap_quat: their quaternions, [nmocap, 4] or [T, nmocap, 4].
            params: model parameters to replace, as for `rollout`, without a batch axis.
            wrt: inputs to check, as for `Trajectory.backward`; by default all inputs, with the arrays of a
                controller, applied forces and poses that are given.
            directions: random directions per input.
            seed: seed of all random numbers.
            tolerance: largest relative error of a derivative that passes.
            progress: called before each input with its name, its index and the number of inputs; only in
                process, and from another thread.

        Returns:
            The report with one verdict per input. It has `passed`, `worst` and `to_dict()`; `str(report)` is
            a table.

        Raises:
            ArgumentError: an argument does not fit the model.
            DivergedError: the trajectory diverges.
            LimitError: the request exceeds a limit of the server.
        """
        given = {"qpos": qpos, "qvel": qvel, "ctrl": ctrl}
        document: dict[str, Any] = {
            "model_id": self._id(model),
            **{name: None if value is None else as_float64(name, value) for name, value in given.items()},
            "params": check_params(model, params),
            "wrt": [] if wrt is None else checked_names(wrt),
            "steps": whole_number("steps", steps, least=1),
            "directions": whole_number("directions", directions, least=1),
            "seed": whole_number("seed", seed, least=0),
            "tolerance": positive_number("tolerance", tolerance, "a number between 0 and 1", below=1),
            **Control.of(hold, feedback, policy, qfrc_applied, xfrc_applied, mocap_pos, mocap_quat).to_dict(),
        }
        if progress is not None and self.address == IN_PROCESS:
            document["progress"] = progress
        return GradientReport.from_dict(self._link.call("CheckGradient", document))

    @reject_unknown_arguments
    def session(
        self,
        model: ModelHandle,
        batch: int = 1,
        *,
        params: Mapping[str, Any] | None = None,
        lease: float | None = None,
        durable: bool = True,
    ) -> Session:
        """Open a batch of environments at the model's default state.

        Args:
            model: the model.
            batch: number of environments.
            params: model parameters, as for `Session.set_params`.
            lease: seconds without a call after which a server ends the session; None for its default.
            durable: whether the server's store keeps the session. With False it is in the memory of the
                server process only: steps are faster, and it ends with that process.

        Returns:
            The session.

        Raises:
            ArgumentError: the batch is empty, or the lease exceeds the server's maximum.
            LimitError: the server has no room for another session.
        """
        document = {
            "model_id": self._id(model),
            "batch": whole_number("batch", batch, least=1, most=MAX_BATCH),
            "lease": checked_lease(lease),
            "durable": bool(durable),
        }
        session = Session(self._link, model, self._link.call("CreateSession", document))
        if params:
            try:
                session.set_params(params)
            except BaseException:
                session.close()
                raise
        return session

    def open_session(self, model: ModelHandle | None, session_id: str) -> Session:
        """Continue an open session, e.g. one whose client process has ended.

        Args:
            model: the model that is simulated; None to ask the server for it.
            session_id: its id.

        Returns:
            The session.

        Raises:
            ArgumentError: the session belongs to another model.
            NotFoundError: there is no such session.
        """
        if not isinstance(session_id, str):
            raise ArgumentError.expected("session_id", "a string", type(session_id).__name__)
        document = self._link.call("GetSession", {"session_id": session_id})
        known = self.open_model(document["model_id"]) if model is None else check_model(model)
        if document["model_id"] != known.id:
            raise ArgumentError.expected(
                "model", f"the model of the session, {document['model_id']}", repr(known.id)
            )
        return Session(self._link, known, document)

    def sessions(self) -> list[SessionInfo]:
        """List the open sessions, oldest first, without renewing their leases."""
        found: list[SessionInfo] = []
        token = ""
        while True:
            page = self._link.call("ListSessions", {"page_token": token})
            found += [SessionInfo(**entry) for entry in page["sessions"]]
            token = page["next_page_token"]
            if not token:
                return found

    def delete_model(self, model: ModelHandle) -> None:
        """Delete a model that no session or trajectory uses.

        Raises:
            ArgumentError: a session or trajectory uses the model.
            NotFoundError: the model was already deleted.
        """
        self._link.call("DeleteModel", {"model_id": self._id(model)})

    def server_info(self) -> dict[str, Any]:
        """Return versions, features, limits and build of the engine or server, by protocol field names."""
        return self._link.call("GetServerInfo", {})

    def close(self) -> None:
        """Delete unused trajectories, then close the connection."""
        self._link.close()

    @property
    def transport(self) -> Transport:
        """What carries the calls."""
        return self._link.transport

    def __enter__(self) -> Simulator:
        return self

    def __exit__(self, *exception: object) -> None:
        self.close()

    def __repr__(self) -> str:
        return f"<revolute simulator: {self.address}>"

    def _inputs(
        self, model: ModelHandle, qpos: Any, qvel: Any, ctrl: Any, params: Mapping[str, Any] | None
    ) -> dict[str, Any]:
        """Return the document RolloutInputs; JacobianInputs has the same fields."""
        return {
            "model_id": self._id(model),
            "qpos": as_float64("qpos", qpos),
            "qvel": as_float64("qvel", qvel),
            "ctrl": as_float64("ctrl", ctrl),
            "params": check_params(model, params),
        }

    def _custom_loss(self, document: dict[str, Any], loss: LossFunction) -> tuple[Any, Mapping[str, Any]]:
        """Differentiate a Python loss function; return its value and a ValueAndGradientResult document."""
        value: Any = None
        sent, infinite = _repeated(document["inputs"]), document["on_diverged"] == "inf"

        def respond(simulated: Mapping[str, Any]) -> dict[str, Any]:
            nonlocal value
            states = States.from_document(simulated, simulated.get("ctrl", sent))
            value, bars = evaluate(loss, states)
            if infinite:
                value = infinite_where_diverged(value, states.status)
            return bars

        found = self._link.custom_loss(document, respond)
        return value, found


def _warn_unsettled(verb: str, model: ModelHandle, document: Mapping[str, Any]) -> None:
    """Warn the caller of a public method if the solver did not settle."""
    unsettled, residual = document.get("unsettled_step"), document.get("residual")
    # above this frame: the method, its check of argument names, and the caller
    warn_unsettled(verb, model, unsettled, residual, stacklevel=4)


def _repeated(inputs: Mapping[str, Any]) -> Float64Array:
    """Return the controls of a rollout, repeated for each start state if their batch axis has length 1."""
    return repeated_controls(inputs["ctrl"], inputs["qpos"], inputs["qvel"], axes=2)

"""The object that `connect` returns: loads models, simulates and differentiates, whichever way it is
reached."""

from __future__ import annotations

import numbers
import os
import warnings
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from .contract.argument_names import known_arguments
from .contract.arrays import as_float64, named_float64, owned_float64
from .contract.checkpoints import EVERY, Checkpoints
from .contract.errors import ArgumentError, ModelError
from .contract.gradient_report import GradientReport
from .contract.load_options import GivenOptions, spell_out_options
from .contract.loss import Loss, Term, check_loss
from .contract.transport import IN_PROCESS, Transport
from .derivatives import StepJacobian
from .link import Link
from .loss_function import OwnLoss, States, evaluate
from .model import ModelHandle, check_model, check_options
from .rollout_stream import RolloutStream
from .session import MAX_BATCH, Session, SessionInfo, seconds, whole_number
from .source_files import explained, read_source
from .trajectory import STATE_AND_CONTROL, Gradient, Trajectory, checked_names
from .unpicklable import Unpicklable

if TYPE_CHECKING:
    from typing_extensions import Unpack


class Simulator(Unpicklable):
    """Simulates and differentiates models; a context manager that closes its connection.

    Attributes:
        address: address of the server, or "in-process".
    """

    _instead = "call revolute.connect() in each process, and load its models there"

    def __init__(self, transport: Transport) -> None:
        self.address = transport.address
        self._link = Link(transport)

    @known_arguments
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
            ModelError: the file cannot be read or asks for what is not supported; names file and element.
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
        document = {
            "builtin": model.builtin or None,
            "text": model.text or None,
            "assets": dict(model.assets),
            "options": checked,
            "name": model.name or None,
        }
        try:
            answer = self._link.call("RegisterModel", document)
        except ModelError as error:
            raise explained(error, model) from None
        handle = ModelHandle.from_document(answer, model)
        for note in handle.warnings:
            warnings.warn(f"{model.name or model.builtin or 'XML text'}: {note}", stacklevel=3)
        return handle

    def models(self) -> list[str]:
        """Return the names of the built-in models."""
        return list(self._link.call("ListModels", {})["builtin"])

    @known_arguments
    def rollout(
        self,
        model: ModelHandle,
        qpos: Any,
        qvel: Any,
        ctrl: Any,
        *,
        params: Mapping[str, Any] | None = None,
        checkpoints: str | Checkpoints = EVERY,
        states: str | None = None,
    ) -> Trajectory:
        """Simulate a batch of environments under given controls.

        Args:
            model: the model.
            qpos: start configuration, [batch, nq], or [nq] for all environments.
            qvel: start velocity, [batch, nv], or [nv] for all environments.
            ctrl: controls, [batch, T, nu]; or [T, nu], and then results have no batch axis. T may be 0.
            params: model parameters to replace, by name, for all environments or, with a batch axis in front,
                for each. `model.params` has their names and the model's own values, e.g. body_mass [nbody].
            checkpoints: which states are kept for the gradient, which is the same under all: "every" (T + 1
                states), "interval=k" (each k-th), "slots=s" (at most s, however long the trajectory), or
                "none", when there will be no gradient; nothing is kept or copied then.
            states: which states come back: "all" or "final"; by default all with "every" and the final one
                otherwise.

        Returns:
            The trajectory; an environment that diverged is reported in its `status`.

        Raises:
            ArgumentError: a shape, value or name does not fit the model.
            NotFoundError: the model was loaded by another simulator or is gone.
            LimitError: the server does not take that much.
        """
        policy = Checkpoints.parse(checkpoints)
        if states not in (None, "all", "final"):
            raise ArgumentError.expected("states", "'all' or 'final'", repr(states))
        inputs = _inputs(check_model(model), qpos, qvel, ctrl, params)
        if policy.differentiable and self.address != IN_PROCESS:
            inputs["ctrl"] = owned_float64("ctrl", inputs["ctrl"])
        inputs |= {"checkpoints": str(policy), "states": states}
        answer = self._link.rollout(inputs)
        # in process the engine has made a copy of its own, which serves both
        return Trajectory(self._link, model, answer, answer.get("ctrl", inputs["ctrl"]), owned=True)

    @known_arguments
    def stream_rollout(
        self,
        model: ModelHandle,
        qpos: Any,
        qvel: Any,
        ctrl: Any,
        *,
        params: Mapping[str, Any] | None = None,
        segment_steps: int | None = None,
    ) -> RolloutStream:
        """Simulate as by `rollout`, and hand out the states while they are computed.

        The engine computes no more than one segment ahead of what is taken, so it waits for a slow reader.

        Args:
            model: the model.
            qpos: start configuration, as for `rollout`.
            qvel: start velocity, as for `rollout`.
            ctrl: controls, as for `rollout`.
            params: model parameters to replace, as for `rollout`.
            segment_steps: steps of one segment; by default as many as fill 256 KiB.

        Returns:
            An iterator of segments, each with `first`, `qpos` and `qvel`; afterwards its `trajectory` is, bit
            for bit, what `rollout` returns. Close it, or use it as a context manager, to stop early.

        Raises:
            ArgumentError: a shape, value or name does not fit the model.
            NotFoundError: the model was loaded by another simulator or is gone.
            LimitError: the server does not take that much.
        """
        inputs = _inputs(check_model(model), qpos, qvel, ctrl, params)
        inputs["ctrl"] = owned_float64("ctrl", inputs["ctrl"])
        steps = None if segment_steps is None else whole_number("segment_steps", segment_steps, least=1)
        document = {"inputs": inputs, "segment_steps": steps}
        documents = self._link.stream("StreamRollout", document)
        return RolloutStream(self._link, model, documents, inputs["ctrl"])

    def trajectory(self, model: ModelHandle, trajectory_id: str) -> Trajectory:
        """Open a trajectory by its id, e.g. one that another process left with `Trajectory.detach`.

        Args:
            model: the model that was simulated.
            trajectory_id: its id.

        Raises:
            NotFoundError: there is no such trajectory.
        """
        if not isinstance(trajectory_id, str):
            raise ArgumentError.expected("trajectory_id", "a string", type(trajectory_id).__name__)
        document = self._link.call("GetTrajectory", {"trajectory_id": trajectory_id, "states": "final"})
        if document["model_id"] != check_model(model).id:
            raise ArgumentError.expected("model", f"the trajectory's model {document['model_id']}", model.id)
        return Trajectory(self._link, model, document, document["ctrl"], owned=False)

    @known_arguments
    def value_and_gradient(
        self,
        model: ModelHandle,
        qpos: Any,
        qvel: Any,
        ctrl: Any,
        loss: Loss | Term | OwnLoss,
        *,
        params: Mapping[str, Any] | None = None,
        wrt: Sequence[str] = STATE_AND_CONTROL,
        checkpoints: str | Checkpoints = EVERY,
    ) -> tuple[Any, Gradient]:
        """Simulate, evaluate a loss and differentiate it, in one call that keeps nothing.

        Args:
            model: the model.
            qpos: start configuration, as for `rollout`.
            qvel: start velocity, as for `rollout`.
            ctrl: controls, as for `rollout`.
            loss: the loss, as data; or a function of your own, called once with the trajectory (`qpos`,
                `qvel`, `ctrl`, `status`, `diverged_step`), that returns (value, qpos_bar, qvel_bar): the
                loss, and its derivatives by all states, None for zero. Over gRPC that is still one call.
            params: model parameters to replace, as for `rollout`.
            wrt: what to differentiate by, as for `Trajectory.backward`.
            checkpoints: which states are kept meanwhile, as for `rollout`, but not "none"; beyond inputs and
                gradient they are all that is held, also for losses that count at all times.

        Returns:
            The loss, [batch] or a float without the batch axis, or what the function returned for it; and its
            gradient.

        Raises:
            ArgumentError: a shape, value or name does not fit the model, or the loss does not fit the
                trajectory.
            DivergedError: every environment diverged.
        """
        inputs = _inputs(check_model(model), qpos, qvel, ctrl, params)
        inputs["checkpoints"] = str(Checkpoints.parse(checkpoints))
        names = checked_names(wrt)
        if callable(loss):
            return self._own_loss(inputs, loss, names)
        document = {"inputs": inputs, "loss": check_loss(loss, or_function=True).to_dict(), "wrt": names}
        found = self._link.call("ValueAndGradient", document)
        gradient = Gradient.from_document(found["gradient"], names, found["diverged_step"])
        value = found["value"]
        return (value if value.ndim else float(value)), gradient

    @known_arguments
    def jacobian(
        self, model: ModelHandle, qpos: Any, qvel: Any, ctrl: Any, *, params: Mapping[str, Any] | None = None
    ) -> StepJacobian:
        """Differentiate one step by its state and controls.

        Args:
            model: the model.
            qpos: configuration before the step, [batch, nq], or [nq] for all environments.
            qvel: velocity before the step, [batch, nv] or [nv].
            ctrl: controls of the step, [batch, nu]; or [nu], and then results have no batch axis.
            params: model parameters to replace, as for `rollout`.

        Returns:
            The matrices A [batch, 2 nv, 2 nv] and B [batch, 2 nv, nu], in the tangent convention and order of
            MuJoCo's `mjd_transitionFD`.

        Raises:
            ArgumentError: a shape, value or name does not fit the model.
            DivergedError: the step of every environment diverges.
        """
        inputs = _inputs(check_model(model), qpos, qvel, ctrl, params)
        return StepJacobian.from_document(self._link.call("Jacobian", inputs))

    @known_arguments
    def check_gradient(
        self,
        model: ModelHandle,
        qpos: Any = None,
        qvel: Any = None,
        ctrl: Any = None,
        *,
        steps: int = 200,
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
            qpos: start configuration, [nq]; by default the model's first keyframe, or its default lifted out
                of the ground.
            qvel: start velocity, [nv]; by default small random numbers.
            ctrl: controls, [T, nu]; by default small random numbers, around those that hold the start where
                actuators are servos.
            steps: length of the trajectory when `ctrl` is not given.
            params: model parameters to replace, as for `rollout`, without a batch axis.
            wrt: what to check, as for `Trajectory.backward`; by default all that the model has.
            directions: random directions per input.
            seed: of everything random.
            tolerance: largest relative error of a derivative that passes.
            progress: called with the name of each input, its place among them and their number, before it is
                checked; only in process, and from another thread.

        Returns:
            The report, one verdict per input: `passed`, `worst`, `to_dict()`, and a table as `str(report)`.

        Raises:
            ArgumentError: an argument does not fit the model.
            DivergedError: the trajectory diverges.
            LimitError: the server does not take that much.
        """
        given = {"qpos": qpos, "qvel": qvel, "ctrl": ctrl}
        document: dict[str, Any] = {
            "model_id": check_model(model).id,
            **{name: None if value is None else as_float64(name, value) for name, value in given.items()},
            "params": named_float64("params", params),
            "wrt": [] if wrt is None else checked_names(wrt),
            "steps": whole_number("steps", steps, least=1),
            "directions": whole_number("directions", directions, least=1),
            "seed": whole_number("seed", seed, least=0),
            "tolerance": _share("tolerance", tolerance),
        }
        if progress is not None and self.address == IN_PROCESS:
            document["progress"] = progress
        return GradientReport.from_dict(self._link.call("CheckGradient", document))

    @known_arguments
    def session(self, model: ModelHandle, batch: int = 1, *, lease: float | None = None) -> Session:
        """Open a batch of environments at the model's default state.

        Args:
            model: the model.
            batch: number of environments.
            lease: seconds without a call after which a server ends the session; None for the server's own.

        Raises:
            ArgumentError: the batch is empty, or the lease is longer than the server gives.
            LimitError: the server has no room for another session.
        """
        document = {
            "model_id": check_model(model).id,
            "batch": whole_number("batch", batch, least=1, most=MAX_BATCH),
            "lease": None if lease is None else seconds("lease", lease),
        }
        return Session(self._link, model, self._link.call("CreateSession", document))

    def open_session(self, model: ModelHandle, session_id: str) -> Session:
        """Go on with a session that is open, e.g. one of a process that ended.

        Args:
            model: the model that is simulated.
            session_id: its id.

        Raises:
            ArgumentError: the session is one of another model.
            NotFoundError: there is no such session.
        """
        if not isinstance(session_id, str):
            raise ArgumentError.expected("session_id", "a string", type(session_id).__name__)
        document = self._link.call("GetSession", {"session_id": session_id})
        if document["model_id"] != check_model(model).id:
            raise ArgumentError.expected(
                "model", f"the model of the session, {document['model_id']}", repr(model.id)
            )
        return Session(self._link, model, document)

    def sessions(self) -> list[SessionInfo]:
        """List the open sessions, oldest first; this does not renew their leases."""
        found: list[SessionInfo] = []
        token = ""
        while True:
            page = self._link.call("ListSessions", {"page_token": token})
            found += [SessionInfo(**entry) for entry in page["sessions"]]
            token = page["next_page_token"]
            if not token:
                return found

    def delete_model(self, model: ModelHandle) -> None:
        """Forget a model that no session or trajectory uses.

        Raises:
            ArgumentError: a session or trajectory uses it.
            NotFoundError: it was deleted before.
        """
        self._link.call("DeleteModel", {"model_id": check_model(model).id})

    def server_info(self) -> dict[str, Any]:
        """Return versions, features, limits and build of the engine or server, by the names of the
        protocol."""
        return self._link.call("GetServerInfo", {})

    def close(self) -> None:
        """Close the connection; trajectories that nobody holds any more are deleted first."""
        self._link.close()

    def __enter__(self) -> Simulator:
        return self

    def __exit__(self, *exception: object) -> None:
        self.close()

    def __repr__(self) -> str:
        return f"<revolute simulator: {self.address}>"

    def _own_loss(self, inputs: dict[str, Any], loss: OwnLoss, names: list[str]) -> tuple[Any, Gradient]:
        """Differentiate a function of the caller's own."""
        value: Any = None

        def respond(document: Mapping[str, Any]) -> dict[str, Any]:
            nonlocal value
            value, bars = evaluate(loss, States.from_document(document, inputs["ctrl"]))
            return bars

        document = {"inputs": inputs, "wrt": names}
        found = self._link.own_loss(document, respond)
        return value, Gradient.from_document(found["gradient"], names, found["diverged_step"])


def _share(name: str, value: Any) -> float:
    """Return a number between 0 and 1."""
    if isinstance(value, numbers.Real) and not isinstance(value, bool) and 0 < float(value) < 1:
        return float(value)
    raise ArgumentError.expected(name, "a number between 0 and 1", repr(value))


def _inputs(
    model: ModelHandle, qpos: Any, qvel: Any, ctrl: Any, params: Mapping[str, Any] | None
) -> dict[str, Any]:
    """Return the document RolloutInputs, or JacobianInputs, which has the same fields."""
    return {
        "model_id": model.id,
        "qpos": as_float64("qpos", qpos),
        "qvel": as_float64("qvel", qvel),
        "ctrl": as_float64("ctrl", ctrl),
        "params": named_float64("params", params),
    }

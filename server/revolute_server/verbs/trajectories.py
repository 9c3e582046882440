"""The verbs of TrajectoryService."""

from __future__ import annotations

import contextlib
from collections.abc import AsyncGenerator, AsyncIterator, Awaitable, Callable
from typing import Any

import numpy as np
from pydantic import Field

from revolute.contract.arrays import repeated_controls
from revolute.contract.errors import ArgumentError
from revolute.contract.gradient_method import EXACT, GradientMethod
from revolute.contract.loss import Loss
from revolute_engine.segments import Segment

from .. import answers
from ..answers import Document
from ..domain.measurements import Source
from ..domain.trajectories import Trajectory
from .base import ServiceVerbs
from .body import (
    EXAMPLE_MODEL,
    NAMES,
    REQUEST_ID,
    AnyShape,
    Array,
    Body,
    Controlled,
    Deletion,
    OptionalArray,
    Request,
    StepInputArrays,
    array,
    arrays,
    takes,
    validate,
)

_STATE_AND_CONTROL = ("qpos", "qvel", "ctrl")
"""Default of `wrt`."""

_EXAMPLE_ROLLOUT: dict[str, Any] = {
    "model_id": EXAMPLE_MODEL,
    "qpos": [0.0, 0.1],
    "qvel": [0.0, 0.0],
    "ctrl": [[1.0], [0.5], [0.0]],
}


class RolloutInputs(Controlled):
    """Inputs of a rollout."""

    example = {
        **_EXAMPLE_ROLLOUT,
        "params": {"gravity": [0.0, 0.0, -1.62], "dof_damping": [0.1, 0.05]},
        "checkpoints": "slots=2",
    }

    model_id: str
    qpos: Array
    qvel: Array
    ctrl: Array
    params: dict[str, AnyShape] = {}
    checkpoints: str = "every"
    states: str | None = None
    request_id: str = REQUEST_ID
    forget: list[str] = Field(default_factory=list, max_length=1000, json_schema_extra={"default": []})
    measure: list[str] = NAMES


class StreamRolloutInputs(Body):
    """Inputs of a rollout, and the length of its segments."""

    example = {"inputs": _EXAMPLE_ROLLOUT, "segment_steps": 2}

    inputs: RolloutInputs
    segment_steps: int | None = None


class GetTrajectory(Body):
    """Which states of a trajectory to send."""

    states: str | None = Field(
        default=None, description="'all', or 'final' for the last state alone; left out: all"
    )


class Cotangents(Body):
    """Cotangents to pull back through a trajectory."""

    example = {"qpos_bar": [[1.0, 0.0]], "times": [-1], "wrt": ["ctrl", "qvel"]}

    qpos_bar: OptionalArray = None
    qvel_bar: OptionalArray = None
    wrt: list[str] = []
    times: list[int] | None = None
    gradient: str = ""
    clip: float | None = None
    on_diverged: str = "raise"
    ctrl_bar: OptionalArray = None


class Tangents(Body):
    """Tangents to push forward through a trajectory; a field that is not set is zero."""

    example = {"ctrl_tan": [[1.0], [0.0], [0.0]]}

    qpos_tan: OptionalArray = None
    qvel_tan: OptionalArray = None
    ctrl_tan: OptionalArray = None
    params_tan: dict[str, AnyShape] = {}
    control_tan: dict[str, AnyShape] = {}


class JacobianInputs(StepInputArrays):
    """One step to differentiate."""

    example = {"model_id": EXAMPLE_MODEL, "qpos": [0.0, 0.1], "qvel": [0.0, 0.0], "ctrl": [1.0]}

    model_id: str
    qpos: Array
    qvel: Array
    ctrl: Array
    params: dict[str, AnyShape] = {}


class MeasuredStates(StepInputArrays):
    """States to measure at."""

    example = {"model_id": EXAMPLE_MODEL, "qpos": [0.0, 0.1], "qvel": [0.0, 0.0], "ctrl": [1.0]}

    model_id: str = ""
    qpos: OptionalArray = None
    qvel: OptionalArray = None
    ctrl: OptionalArray = None
    time: float | None = None
    params: dict[str, AnyShape] = {}
    trajectory_id: str = ""
    times: list[int] | None = None
    session_id: str = ""


class MeasureInputs(Body):
    """What to measure, and cotangents to pull back."""

    example = {
        "states": {"model_id": EXAMPLE_MODEL, "qpos": [0.0, 0.1]},
        "quantities": ["body_pos", "body_quat"],
        "jacobians": ["body_pos:pole"],
    }

    states: MeasuredStates
    quantities: list[str] = []
    jacobians: list[str] = []
    cotangents: dict[str, AnyShape] = {}
    wrt: list[str] = []


class CheckGradientInputs(Controlled):
    """The trajectory whose gradients to check; the server chooses fields that are not set."""

    example = {"model_id": EXAMPLE_MODEL, "steps": 10, "wrt": ["ctrl"]}

    model_id: str
    qpos: OptionalArray = None
    qvel: OptionalArray = None
    ctrl: OptionalArray = None
    params: dict[str, AnyShape] = {}
    wrt: list[str] = []
    steps: int = 200
    directions: int = 3
    seed: int = 0
    tolerance: float = 1e-5


class ValueAndGradientInputs(Body):
    """Inputs of a rollout, and the loss to differentiate."""

    example = {
        "inputs": _EXAMPLE_ROLLOUT,
        "loss": {
            "terms": [
                {"quantity": "qpos", "target": [0.5], "index": [0]},
                {"quantity": "ctrl", "weight": 0.01, "when": "running"},
            ]
        },
        "wrt": ["ctrl"],
    }

    inputs: RolloutInputs
    loss: dict[str, Any]
    wrt: list[str] = []
    gradient: str = ""
    clip: float | None = None
    on_diverged: str = "raise"


class ClientLossInputs(Body):
    """Inputs of a rollout whose loss the client evaluates; not available over HTTP."""

    inputs: RolloutInputs
    wrt: list[str] = []
    gradient: str = ""
    clip: float | None = None
    on_diverged: str = "raise"


class ClientLossCotangents(Body):
    """Cotangents of the trajectory that was just sent; not available over HTTP."""

    qpos_bar: OptionalArray = None
    qvel_bar: OptionalArray = None
    ctrl_bar: OptionalArray = None
    times: list[int] | None = None


class TrajectoryVerbs(ServiceVerbs):
    """Simulates, and differentiates trajectories."""

    @takes(RolloutInputs)
    async def rollout(self, body: RolloutInputs) -> Document:
        qpos, qvel, ctrl, params = self._inputs(body)
        chosen: dict[str, Any] = {"checkpoints": body.checkpoints, "states": body.states}
        if body.forget:
            chosen["forget"] = body.forget
        measured: dict[str, np.ndarray] = {}

        async def inspect(simulated: Trajectory) -> None:
            measured.update(await self._measured(Source(trajectory=simulated), body.measure))

        # the fields that are set, so that requests of earlier versions keep their fingerprints
        control = body.control
        given = {**chosen, **control.to_dict()}
        if not control.is_plain:
            chosen["control"] = control
        states = body.states or ("all" if body.checkpoints == "every" else "final")
        if body.measure:
            if body.checkpoints == "none":
                raise ArgumentError.expected(
                    "checkpoints", "a policy that keeps states to measure at", "'none'"
                )
            await self.service.measurements.check("measure", body.model_id, body.measure)
            chosen["inspect"] = inspect

        async def replay(known: Document) -> Document:
            kept = await self.service.trajectories.with_states(known["trajectory_id"], states)
            return answers.trajectory(kept, with_ctrl=False)

        found = await self._once(
            body.request_id,
            "Rollout",
            {"model_id": body.model_id, "qpos": qpos, "qvel": qvel, "ctrl": ctrl, "params": params, **given},
            lambda ticket: self.service.trajectories.rollout(
                body.model_id, qpos, qvel, ctrl, params, ticket, **chosen
            ),
            lambda kept: answers.trajectory(kept, with_ctrl=self._with_ctrl),
            record=_trajectory_id,
            replay=replay,
        )
        if not body.measure:
            return found
        if not measured:
            # the answer to a repeat
            source = Source(trajectory_id=found["trajectory_id"])
            measured = await self._measured(source, body.measure)
        return {**found, "measured": measured}

    def _measured(self, source: Source, names: list[str]) -> Awaitable[dict[str, np.ndarray]]:
        return self.service.measurements.quantities(source, names)

    @takes(StreamRolloutInputs)
    async def stream_rollout(self, body: StreamRolloutInputs) -> AsyncGenerator[Document, None]:
        """Yield each RolloutSegment when it is computed, then the RolloutEnd.

        A repeat of an earlier request yields the kept trajectory.
        """
        if body.segment_steps is not None and body.segment_steps < 1:
            raise ArgumentError.expected("segment_steps", "at least one step", body.segment_steps)
        inputs = body.inputs
        if inputs.checkpoints != "every":
            raise ArgumentError.expected(
                "inputs.checkpoints", "'every'", repr(inputs.checkpoints)[:60], advice="use Rollout"
            )
        qpos, qvel, ctrl, params = self._inputs(inputs)
        arguments: dict[str, Any] = {
            "model_id": inputs.model_id,
            "qpos": qpos,
            "qvel": qvel,
            "ctrl": ctrl,
            "params": params,
            "segment_steps": body.segment_steps,
        }
        control = inputs.control
        trajectories = self.service.trajectories
        turn = self.service.requests.open(
            inputs.request_id, "StreamRollout", {**arguments, **control.to_dict()}, _trajectory_id
        )
        async with turn as (ticket, known):
            if known is None:
                found = trajectories.stream_rollout(**arguments, control=control, ticket=ticket)
            else:
                found = trajectories.stream_again(known["trajectory_id"], body.segment_steps)
            async with contextlib.aclosing(found) as pieces:
                async for piece in pieces:
                    if isinstance(piece, Segment):
                        yield answers.rollout_segment(piece)
                    else:
                        yield answers.rollout_end(piece)

    def undo_rollout(self, answer: Document) -> None:
        """Delete a trajectory whose client did not get the answer and does not know its id."""
        self.service.trajectories.undo(answer["trajectory_id"])

    @takes(GetTrajectory)
    async def get_trajectory(self, trajectory_id: str, body: GetTrajectory) -> Document:
        found = await self.service.trajectories.with_states(trajectory_id, body.states)
        return answers.trajectory(found, with_ctrl=True)

    @takes(Cotangents)
    async def backward(self, trajectory_id: str, body: Cotangents) -> Document:
        qpos_bar, qvel_bar = array("qpos_bar", body.qpos_bar), array("qvel_bar", body.qvel_bar)
        wrt = tuple(body.wrt) or _STATE_AND_CONTROL
        return answers.gradient(
            await self.service.trajectories.backward(
                trajectory_id,
                qpos_bar,
                qvel_bar,
                wrt,
                ctrl_bar=array("ctrl_bar", body.ctrl_bar),
                times=body.times,
                gradient=_method(body.gradient),
                clip=body.clip,
                on_diverged=body.on_diverged,
            )
        )

    @takes(Tangents)
    async def jvp(self, trajectory_id: str, body: Tangents) -> Document:
        names = ("qpos_tan", "qvel_tan", "ctrl_tan")
        tangents: dict[str, Any] = {name: array(name, getattr(body, name)) for name in names}
        for name in ("params_tan", "control_tan"):
            tangents[name] = arrays(name, getattr(body, name)) or None
        return answers.trajectory_tangent(await self.service.trajectories.jvp(trajectory_id, tangents))

    @takes(JacobianInputs)
    async def jacobian(self, body: JacobianInputs) -> Document:
        found = await self.service.derivatives.jacobian(
            body.model_id, *self._inputs(body), inputs=body.step_inputs
        )
        return answers.step_jacobian(found)

    @takes(MeasureInputs)
    async def measure(self, body: MeasureInputs) -> Document:
        found = await self.service.measurements.measure(
            self._source(body.states),
            body.quantities,
            body.jacobians,
            arrays("cotangents", body.cotangents),
            body.wrt,
        )
        return answers.measured(found)

    @takes(MeasuredStates)
    async def find_contacts(self, body: MeasuredStates) -> Document:
        return answers.contact_list(await self.service.measurements.contacts(self._source(body)))

    def _source(self, states: MeasuredStates) -> Source:
        """Return the source of states: exactly one of a model, a trajectory and a session."""
        given = [name for name in ("model_id", "trajectory_id", "session_id") if getattr(states, name)]
        if len(given) != 1:
            raise ArgumentError.expected(
                "states", "one of model_id, trajectory_id and session_id", " and ".join(given) or "none"
            )
        read: dict[str, Any] = {name: array(name, getattr(states, name)) for name in _STATE_AND_CONTROL}
        if states.model_id and read["qpos"] is None:
            raise ArgumentError.expected("qpos", "an array", "none")
        if read["qpos"] is not None and read["qpos"].ndim in (2, 3):
            self._check_batch("qpos", len(read["qpos"]))
        return Source(
            states.model_id,
            states.trajectory_id,
            states.session_id,
            states.times,
            **read,
            time=states.time,
            params=arrays("params", states.params),
            inputs=states.step_inputs,
        )

    @takes(CheckGradientInputs)
    async def check_gradient(self, body: CheckGradientInputs) -> Document:
        start: dict[str, Any] = {name: array(name, getattr(body, name)) for name in _STATE_AND_CONTROL}
        start["params"] = arrays("params", body.params) or None
        found = await self.service.derivatives.check_gradient(
            body.model_id,
            start,
            steps=body.steps,
            directions=body.directions,
            wrt=body.wrt or None,
            seed=body.seed,
            tolerance=body.tolerance,
            control=body.control,
        )
        return answers.gradient_report(found)

    @takes(ValueAndGradientInputs)
    async def value_and_gradient(self, body: ValueAndGradientInputs) -> Document:
        qpos, qvel, ctrl, params = self._inputs(body.inputs)
        found = await self.service.derivatives.value_and_gradient(
            body.inputs.model_id,
            qpos,
            qvel,
            ctrl,
            Loss.from_dict(body.loss),
            params,
            tuple(body.wrt) or _STATE_AND_CONTROL,
            control=body.inputs.control,
            checkpoints=body.inputs.checkpoints,
            gradient=_method(body.gradient),
            clip=body.clip,
            on_diverged=body.on_diverged,
        )
        return answers.value_and_gradient(found)

    @contextlib.asynccontextmanager
    async def client_loss(
        self, request: Request
    ) -> AsyncIterator[tuple[Document, Callable[[Request], Awaitable[Document]]]]:
        """Simulate a trajectory whose loss the client evaluates.

        Yields:
            The trajectory (message Trajectory), and a function from the client's Cotangents to the answer
            (message ValueAndGradientResult).
        """
        body = validate(ClientLossInputs, request)
        inputs, method = body.inputs, _method(body.gradient)
        found = self.service.trajectories.unkept(
            inputs.model_id, *self._inputs(inputs), control=inputs.control, checkpoints=inputs.checkpoints
        )
        async with found as (trajectory, pull):

            async def differentiate(request: Request) -> Document:
                bars = validate(ClientLossCotangents, request)
                gradient = await pull(
                    array("qpos_bar", bars.qpos_bar),
                    array("qvel_bar", bars.qvel_bar),
                    tuple(body.wrt) or _STATE_AND_CONTROL,
                    bars.times,
                    method,
                    ctrl_bar=array("ctrl_bar", bars.ctrl_bar),
                    clip=body.clip,
                    on_diverged=body.on_diverged,
                )
                return answers.client_loss_gradient(trajectory, gradient)

            yield answers.trajectory(trajectory, with_ctrl=False), differentiate

    @takes(Deletion)
    async def delete_trajectory(self, trajectory_id: str, body: Deletion) -> Document:
        delete = self.service.trajectories.delete
        return await self._delete("DeleteTrajectory", trajectory_id, body, delete)

    def _inputs(
        self, body: RolloutInputs | JacobianInputs
    ) -> tuple[np.ndarray | None, np.ndarray | None, np.ndarray | None, dict[str, Any]]:
        """Return the state, controls and parameters of a rollout or a step as arrays."""
        qpos, qvel, ctrl = array("qpos", body.qpos), array("qvel", body.qvel), array("ctrl", body.ctrl)
        axes = 2 if isinstance(body, RolloutInputs) else 1
        if ctrl is not None and ctrl.ndim == axes + 1:
            ctrl = repeated_controls(ctrl, qpos, qvel, axes=axes)
            self._check_batch("ctrl", len(ctrl))
        return qpos, qvel, ctrl, arrays("params", body.params)


def _method(text: str) -> GradientMethod:
    """Return how to differentiate; exactly if the request does not say."""
    return GradientMethod.parse(text) if text else EXACT


def _trajectory_id(kept: Trajectory) -> Document:
    """Return the recorded document of a request that created a trajectory."""
    return {"trajectory_id": kept.id}

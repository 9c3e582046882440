"""The verbs of the protocol, once for both transports: a document in, a document out.

A document is what a message carries, whichever way it came: a dict under the field names of the proto
files, with arrays as NumPy arrays or nested lists. `grpc_services` and `http_routes` only turn messages and
bodies into documents and back; the ids that HTTP has in the path are arguments here.
"""

from __future__ import annotations

import contextlib
from collections.abc import AsyncGenerator, AsyncIterator, Awaitable, Callable, Mapping
from typing import Any

from revolute.errors import ArgumentError, LimitError
from revolute.loss import Loss
from revolute_engine._segments import Segment

from . import answers, schemas
from .answers import Document
from .models import Source
from .pages import page
from .requests import Ticket
from .service import Service
from .settings import format_bytes
from .stepping import State
from .store import MODEL, SESSION
from .trajectories import Trajectory

_STATE_AND_CONTROL = ("qpos", "qvel", "ctrl")
"""What a gradient is taken by unless the request says."""

Request = Mapping[str, Any]


class Verbs:
    """Every verb: checks the request's fields, calls the service, shapes the answer."""

    def __init__(self, service: Service) -> None:
        self.service = service

    async def register_model(self, request: Request) -> Document:
        body = schemas.validate(schemas.ModelSource, request)
        self._check_files(body)
        options = body.options.model_dump(exclude_none=True)
        source = Source(body.text, body.builtin, body.name, body.assets, options)
        return await self._once(
            body.request_id,
            "RegisterModel",
            vars(source),
            lambda ticket: self.service.models.register(source, ticket),
            answers.model_info,
            record=lambda model: {"model_id": model.id},
            again=lambda known: self.get_model(known["model_id"]),
        )

    async def get_model(self, model_id: str) -> Document:
        return answers.model_info(await self.service.models.get(model_id))

    def _check_files(self, body: schemas.ModelSource) -> None:
        """Refuse files that are too large, before anything is made of them."""
        settings = self.service.settings
        files = [("text", len(body.text), "max_model")]
        for name, content in body.assets.items():
            included = name.lower().endswith((".xml", ".mjcf", ".urdf"))
            files.append((f"assets.{name[:80]}", len(content), "max_model" if included else "max_mesh"))
        for name, size, setting in files:
            limit = getattr(settings, setting)
            if size > limit:
                raise LimitError.expected(
                    name,
                    f"at most {format_bytes(limit)}",
                    format_bytes(size),
                    advice=f"send less, or start the server with more than {settings.flag(setting)}",
                )

    def _check_batch(self, name: str, batch: int) -> None:
        """Refuse more environments than the server takes at once."""
        settings = self.service.settings
        if batch > settings.max_batch:
            raise LimitError.expected(
                name,
                f"at most {settings.max_batch} environments",
                batch,
                advice=f"split them, or start the server with more than {settings.flag('max_batch')}",
            )

    def _inputs(
        self, body: schemas.RolloutInputs | schemas.JacobianInputs
    ) -> tuple[Any, Any, Any, dict[str, Any]]:
        """Return state, controls and parameters of a rollout or a step as arrays."""
        qpos, qvel = schemas.array("qpos", body.qpos), schemas.array("qvel", body.qvel)
        ctrl = schemas.array("ctrl", body.ctrl)
        if ctrl is not None and ctrl.ndim == (3 if isinstance(body, schemas.RolloutInputs) else 2):
            self._check_batch("ctrl", len(ctrl))
        return qpos, qvel, ctrl, schemas.arrays("params", body.params)

    async def list_models(self, request: Request) -> Document:
        body = schemas.validate(schemas.Listing, request)
        found = await page(self.service.store, MODEL, body.page_size, body.page_token)
        return answers.model_list(self.service.models.builtins(), found)

    async def delete_model(self, model_id: str, request: Request) -> Document:
        return await self._delete("DeleteModel", model_id, request, self.service.models.delete)

    async def create_session(self, request: Request) -> Document:
        body = schemas.validate(schemas.CreateSession, request)
        self._check_batch("batch", body.batch)
        return await self._once(
            body.request_id,
            "CreateSession",
            body.model_dump(exclude={"request_id"}),
            lambda ticket: self.service.sessions.create(body.model_id, body.batch, body.lease, ticket),
            answers.session_handle,
        )

    async def get_session(self, session_id: str) -> Document:
        return answers.session_info(await self.service.sessions.info(session_id))

    async def list_sessions(self, request: Request) -> Document:
        body = schemas.validate(schemas.Listing, request)
        return answers.session_list(await page(self.service.store, SESSION, body.page_size, body.page_token))

    async def keep_alive(self, session_id: str, request: Request) -> Document:
        schemas.validate(schemas.KeepAlive, request)
        return {"lease": await self.service.sessions.keep_alive(session_id)}

    async def reset(self, session_id: str, request: Request) -> Document:
        body = schemas.validate(schemas.ResetInputs, request)
        qpos, qvel = schemas.array("qpos", body.qpos), schemas.array("qvel", body.qvel)
        return await self._once(
            body.request_id,
            "Reset",
            {"session_id": session_id, "qpos": qpos, "qvel": qvel},
            lambda ticket: self.service.sessions.reset(session_id, qpos, qvel, ticket),
            answers.session_state,
            again=_session_state,
        )

    async def state_bytes(self, session_id: str) -> int:
        """Return the bytes of a session's state as an answer."""
        return await self.service.sessions.state_bytes(session_id)

    async def step(self, session_id: str, request: Request) -> Document:
        body = schemas.validate(schemas.StepInputs, request)
        ctrl = schemas.array("ctrl", body.ctrl)
        return await self._once(
            body.request_id,
            "Step",
            {"session_id": session_id, "ctrl": ctrl, "steps": body.steps},
            lambda ticket: self.service.sessions.step(session_id, ctrl, body.steps, ticket),
            answers.session_state,
            again=_session_state,
        )

    async def set_state(self, session_id: str, request: Request) -> Document:
        body = schemas.validate(schemas.SetStateInputs, request)
        qpos, qvel = schemas.array("qpos", body.qpos), schemas.array("qvel", body.qvel)
        return await self._once(
            body.request_id,
            "SetState",
            {"session_id": session_id, "qpos": qpos, "qvel": qvel, "step_count": body.step_count},
            lambda ticket: self.service.sessions.set_state(session_id, qpos, qvel, body.step_count, ticket),
            answers.session_state,
            again=_session_state,
        )

    async def fork_session(self, session_id: str, request: Request) -> Document:
        body = schemas.validate(schemas.ForkSession, request)
        return await self._once(
            body.request_id,
            "ForkSession",
            {"session_id": session_id, "lease": body.lease},
            lambda ticket: self.service.sessions.fork(session_id, body.lease, ticket),
            answers.session_handle,
        )

    async def session_jacobian(self, session_id: str, request: Request) -> Document:
        body = schemas.validate(schemas.SessionJacobianInputs, request)
        ctrl = schemas.array("ctrl", body.ctrl)
        return answers.step_jacobian(await self.service.sessions.jacobian(session_id, ctrl))

    async def get_state(self, session_id: str) -> Document:
        return answers.session_state(await self.service.sessions.state(session_id))

    async def delete_session(self, session_id: str, request: Request) -> Document:
        return await self._delete("DeleteSession", session_id, request, self.service.sessions.delete)

    async def rollout(self, request: Request) -> Document:
        body = schemas.validate(schemas.RolloutInputs, request)
        qpos, qvel, ctrl, params = self._inputs(body)

        chosen: dict[str, Any] = {"checkpoints": body.checkpoints, "states": body.states}
        if body.forget:
            chosen["forget"] = body.forget
        states = body.states or ("all" if body.checkpoints == "every" else "final")

        async def again(known: Document) -> Document:
            kept = await self.service.trajectories.with_states(known["trajectory_id"], states)
            return answers.trajectory(kept, with_ctrl=False)

        return await self._once(
            body.request_id,
            "Rollout",
            {"model_id": body.model_id, "qpos": qpos, "qvel": qvel, "ctrl": ctrl, "params": params, **chosen},
            lambda ticket: self.service.trajectories.rollout(
                body.model_id,
                qpos,
                qvel,
                ctrl,
                params,
                ticket,
                **chosen,
            ),
            lambda kept: answers.trajectory(kept, with_ctrl=False),
            record=_trajectory_id,
            again=again,
        )

    async def stream_rollout(self, request: Request) -> AsyncGenerator[Document, None]:
        """Yield the segments (RolloutSegment) as they are computed, and at last the RolloutEnd.

        A repeat of a request that was carried out sends the trajectory that was kept then.
        """
        body = schemas.validate(schemas.StreamRolloutInputs, request)
        if body.segment_steps is not None and body.segment_steps < 1:
            raise ArgumentError.expected("segment_steps", "at least one step", body.segment_steps)
        inputs = body.inputs
        if inputs.checkpoints != "every":
            raise ArgumentError.expected(
                "inputs.checkpoints", "'every'", repr(inputs.checkpoints)[:60], advice="use Rollout"
            )
        qpos, qvel, ctrl, params = self._inputs(inputs)
        arguments = {
            "model_id": inputs.model_id,
            "qpos": qpos,
            "qvel": qvel,
            "ctrl": ctrl,
            "params": params,
            "segment_steps": body.segment_steps,
        }
        trajectories = self.service.trajectories
        turn = self.service.requests.open(inputs.request_id, "StreamRollout", arguments, _trajectory_id)
        async with turn as (ticket, known):
            if known is None:
                found = trajectories.stream_rollout(**arguments, ticket=ticket)
            else:
                found = trajectories.stream_again(known["trajectory_id"], body.segment_steps)
            async with contextlib.aclosing(found) as pieces:
                async for piece in pieces:
                    if isinstance(piece, Segment):
                        yield answers.rollout_segment(piece)
                    else:
                        yield answers.rollout_end(piece)

    def undo_rollout(self, answer: Document) -> None:
        """Let go of a trajectory whose caller did not get the answer, and so cannot delete it."""
        self.service.trajectories.undo(answer["trajectory_id"])

    async def get_trajectory(self, trajectory_id: str, states: str | None = None) -> Document:
        found = await self.service.trajectories.with_states(trajectory_id, states)
        return answers.trajectory(found, with_ctrl=True)

    async def backward(self, trajectory_id: str, request: Request) -> Document:
        body = schemas.validate(schemas.Cotangents, request)
        qpos_bar, qvel_bar = (
            schemas.array("qpos_bar", body.qpos_bar),
            schemas.array("qvel_bar", body.qvel_bar),
        )
        wrt = tuple(body.wrt) or _STATE_AND_CONTROL
        return answers.gradient(
            await self.service.trajectories.backward(trajectory_id, qpos_bar, qvel_bar, wrt, times=body.times)
        )

    async def jvp(self, trajectory_id: str, request: Request) -> Document:
        body = schemas.validate(schemas.Tangents, request)
        names = ("qpos_tan", "qvel_tan", "ctrl_tan")
        tangents: dict[str, Any] = {name: schemas.array(name, getattr(body, name)) for name in names}
        tangents["params_tan"] = schemas.arrays("params_tan", body.params_tan) or None
        return answers.trajectory_tangent(await self.service.trajectories.jvp(trajectory_id, tangents))

    async def jacobian(self, request: Request) -> Document:
        body = schemas.validate(schemas.JacobianInputs, request)
        found = await self.service.stateless.jacobian(body.model_id, *self._inputs(body))
        return answers.step_jacobian(found)

    async def check_gradient(self, request: Request) -> Document:
        body = schemas.validate(schemas.CheckGradientInputs, request)
        start: dict[str, Any] = {
            name: schemas.array(name, getattr(body, name)) for name in ("qpos", "qvel", "ctrl")
        }
        start["params"] = schemas.arrays("params", body.params) or None
        found = await self.service.stateless.check_gradient(
            body.model_id,
            start,
            steps=body.steps,
            directions=body.directions,
            wrt=body.wrt or None,
            seed=body.seed,
            tolerance=body.tolerance,
        )
        return answers.gradient_report(found)

    async def value_and_gradient(self, request: Request) -> Document:
        body = schemas.validate(schemas.ValueAndGradientInputs, request)
        qpos, qvel, ctrl, params = self._inputs(body.inputs)
        found = await self.service.stateless.value_and_gradient(
            body.inputs.model_id,
            qpos,
            qvel,
            ctrl,
            Loss.from_dict(body.loss),
            params,
            tuple(body.wrt) or _STATE_AND_CONTROL,
            checkpoints=body.inputs.checkpoints,
        )
        return answers.value_and_gradient(found)

    @contextlib.asynccontextmanager
    async def own_loss(
        self, request: Request
    ) -> AsyncIterator[tuple[Document, Callable[[Request], Awaitable[Document]]]]:
        """Simulate for a caller who has a loss of its own.

        Yields:
            The trajectory (message Trajectory), and what turns the caller's Cotangents into the answer
            (message ValueAndGradientResult).
        """
        body = schemas.validate(schemas.OwnLossInputs, request)
        inputs = body.inputs
        found = self.service.trajectories.passing(
            inputs.model_id, *self._inputs(inputs), checkpoints=inputs.checkpoints
        )
        async with found as (passing, pull):

            async def differentiate(request: Request) -> Document:
                bars = schemas.validate(schemas.OwnCotangents, request)
                gradient = await pull(
                    schemas.array("qpos_bar", bars.qpos_bar),
                    schemas.array("qvel_bar", bars.qvel_bar),
                    tuple(body.wrt) or _STATE_AND_CONTROL,
                    bars.times,
                )
                return answers.own_gradient(passing, gradient)

            yield answers.trajectory(passing, with_ctrl=False), differentiate

    async def delete_trajectory(self, trajectory_id: str, request: Request) -> Document:
        delete = self.service.trajectories.delete
        return await self._delete("DeleteTrajectory", trajectory_id, request, delete)

    async def get_server_info(self) -> Document:
        return answers.server_info(self.service.info)

    async def _once(self, request_id: str, *arguments: Any, **options: Any) -> Document:
        """Carry out a mutation once, however often it is asked for; see `Requests.once`."""
        return await self.service.requests.once(request_id, *arguments, **options)

    async def _delete(
        self,
        verb: str,
        identifier: str,
        request: Request,
        delete: Callable[[str, Ticket], Awaitable[None]],
    ) -> Document:
        """Delete something, once."""
        body = schemas.validate(schemas.Deletion, request)
        return await self._once(
            body.request_id,
            verb,
            {"id": identifier},
            lambda ticket: delete(identifier, ticket),
            lambda _nothing: {},
        )


async def _session_state(known: Document) -> Document:
    """Return the state that a session had after a request, as it was kept then."""
    return answers.session_state(State(**known["state"]))


def _trajectory_id(kept: Trajectory) -> Document:
    """Return what is remembered of a request that made a trajectory."""
    return {"trajectory_id": kept.id}

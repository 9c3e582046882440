"""The verbs of SessionService."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from typing import Any

import numpy as np

from revolute.contract.arrays import as_float64
from revolute.contract.controllers import MOCAP_INPUTS

from .. import answers
from ..answers import Document
from ..compute.stepping import State, total_steps
from ..domain.measurements import Source
from ..domain.request_ids import Ticket
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
    Listing,
    OptionalArray,
    StepInputArrays,
    array,
    arrays,
    takes,
)


class CreateSession(Body):
    """A session to open."""

    example = {"model_id": EXAMPLE_MODEL, "batch": 2, "lease": 600.0}

    model_id: str
    batch: int
    lease: float | None = None
    durable: bool = True
    request_id: str = REQUEST_ID


class ForkSession(Body):
    """A session to copy."""

    example = {"request_id": "7d0c5c2e-6f0e-4a3e-9a63-5f4d1f6f2b11"}

    lease: float | None = None
    request_id: str = REQUEST_ID


class KeepAlive(Body):
    """A lease to renew."""


class ResetInputs(Body):
    """The state to reset a session to; a field that is not set takes the model's default."""

    example = {"qpos": [0.0, 0.2], "where": [1, 0]}

    qpos: OptionalArray = None
    qvel: OptionalArray = None
    where: OptionalArray = None
    mocap_pos: OptionalArray = None
    mocap_quat: OptionalArray = None
    request_id: str = REQUEST_ID


class SetStateInputs(Body):
    """The state to set; a field that is not set is unchanged."""

    example = {"qvel": [[0.1, 0.0], [0.2, 0.0]], "step_count": 0}

    qpos: OptionalArray = None
    qvel: OptionalArray = None
    step_count: int | None = None
    step_counts: OptionalArray = None
    ctrl: OptionalArray = None
    mocap_pos: OptionalArray = None
    mocap_quat: OptionalArray = None
    request_id: str = REQUEST_ID


class SetParamsInputs(Body):
    """Parameters of the session's model; those not named have the model's values."""

    example = {"params": {"gravity": [0.0, 0.0, -1.62]}}

    params: dict[str, AnyShape] = {}
    request_id: str = REQUEST_ID


class StepInputs(Controlled):
    """Controls for some steps."""

    example = {"ctrl": [[1.0], [-1.0]], "steps": 4}

    ctrl: Array
    steps: int | None = None
    request_id: str = REQUEST_ID
    measure: list[str] = NAMES


class SessionJacobianInputs(StepInputArrays):
    """Controls of the step to differentiate."""

    example = {"ctrl": [0.5]}

    ctrl: Array


class SessionVerbs(ServiceVerbs):
    """Opens, steps, reads, differentiates and closes sessions."""

    @takes(CreateSession)
    async def create_session(self, body: CreateSession) -> Document:
        self._check_batch("batch", body.batch)
        return await self._once(
            body.request_id,
            "CreateSession",
            body.model_dump(exclude={"request_id"}),
            lambda ticket: self.service.sessions.create(
                body.model_id, body.batch, body.lease, ticket, durable=body.durable
            ),
            answers.session_handle,
        )

    async def get_session(self, session_id: str) -> Document:
        return answers.session_info(await self.service.sessions.info(session_id))

    @takes(Listing)
    async def list_sessions(self, body: Listing) -> Document:
        return answers.session_list(await self.service.sessions.page(body.page_size, body.page_token))

    @takes(KeepAlive)
    async def keep_alive(self, session_id: str, _body: KeepAlive) -> Document:
        return {"lease": await self.service.sessions.keep_alive(session_id)}

    @takes(ResetInputs)
    async def reset(self, session_id: str, body: ResetInputs) -> Document:
        qpos, qvel, where = array("qpos", body.qpos), array("qvel", body.qvel), array("where", body.where)
        mocap = _mocap(body)
        return await self._change(
            body.request_id,
            "Reset",
            {"session_id": session_id, "qpos": qpos, "qvel": qvel, "where": where, **mocap},
            lambda ticket: self.service.sessions.reset(session_id, qpos, qvel, where, ticket, mocap=mocap),
            answers.session_state,
        )

    @takes(StepInputs)
    async def step(self, session_id: str, body: StepInputs) -> Document:
        ctrl, inputs, control = as_float64("ctrl", body.ctrl), body.step_inputs, body.controller
        steps = total_steps(ctrl, body.steps, control.hold)
        if body.measure:
            model, _ = await self.service.sessions.model_and_state(session_id)
            await self.service.measurements.check("measure", model.id, body.measure)
        found = await self._change(
            body.request_id,
            "Step",
            # the fields that are set, so that requests of earlier versions keep their fingerprints
            {"session_id": session_id, "ctrl": ctrl, "steps": steps, **inputs, **control.to_dict()},
            lambda ticket: self.service.sessions.step(
                session_id, ctrl, steps, ticket, inputs=inputs, control=control
            ),
            answers.session_state,
        )
        if not body.measure:
            return found
        # at the state of the answer, which other calls cannot change
        source = Source(
            session_id=session_id,
            ctrl=found["ctrl"] if control.has_controller or ctrl.ndim == 3 else ctrl,
            state=found,
            inputs=_last_forces(inputs),
        )
        return {**found, "measured": await self.service.measurements.quantities(source, body.measure)}

    async def get_state(self, session_id: str) -> Document:
        return answers.session_state(await self.service.sessions.state(session_id))

    @takes(SetStateInputs)
    async def set_state(self, session_id: str, body: SetStateInputs) -> Document:
        qpos, qvel = array("qpos", body.qpos), array("qvel", body.qvel)
        count, counts = body.step_count, array("step_counts", body.step_counts)
        mocap, ctrl = _mocap(body), array("ctrl", body.ctrl)
        last = {} if ctrl is None else {"ctrl": ctrl}
        return await self._change(
            body.request_id,
            "SetState",
            {
                "session_id": session_id,
                "qpos": qpos,
                "qvel": qvel,
                "step_count": count,
                "step_counts": counts,
                **mocap,
                **last,
            },
            lambda ticket: self.service.sessions.set_state(
                session_id, qpos, qvel, count, counts, ticket, mocap=mocap, **last
            ),
            answers.session_state,
        )

    @takes(SetParamsInputs)
    async def set_params(self, session_id: str, body: SetParamsInputs) -> Document:
        params = arrays("params", body.params)
        return await self._change(
            body.request_id,
            "SetParams",
            {"session_id": session_id, "params": params},
            lambda ticket: self.service.sessions.set_params(session_id, params, ticket),
            lambda _state: {},
        )

    @takes(ForkSession)
    async def fork_session(self, session_id: str, body: ForkSession) -> Document:
        return await self._once(
            body.request_id,
            "ForkSession",
            {"session_id": session_id, "lease": body.lease},
            lambda ticket: self.service.sessions.fork(session_id, body.lease, ticket),
            answers.session_handle,
        )

    async def state_bytes(self, session_id: str) -> int:
        """Return the bytes of an answer with a session's state."""
        return await self.service.sessions.state_bytes(session_id)

    @takes(SessionJacobianInputs)
    async def session_jacobian(self, session_id: str, body: SessionJacobianInputs) -> Document:
        found = await self.service.sessions.jacobian(session_id, array("ctrl", body.ctrl), body.step_inputs)
        return answers.step_jacobian(found)

    async def _change(
        self,
        request_id: str,
        verb: str,
        arguments: Mapping[str, Any],
        act: Callable[[Ticket], Awaitable[State]],
        answer: Callable[[State], Document],
    ) -> Document:
        """Change a session's state once; the record of the request is the state, not the answer."""

        async def replay(known: Document) -> Document:
            return answer(State(**known["state"]))

        return await self._once(request_id, verb, arguments, act, answer, replay=replay)

    @takes(Deletion)
    async def delete_session(self, session_id: str, body: Deletion) -> Document:
        return await self._delete("DeleteSession", session_id, body, self.service.sessions.delete)


def _mocap(body: ResetInputs | SetStateInputs) -> dict[str, np.ndarray]:
    """Return the poses of mocap bodies that are set, by name."""
    given = {name: array(name, getattr(body, name)) for name in MOCAP_INPUTS}
    return {name: value for name, value in given.items() if value is not None}


def _last_forces(inputs: Mapping[str, np.ndarray]) -> dict[str, np.ndarray]:
    """Return the applied forces of the last steps."""
    forces = {name: inputs[name] for name in ("qfrc_applied", "xfrc_applied") if name in inputs}
    axes = {"qfrc_applied": 1, "xfrc_applied": 2}
    return {
        name: array[:, -1] if array.ndim == axes[name] + 2 and array.shape[1] else array
        for name, array in forces.items()
    }

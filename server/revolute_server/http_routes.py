"""The HTTP transport: turns bodies into documents, calls the verbs, and writes the answers."""

from __future__ import annotations

import contextlib
import functools
from collections.abc import AsyncGenerator, Awaitable, Callable, Coroutine, Iterator
from typing import Annotated, Any

from fastapi import APIRouter, Depends, FastAPI, Query, Request, Response
from fastapi.responses import HTMLResponse, PlainTextResponse

from revolute.v1 import gradient_report_pb2, model_pb2, server_pb2, session_pb2, trajectory_pb2

from . import http_problems, schemas
from .admin.page import HEADERS, PAGE
from .admin.status import status as server_status
from .answers import Document
from .auth import HEALTH, METRICS, STATUS
from .call import name_call
from .calls import Calls
from .errors import public_error
from .http_bodies import asset_bytes, check_answer, read_document, read_query, wants_npz, write_document
from .http_calls import HttpCalls, admission
from .http_disconnect import while_connected
from .http_docs import describe
from .http_docs import install as install_docs
from .http_hosts import LoopbackHosts
from .http_streams import open_stream
from .memory import Reservation
from .metrics import CONTENT_TYPE
from .verbs import Verbs

Verb = Callable[[dict[str, Any]], Coroutine[Any, Any, Document]]
Undo = Callable[[Document], None]

_STATES = "'all', or 'final' for the last state alone; left out: all"


def create_app(verbs: Verbs, calls: Calls) -> FastAPI:
    """Build the ASGI application over the verbs."""
    app = FastAPI(
        title="revolute",
        version=verbs.service.info.version,
        summary="Rollouts and gradients of articulated bodies.",
        docs_url=None,
        redoc_url=None,
        redirect_slashes=False,
    )
    exchange = _Exchange(verbs, calls)
    app.include_router(_health(verbs))
    app.include_router(_seeing_inside(verbs, calls))
    for routes in (_models, _sessions, _trajectories, _server):
        app.include_router(routes(exchange, verbs), dependencies=[Depends(admission(calls))])
    http_problems.install(app)
    install_docs(app)
    if verbs.service.settings.checks_host_names:
        app.add_middleware(LoopbackHosts)
    app.add_middleware(HttpCalls, calls=calls)
    return app


class _Exchange:
    """Reads a request's body, runs the verb while the client waits, writes the answer."""

    def __init__(self, verbs: Verbs, calls: Calls) -> None:
        self._service = verbs.service
        self._calls = calls

    async def answer(
        self,
        request: Request,
        verb: Verb,
        status: int = 200,
        undo: Undo | None = None,
        size: Callable[[], Awaitable[int]] | None = None,
    ) -> Response:
        """Answer a request with a body.

        Args:
            request: the request.
            verb: what to do.
            status: status of the answer.
            undo: forgets what the verb kept for the caller, when the answer cannot be written, or when the
                caller leaves before all of it is sent.
            size: bytes of the answer of a verb that cannot be undone, asked before it begins.
        """
        with self._service.budget.reserve("a request") as memory, _faults_logged(request):
            document = await self._read(request, memory)
            if size is not None and not wants_npz(request):
                check_answer(request, await size(), self._service.settings)
            found = await while_connected(request, verb(document))
            try:
                left = None if undo is None else functools.partial(undo, found)
                return await self._write(request, found, memory, status, left)
            except BaseException:
                if undo is not None:
                    undo(found)
                raise

    async def stream(
        self,
        request: Request,
        verb: Callable[[dict[str, Any]], AsyncGenerator[Document, None]],
        undo: Undo,
    ) -> Response:
        """Answer a request with many documents, each as soon as it is there; arguments as for `answer`."""
        with self._service.budget.reserve("a request") as memory, _faults_logged(request):
            document = await self._read(request, memory)
            return await open_stream(request, verb(document), memory, undo)

    async def give(self, request: Request, document: Awaitable[Document]) -> Response:
        """Answer a request without a body."""
        with self._service.budget.reserve("an answer") as memory, _faults_logged(request):
            return await self._write(request, await document, memory)

    async def _read(self, request: Request, memory: Reservation) -> dict[str, Any]:
        """Read a request's body, unless no worker will be free for it."""
        self._calls.check_room()
        return await read_document(request, self._service.settings, memory)

    async def _write(
        self,
        request: Request,
        document: Document,
        memory: Reservation,
        status: int = 200,
        undo: Callable[[], None] | None = None,
    ) -> Response:
        telemetry, settings = self._service.telemetry, self._service.settings
        return await write_document(request, document, memory, telemetry, settings, status, undo)


@contextlib.contextmanager
def _faults_logged(request: Request) -> Iterator[None]:
    """Turn what is no error of revolute into one, here, before the framework logs it a second time."""
    try:
        yield
    except Exception as error:
        raise public_error(error, http_problems.verb_name(request)) from None


def _health(verbs: Verbs) -> APIRouter:
    router = APIRouter(tags=["health"])

    @router.get("/livez", operation_id="Live")
    async def livez() -> dict[str, str]:
        """Say that the process runs."""
        name_call(HEALTH)
        return {"status": "alive"}

    @router.get(
        "/readyz",
        operation_id="Ready",
        responses={503: {"description": "It starts or stops, or its store does not answer."}},
    )
    async def readyz(response: Response) -> dict[str, str]:
        """Say whether calls are taken; 503 while the server starts or stops, or its store does not answer."""
        name_call(HEALTH)
        ready = verbs.service.ready
        response.status_code = 200 if ready else 503
        return {"status": "ready" if ready else "not ready"}

    return router


def _seeing_inside(verbs: Verbs, calls: Calls) -> APIRouter:
    """Routes for those who run the server; they are answered while it drains, too."""
    router = APIRouter(tags=["inside"])

    @router.get(
        "/metrics",
        operation_id="Metrics",
        response_class=PlainTextResponse,
        dependencies=[Depends(admission(calls, METRICS, while_draining=True))],
    )
    async def metrics() -> Response:
        """Report what is counted and timed, for Prometheus."""
        return Response(verbs.service.telemetry.metrics.text(), media_type=CONTENT_TYPE)

    @router.get(
        "/status",
        operation_id="Status",
        dependencies=[Depends(admission(calls, STATUS, while_draining=True))],
    )
    async def status() -> dict[str, Any]:
        """Tell what the server holds and how busy it is; the page at / shows it."""
        return await server_status(verbs.service, draining=calls.draining)

    @router.get("/", include_in_schema=False)
    async def page() -> Response:
        name_call(HEALTH)
        return HTMLResponse(PAGE, headers=HEADERS)

    return router


def _models(exchange: _Exchange, verbs: Verbs) -> APIRouter:
    router = APIRouter(prefix="/v1/models", tags=["ModelService"])

    @router.post("", openapi_extra=describe(model_pb2.ModelInfo, schemas.ModelSource))
    async def register_model(request: Request) -> Response:
        """Compile a model and keep it; the same content and options always give the same id."""

        async def verb(document: dict[str, Any]) -> Document:
            return await verbs.register_model({**document, "assets": asset_bytes(document.get("assets", {}))})

        return await exchange.answer(request, verb)

    @router.get("", openapi_extra=describe(model_pb2.ListModelsResponse, query=schemas.Listing))
    async def list_models(request: Request) -> Response:
        """List built-in names and registered models, page by page."""
        return await exchange.give(request, verbs.list_models(read_query(request)))

    @router.get("/{model_id}", openapi_extra=describe(model_pb2.ModelInfo))
    async def get_model(request: Request, model_id: str) -> Response:
        """Describe a registered model."""
        return await exchange.give(request, verbs.get_model(model_id))

    @router.delete("/{model_id}", status_code=204, openapi_extra=describe(query=schemas.Deletion))
    async def delete_model(request: Request, model_id: str) -> None:
        """Forget a model that no session or trajectory uses."""
        await verbs.delete_model(model_id, read_query(request))

    return router


def _sessions(exchange: _Exchange, verbs: Verbs) -> APIRouter:
    router = APIRouter(prefix="/v1/sessions", tags=["SessionService"])

    @router.post(
        "", status_code=201, openapi_extra=describe(session_pb2.CreateSessionResponse, schemas.CreateSession)
    )
    async def create_session(request: Request) -> Response:
        """Open a session at the model's default state."""
        return await exchange.answer(request, verbs.create_session, 201)

    @router.get("", openapi_extra=describe(session_pb2.ListSessionsResponse, query=schemas.Listing))
    async def list_sessions(request: Request) -> Response:
        """List the sessions, page by page."""
        return await exchange.give(request, verbs.list_sessions(read_query(request)))

    @router.get("/{session_id}", openapi_extra=describe(session_pb2.SessionInfo))
    async def get_session(request: Request, session_id: str) -> Response:
        """Describe a session; does not renew its lease."""
        return await exchange.give(request, verbs.get_session(session_id))

    @router.post(
        "/{session_id}/keep-alive", openapi_extra=describe(session_pb2.KeepAliveResponse, schemas.KeepAlive)
    )
    async def keep_alive(request: Request, session_id: str) -> Response:
        """Renew the lease."""
        return await exchange.answer(request, lambda document: verbs.keep_alive(session_id, document))

    @router.post(
        "/{session_id}/fork",
        status_code=201,
        openapi_extra=describe(session_pb2.ForkSessionResponse, schemas.ForkSession),
    )
    async def fork_session(request: Request, session_id: str) -> Response:
        """Open another session in the same state."""
        return await exchange.answer(request, lambda document: verbs.fork_session(session_id, document), 201)

    @router.put(
        "/{session_id}/state", openapi_extra=describe(session_pb2.SessionState, schemas.SetStateInputs)
    )
    async def set_state(request: Request, session_id: str) -> Response:
        """Replace the state, or parts of it, and go on from there."""
        return await exchange.answer(
            request,
            lambda document: verbs.set_state(session_id, document),
            size=lambda: verbs.state_bytes(session_id),
        )

    @router.post("/{session_id}/reset", openapi_extra=describe(session_pb2.SessionState, schemas.ResetInputs))
    async def reset(request: Request, session_id: str) -> Response:
        """Set the state and put time and step count back to 0."""
        return await exchange.answer(
            request,
            lambda document: verbs.reset(session_id, document),
            size=lambda: verbs.state_bytes(session_id),
        )

    @router.post("/{session_id}/step", openapi_extra=describe(session_pb2.SessionState, schemas.StepInputs))
    async def step(request: Request, session_id: str) -> Response:
        """Advance all environments with controls held; all or nothing."""
        return await exchange.answer(
            request,
            lambda document: verbs.step(session_id, document),
            size=lambda: verbs.state_bytes(session_id),
        )

    @router.post(
        "/{session_id}/jacobian",
        openapi_extra=describe(trajectory_pb2.StepJacobian, schemas.SessionJacobianInputs),
    )
    async def jacobian(request: Request, session_id: str) -> Response:
        """Differentiate one step from the state, by the state and the controls; takes no step."""
        return await exchange.answer(request, lambda document: verbs.session_jacobian(session_id, document))

    @router.get("/{session_id}/state", openapi_extra=describe(session_pb2.SessionState))
    async def get_state(request: Request, session_id: str) -> Response:
        """Read the state."""
        return await exchange.give(request, verbs.get_state(session_id))

    @router.delete("/{session_id}", status_code=204, openapi_extra=describe(query=schemas.Deletion))
    async def delete_session(request: Request, session_id: str) -> None:
        """Close a session."""
        await verbs.delete_session(session_id, read_query(request))

    return router


def _trajectories(exchange: _Exchange, verbs: Verbs) -> APIRouter:
    router = APIRouter(prefix="/v1", tags=["TrajectoryService"])

    @router.post(
        "/trajectories",
        status_code=201,
        openapi_extra=describe(trajectory_pb2.Trajectory, schemas.RolloutInputs),
    )
    async def rollout(request: Request) -> Response:
        """Simulate T steps from a state and keep the trajectory until it is deleted."""
        return await exchange.answer(request, verbs.rollout, 201, verbs.undo_rollout)

    @router.post(
        "/stream-rollout",
        openapi_extra=describe(
            trajectory_pb2.RolloutSegment, schemas.StreamRolloutInputs, last=trajectory_pb2.RolloutEnd
        ),
    )
    async def stream_rollout(request: Request) -> Response:
        """Simulate as by Rollout, and send the states segment by segment as they are computed."""
        return await exchange.stream(request, verbs.stream_rollout, verbs.undo_rollout)

    @router.get("/trajectories/{trajectory_id}", openapi_extra=describe(trajectory_pb2.Trajectory))
    async def get_trajectory(
        request: Request, trajectory_id: str, states: Annotated[str | None, Query(description=_STATES)] = None
    ) -> Response:
        """Send a kept trajectory again, with all its states, or with states=final the last one."""
        return await exchange.give(request, verbs.get_trajectory(trajectory_id, states))

    @router.post(
        "/trajectories/{trajectory_id}/backward",
        openapi_extra=describe(trajectory_pb2.Gradient, schemas.Cotangents),
    )
    async def backward(request: Request, trajectory_id: str) -> Response:
        """Pull cotangents back through a kept trajectory."""
        return await exchange.answer(request, lambda document: verbs.backward(trajectory_id, document))

    @router.post(
        "/trajectories/{trajectory_id}/jvp",
        openapi_extra=describe(trajectory_pb2.TrajectoryTangent, schemas.Tangents),
    )
    async def jvp(request: Request, trajectory_id: str) -> Response:
        """Push a direction of the inputs forward through a kept trajectory."""
        return await exchange.answer(request, lambda document: verbs.jvp(trajectory_id, document))

    @router.delete(
        "/trajectories/{trajectory_id}", status_code=204, openapi_extra=describe(query=schemas.Deletion)
    )
    async def delete_trajectory(request: Request, trajectory_id: str) -> None:
        """Forget a trajectory."""
        await verbs.delete_trajectory(trajectory_id, read_query(request))

    @router.post("/jacobian", openapi_extra=describe(trajectory_pb2.StepJacobian, schemas.JacobianInputs))
    async def jacobian(request: Request) -> Response:
        """Differentiate one step by its state and controls; nothing is kept."""
        return await exchange.answer(request, verbs.jacobian)

    @router.post(
        "/check-gradient",
        openapi_extra=describe(gradient_report_pb2.GradientReport, schemas.CheckGradientInputs),
    )
    async def check_gradient(request: Request) -> Response:
        """Check the gradients of one trajectory against finite differences and forward derivatives."""
        return await exchange.answer(request, verbs.check_gradient)

    @router.post(
        "/value-and-gradient",
        openapi_extra=describe(trajectory_pb2.ValueAndGradientResult, schemas.ValueAndGradientInputs),
    )
    async def value_and_gradient(request: Request) -> Response:
        """Simulate, evaluate a loss and differentiate it in one call; nothing is kept."""
        return await exchange.answer(request, verbs.value_and_gradient)

    return router


def _server(exchange: _Exchange, verbs: Verbs) -> APIRouter:
    router = APIRouter(prefix="/v1", tags=["ServerService"])

    @router.get("/server", openapi_extra=describe(server_pb2.GetServerInfoResponse))
    async def get_server_info(request: Request) -> Response:
        """Describe this server."""
        return await exchange.give(request, verbs.get_server_info())

    return router

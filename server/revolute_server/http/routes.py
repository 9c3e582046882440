"""The HTTP routes: turn bodies into documents, call the verbs, and write the answers."""

from __future__ import annotations

import contextlib
import functools
import re
from collections.abc import Awaitable, Callable, Iterator
from typing import Any

from fastapi import APIRouter, Depends, FastAPI, Request, Response
from fastapi.responses import HTMLResponse, PlainTextResponse

from revolute.contract.verbs import VERBS, Verb

from ..access.admission import Calls
from ..access.call import name_call
from ..access.tokens import HEALTH, METRICS, STATUS
from ..answers import Document
from ..compute.memory_budget import Reservation
from ..observe.incidents import public_error
from ..observe.metrics import CONTENT_TYPE
from ..verbs import Verbs, body_of
from . import problems
from .admission import HttpCalls, admission
from .bodies import asset_bytes, check_answer, read_document, read_query, wants_npz, write_document
from .disconnect import while_connected
from .docs import describe
from .docs import install as install_docs
from .loopback_hosts import LoopbackHosts
from .pages import ADMIN_PAGE, page_headers
from .status import status as server_status
from .streams import open_stream


def create_app(verbs: Verbs, calls: Calls) -> FastAPI:
    """Build the ASGI application over the verbs."""
    app = FastAPI(
        title="revolute",
        version=verbs.service.info.version,
        summary="Rollouts and gradients of articulated bodies.",
        docs_url=None,
        redoc_url=None,
        openapi_url=None,
        redirect_slashes=False,
    )
    exchange = _Exchange(verbs, calls)
    app.include_router(_health(verbs))
    app.include_router(_monitoring(verbs, calls))
    app.include_router(_rpcs(exchange), dependencies=[Depends(admission(calls))])
    problems.install(app)
    install_docs(app)
    if verbs.service.settings.checks_host_names:
        app.add_middleware(LoopbackHosts)
    app.add_middleware(HttpCalls, calls=calls)
    return app


class _Exchange:
    """Reads a request's body, runs the verb while the client waits, writes the answer."""

    def __init__(self, verbs: Verbs, calls: Calls) -> None:
        self._verbs = verbs
        self._service = verbs.service
        self._calls = calls

    def route(self, verb: Verb) -> Callable[[Request], Awaitable[Response]]:
        """Return the endpoint of a verb."""
        if verb.http_method in ("GET", "DELETE"):
            answer = self._without_body
        elif verb.name == "StreamRollout":
            answer = self._stream
        else:
            answer = self._with_body

        async def endpoint(request: Request) -> Response:
            return await answer(verb, request)

        return endpoint

    async def _with_body(self, verb: Verb, request: Request) -> Response:
        """Answer a request with a body.

        A trajectory that the verb created is deleted if the answer cannot be written, or if the client
        disconnects before all of it is sent. For a step of a session, which cannot be undone, the size of the
        answer is checked first.
        """
        undo = self._verbs.undo(verb)
        with self._service.budget.reserve("a request") as memory, _faults_logged(request):
            document = await self._read(verb, request, memory)
            if verb.mutation and verb.id_field == "session_id" and undo is None and not wants_npz(request):
                size = await self._verbs.state_bytes(document["session_id"])
                check_answer(request, size, self._service.settings)
            found = await while_connected(request, self._verbs.call(verb, document))
            try:
                on_disconnect = None if undo is None else functools.partial(undo, found)
                return await self._write(request, found, memory, _status(verb), on_disconnect)
            except BaseException:
                if undo is not None:
                    undo(found)
                raise

    async def _stream(self, verb: Verb, request: Request) -> Response:
        """Answer a request with many documents, each as soon as it is computed."""
        with self._service.budget.reserve("a request") as memory, _faults_logged(request):
            document = await self._read(verb, request, memory)
            documents = self._verbs.stream(verb, document)
            return await open_stream(request, documents, memory, self._verbs.undo_rollout)

    async def _without_body(self, verb: Verb, request: Request) -> Response:
        """Answer a request without a body."""
        with self._service.budget.reserve("an answer") as memory, _faults_logged(request):
            document = await self._verbs.call(verb, {**_query(verb, request), **request.path_params})
            if verb.http_method == "DELETE":
                return Response(status_code=204)
            return await self._write(request, document, memory)

    async def _read(self, verb: Verb, request: Request, memory: Reservation) -> dict[str, Any]:
        """Read the body of a request; refuse it first if the queue for workers is full."""
        self._calls.check_room()
        document = await read_document(request, self._service.settings, memory)
        if verb.name == "RegisterModel":
            document = {**document, "assets": asset_bytes(document.get("assets", {}))}
        return {**document, **request.path_params}

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


def _query(verb: Verb, request: Request) -> dict[str, Any]:
    """Read the query of a request; a GET of a single record ignores unknown fields."""
    found = read_query(request)
    if verb.http_method == "DELETE" or not verb.id_field:
        return found
    body = body_of(verb)
    return {name: value for name, value in found.items() if body is not None and name in body.model_fields}


@contextlib.contextmanager
def _faults_logged(request: Request) -> Iterator[None]:
    """Convert unexpected exceptions to InternalError here; otherwise the framework logs them once more."""
    try:
        yield
    except Exception as error:
        raise public_error(error, problems.verb_name(request)) from None


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


def _monitoring(verbs: Verbs, calls: Calls) -> APIRouter:
    """Return the routes for operators, which also answer while the server drains."""
    router = APIRouter(tags=["inside"])

    @router.get(
        "/metrics",
        operation_id="Metrics",
        response_class=PlainTextResponse,
        dependencies=[Depends(admission(calls, METRICS, while_draining=True))],
    )
    async def metrics() -> Response:
        """Report counters and timings, for Prometheus."""
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
        return HTMLResponse(ADMIN_PAGE, headers=page_headers(ADMIN_PAGE))

    return router


def _rpcs(exchange: _Exchange) -> APIRouter:
    """Return a route for each verb, by the options in the proto files."""
    router = APIRouter()
    for verb in VERBS.values():
        router.add_api_route(
            verb.http_path.format(f"{{{verb.id_field}}}"),
            exchange.route(verb),
            methods=[verb.http_method],
            status_code=_status(verb),
            tags=[verb.method.containing_service.name],
            name=verb.method.name,
            summary=re.sub(r"(?<!^)(?=[A-Z])", " ", verb.method.name),
            response_model=None,
            openapi_extra=describe(verb),
        )
    return router


def _status(verb: Verb) -> int:
    """Return the HTTP status of a successful answer."""
    if verb.http_method == "DELETE":
        return 204
    return 201 if verb.creates else 200

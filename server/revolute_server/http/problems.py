"""HTTP errors: problem documents (RFC 9457) with the same reason and argument as gRPC's ErrorInfo."""

from __future__ import annotations

import http
import math
from typing import Any

from fastapi import FastAPI, Request, Response
from starlette.exceptions import HTTPException
from starlette.routing import Match, Mount

from revolute.contract.errors import ArgumentError, NotFoundError, RevoluteError, kind_of

from ..access.call import current_call
from ..observe.incidents import public_error
from .bodies import UnsupportedMediaTypeError, problem_body

PROBLEM = "application/problem+json"
_METHODS = ("DELETE", "GET", "HEAD", "PATCH", "POST", "PUT")


def problem_fields(error: RevoluteError, status: int | None = None) -> dict[str, Any]:
    """Return the members of an error's problem document, and record the error in the current call."""
    kind = kind_of(error)
    call = current_call()
    if call is not None:
        call.reason, call.message = kind.reason, error.message
    if isinstance(error, UnsupportedMediaTypeError):
        status = 415
    fields: dict[str, Any] = {
        "type": "about:blank",
        "title": kind.title,
        "status": status or kind.http_status,
        "detail": error.message,
        "reason": kind.reason,
        "argument": error.argument,
        "call_id": call.id if call is not None else None,
    }
    if error.retry_after is not None:
        fields["retry_after"] = error.retry_after
    return fields


def problem(
    error: RevoluteError, status: int | None = None, headers: dict[str, str] | None = None
) -> Response:
    """Build the answer to a failed request."""
    fields = problem_fields(error, status)
    if error.retry_after is not None:
        headers = {**(headers or {}), "Retry-After": str(math.ceil(error.retry_after))}
    if fields["status"] == 401:
        headers = {**(headers or {}), "WWW-Authenticate": "Bearer"}
    return Response(problem_body(fields), fields["status"], headers, media_type=PROBLEM)


def install(app: FastAPI) -> None:
    """Answer all errors of an application, including the framework's own, with problem documents."""

    @app.exception_handler(HTTPException)
    async def routing(request: Request, error: HTTPException) -> Response:
        path = request.url.path[:200]
        headers = dict(error.headers or {})
        if error.status_code == 404:
            found: RevoluteError = NotFoundError.expected("path", "a path that /docs lists", repr(path))
        elif error.status_code == 405:
            found = ArgumentError.expected("method", f"a method that {path} has", request.method)
            headers["Allow"] = ", ".join(_methods(request))
        else:
            phrase = http.HTTPStatus(error.status_code).phrase.lower()
            found = ArgumentError.expected("request", "one that can be read", phrase)
        return problem(found, error.status_code, headers)

    @app.exception_handler(RevoluteError)
    async def refused(request: Request, error: RevoluteError) -> Response:
        return problem(public_error(error, verb_name(request)))

    @app.exception_handler(Exception)
    async def fault(request: Request, error: Exception) -> Response:
        return problem(public_error(error, verb_name(request)))


def _methods(request: Request) -> list[str]:
    """Return the methods of all routes of the path; the framework returns those of one route only."""
    routes = [route for route in request.app.routes if not isinstance(route, Mount)]
    return [
        method
        for method in _METHODS
        if any(route.matches({**request.scope, "method": method})[0] is Match.FULL for route in routes)
    ]


def verb_name(request: Request) -> str:
    """Return method and route of a request; the path itself is chosen by the client and not logged."""
    return f"{request.method} {getattr(request.scope.get('route'), 'path', 'an unknown route')}"

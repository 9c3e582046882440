"""The OpenAPI description at /openapi.json, and the page at /docs, which loads nothing from other hosts.

Schemas of requests come from their bodies, schemas of answers from the messages of the protocol. Both are
described by the comments of the proto files.
"""

from __future__ import annotations

from pathlib import Path

import fastapi_offline
from fastapi import FastAPI, Request, Response
from fastapi.openapi.docs import get_swagger_ui_html
from fastapi.openapi.utils import get_openapi
from fastapi.responses import HTMLResponse, JSONResponse
from fastapi.staticfiles import StaticFiles
from google.protobuf import descriptor_pool
from google.protobuf.descriptor import Descriptor

from revolute.contract.verbs import BY_RPC, Verb

from ..verbs import Body, body_of
from .bodies import JSON, NPZ
from .json_schemas import Schema, add_answer, comments, common_schemas, reference, request_schemas
from .pages import page_headers
from .problems import PROBLEM
from .streams import NDJSON, NPZ_FRAMES

_ASSETS = Path(fastapi_offline.__file__).parent / "static"
_MESSAGE = "x-message"  # passes the message of an answer from a route to the description
_LAST = "x-last-message"  # the same for the last document of a streamed answer
_ARCHIVE: Schema = {
    "schema": {
        "type": "string",
        "format": "binary",
        "description": "The same document as NPZ, see docs/protocol.md.",
    }
}
_FRAMES: Schema = {
    "schema": {
        "type": "string",
        "format": "binary",
        "description": "The same documents as NPZ, each with its length in front: 8 bytes, little-endian.",
    }
}
_CALL_ID: Schema = {"description": "Id of the call in the server's log.", "schema": {"type": "string"}}
_PROBLEM_ANSWER: Schema = {
    "description": "The call failed and had no effect.",
    "content": {PROBLEM: {"schema": reference("Problem")}},
    "headers": {
        "x-request-id": _CALL_ID,
        "Retry-After": {
            "description": "Whole seconds after which the same call may succeed, where the server knows.",
            "schema": {"type": "integer"},
        },
    },
}
_BEARER: Schema = {
    "type": "http",
    "scheme": "bearer",
    "description": "A token, for a server that asks for one; docs/service.md says what its role may do.",
}


def describe(verb: Verb) -> Schema:
    """Describe the bodies of a verb, which FastAPI does not know because they may be JSON or NPZ."""
    extra: Schema = {}
    if verb.http_method != "DELETE":
        extra[_MESSAGE] = answer_of(verb).full_name
    if verb.name == "StreamRollout":
        extra[_LAST] = _field_message(verb.method.output_type, "end").full_name
    parameters = [_path_parameter(verb.id_field)] if verb.id_field else []
    body = body_of(verb)
    if body is not None and verb.http_method in ("GET", "DELETE"):
        parameters += _query_parameters(body)
    elif body is not None:
        name = body.__name__
        content = {JSON: {"schema": reference(name), "example": dict(body.example)}, NPZ: _ARCHIVE}
        extra["requestBody"] = {"required": True, "content": content}
    return {**extra, "parameters": parameters} if parameters else extra


def answer_of(verb: Verb) -> Descriptor:
    """Return the message of a verb's answer; for a streamed answer that of all but the last document."""
    output = verb.method.output_type
    field = "start" if verb.method.server_streaming else verb.wrapped_in
    return _field_message(output, field) if field else output


def _field_message(message: Descriptor, field: str) -> Descriptor:
    found = message.fields_by_name[field].message_type
    assert found is not None
    return found


def _path_parameter(name: str) -> Schema:
    title = name.replace("_", " ").title()
    return {"name": name, "in": "path", "required": True, "schema": {"type": "string", "title": title}}


def _query_parameters(body: type[Body]) -> list[Schema]:
    return [
        {
            "name": name,
            "in": "query",
            "required": False,
            "description": schema.pop("description"),
            "schema": schema,
        }
        for name, schema in body.model_json_schema()["properties"].items()
    ]


def install(app: FastAPI) -> None:
    """Serve the description and the page."""
    app.mount("/docs/assets", StaticFiles(directory=_ASSETS), name="docs-assets")

    # relative URLs, so that the page works behind a proxy with a path prefix
    page = get_swagger_ui_html(
        openapi_url="openapi.json",
        title="revolute",
        swagger_js_url="docs/assets/swagger-ui-bundle.js",
        swagger_css_url="docs/assets/swagger-ui.css",
        swagger_favicon_url="docs/assets/favicon.png",
    )
    text = bytes(page.body).decode()
    # Swagger UI uses inline styles
    headers = page_headers(text, scripts="'self'", styles="'self' 'unsafe-inline'", images="'self'")

    @app.get("/docs", include_in_schema=False)
    async def docs() -> Response:
        return HTMLResponse(text, headers=headers)

    @app.get("/openapi.json", include_in_schema=False)
    async def description(request: Request) -> Response:
        # "." is the folder of this document
        servers = [{"url": request.scope.get("root_path") or "."}]
        return JSONResponse({**app.openapi(), "servers": servers})

    def openapi() -> Schema:
        if app.openapi_schema is None:
            app.openapi_schema = _describe(app)
        return app.openapi_schema

    app.openapi = openapi  # type: ignore[method-assign]


def _describe(app: FastAPI) -> Schema:
    """Build the OpenAPI description: that of FastAPI, with our bodies and errors added."""
    document = get_openapi(title=app.title, version=app.version, summary=app.summary, routes=app.routes)
    answers: Schema = {}
    for path, methods in document["paths"].items():
        for operation in methods.values():
            operation["responses"].pop("422", None)
            if path not in ("/livez", "/readyz"):
                operation["responses"]["default"] = _PROBLEM_ANSWER
                operation["security"] = [{}, {"token": []}]
            if path.startswith("/v1"):
                _describe_rpc(operation, answers)
    document["components"] = {
        "schemas": {**answers, **request_schemas(), **common_schemas()},
        "securitySchemes": {"token": _BEARER},
    }
    return document


def _describe_rpc(operation: Schema, schemas_by_name: Schema) -> None:
    """Describe the operation of an rpc: its name, its comment, its answer."""
    rpc = f"{operation['tags'][0]}.{operation['summary'].replace(' ', '')}"
    operation["operationId"] = BY_RPC[rpc].name
    operation["description"] = comments()[rpc]
    status = next(status for status in operation["responses"] if status.startswith("2"))
    success = operation["responses"][status]
    success |= {"description": "The call succeeded.", "headers": {"x-request-id": _CALL_ID}}
    if name := operation.pop(_MESSAGE, None):
        schema = add_answer(_message(name), schemas_by_name)
        if last := operation.pop(_LAST, None):
            failed = {"type": "object", "properties": {"error": reference("Problem")}, "required": ["error"]}
            schema = {"anyOf": [schema, add_answer(_message(last), schemas_by_name), failed]}
            success["content"] = {NDJSON: {"schema": schema}, NPZ_FRAMES: _FRAMES}
        else:
            success["content"] = {JSON: {"schema": schema}, NPZ: _ARCHIVE}


def _message(name: str) -> Descriptor:
    return descriptor_pool.Default().FindMessageTypeByName(name)

"""The OpenAPI description at /openapi.json and the page at /docs, which loads nothing from other hosts.

Requests are described by their schemas, answers by the messages of the protocol that they mirror.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import fastapi_offline
from fastapi import FastAPI, Response
from fastapi.openapi.docs import get_swagger_ui_html
from fastapi.openapi.utils import get_openapi
from fastapi.staticfiles import StaticFiles
from google.protobuf import descriptor_pool
from google.protobuf.descriptor import Descriptor, FieldDescriptor
from google.protobuf.message import Message
from pydantic.json_schema import models_json_schema

from . import schemas
from .http_bodies import JSON, NPZ
from .http_problems import PROBLEM
from .http_streams import NDJSON, NPZ_FRAMES

Schema = dict[str, Any]

_ASSETS = Path(fastapi_offline.__file__).parent / "static"
_MESSAGE = "x-message"  # carries an answer's message from a route to the description
_LAST = "x-last-message"  # likewise of the last one of many
_ARCHIVE: Schema = {"schema": {"type": "string", "format": "binary"}}
_NUMBERS: Schema = {
    "description": "Nested lists of numbers, a number for an array without axes; words where not finite.",
    "anyOf": [
        {"type": "number"},
        {"enum": ["nan", "inf", "-inf"]},
        {"type": "array", "items": {"$ref": "#/components/schemas/Numbers"}},
    ],
}
_PROBLEM_SCHEMA: Schema = {
    "type": "object",
    "description": "RFC 9457 problem; `reason` is one of the protocol's error reasons.",
    "properties": {
        "type": {"type": "string"},
        "title": {"type": "string"},
        "status": {"type": "integer"},
        "detail": {"type": "string"},
        "reason": {"type": "string"},
        "argument": {"type": "string"},
        "call_id": {"type": "string"},
        "retry_after": {"type": "number", "description": "seconds after which the same call may succeed"},
    },
    "required": ["type", "title", "status", "detail", "reason"],
}
_PLAIN = {
    FieldDescriptor.CPPTYPE_STRING: "string",
    FieldDescriptor.CPPTYPE_BOOL: "boolean",
    FieldDescriptor.CPPTYPE_DOUBLE: "number",
    FieldDescriptor.CPPTYPE_INT32: "integer",
    FieldDescriptor.CPPTYPE_INT64: "integer",
}


def describe(
    answer: type[Message] | None = None,
    request: type[schemas.Body] | None = None,
    query: type[schemas.Body] | None = None,
    last: type[Message] | None = None,
) -> Schema:
    """Describe a route's bodies, which the route reads and writes by itself: they may be JSON or npz.

    Args:
        answer: the message that the answer mirrors; None for an answer without a body.
        request: the request's schema; None for a route without a body.
        query: the schema of the request's query; None for a route without one.
        last: the message that the last one of many answers mirrors, `answer` then being the others.
    """
    extra: Schema = {} if answer is None else {_MESSAGE: answer.DESCRIPTOR.full_name}
    if last is not None:
        extra[_LAST] = last.DESCRIPTOR.full_name
    if query is not None:
        extra["parameters"] = [
            {"name": name, "in": "query", "required": False, "schema": schema}
            for name, schema in query.model_json_schema()["properties"].items()
        ]
    if request is not None:
        content = {JSON: {"schema": _reference(request.__name__)}, NPZ: _ARCHIVE}
        extra["requestBody"] = {"required": True, "content": content}
    return extra


def install(app: FastAPI) -> None:
    """Serve the description and the page."""
    app.mount("/docs/assets", StaticFiles(directory=_ASSETS), name="docs-assets")

    @app.get("/docs", include_in_schema=False)
    async def docs() -> Response:
        return get_swagger_ui_html(
            openapi_url="/openapi.json",
            title="revolute",
            swagger_js_url="/docs/assets/swagger-ui-bundle.js",
            swagger_css_url="/docs/assets/swagger-ui.css",
            swagger_favicon_url="/docs/assets/favicon.png",
        )

    def openapi() -> Schema:
        if app.openapi_schema is None:
            app.openapi_schema = _describe(app)
        return app.openapi_schema

    app.openapi = openapi  # type: ignore[method-assign]


def _describe(app: FastAPI) -> Schema:
    """Build the description: the framework's, with our bodies and errors in it."""
    document = get_openapi(title=app.title, version=app.version, summary=app.summary, routes=app.routes)
    _, bodies = models_json_schema(
        [(kind, "validation") for kind in schemas.REQUESTS], ref_template="#/components/schemas/{model}"
    )
    messages: Schema = {}
    problem = {"description": "Problem", "content": {PROBLEM: {"schema": _reference("Problem")}}}
    for path, methods in document["paths"].items():
        for operation in methods.values():
            answers = operation["responses"]
            answers.pop("422", None)
            if path.startswith("/v1"):
                answers["default"] = problem
            if name := operation.pop(_MESSAGE, None):
                descriptor = descriptor_pool.Default().FindMessageTypeByName(name)
                success = next(status for status in answers if status.startswith("2"))
                schema, kinds = _add(descriptor, messages), (JSON, NPZ)
                if last := operation.pop(_LAST, None):
                    ending = _add(descriptor_pool.Default().FindMessageTypeByName(last), messages)
                    schema, kinds = {"anyOf": [schema, ending]}, (NDJSON, NPZ_FRAMES)
                answers[success]["content"] = {kinds[0]: {"schema": schema}, kinds[1]: _ARCHIVE}
    components = {**messages, **bodies["$defs"], "Numbers": _NUMBERS, "Problem": _PROBLEM_SCHEMA}
    document["components"] = {"schemas": components}
    return document


def _add(message: Descriptor, schemas_by_name: Schema) -> Schema:
    """Add a message's schema, and those of the messages in it, and return the reference to it."""
    if message.name == "Tensor":
        return _reference("Numbers")
    if message.name not in schemas_by_name:
        properties: Schema = {}
        schemas_by_name[message.name] = {"type": "object", "properties": properties}
        for field in message.fields:
            properties[field.name] = _field(field, schemas_by_name)
    return _reference(message.name)


def _field(field: FieldDescriptor, schemas_by_name: Schema) -> Schema:
    inner = field.message_type
    if inner is not None and inner.GetOptions().map_entry:
        values = _field(inner.fields_by_name["value"], schemas_by_name)
        return {"type": "object", "additionalProperties": values}
    one = _add(inner, schemas_by_name) if inner is not None else {"type": _PLAIN[field.cpp_type]}
    return {"type": "array", "items": one} if field.is_repeated else one


def _reference(name: str) -> Schema:
    return {"$ref": f"#/components/schemas/{name}"}

"""JSON schemas of the bodies, with the comments of the proto files as descriptions."""

from __future__ import annotations

import importlib.resources
import json
from collections.abc import Mapping
from functools import cache
from typing import Any

from google.protobuf.descriptor import Descriptor, FieldDescriptor
from google.protobuf.message import Message
from pydantic.json_schema import models_json_schema

from revolute.contract.errors import KINDS
from revolute.contract.loss import FORMS, MOMENTS, QUANTITIES
from revolute.contract.v1 import gradient_report_pb2
from revolute.contract.verbs import VERBS

from ..verbs import Body, body_of
from ..verbs.body import NUMBER_OR_NUMBERS

Schema = dict[str, Any]

_MOST_AXES = 5
"""Largest number of axes of an array in an answer, [batch, time, elements, entries, nv]."""

_REAL: Schema = {
    "description": "A number; a word where it is not finite.",
    "anyOf": [{"type": "number"}, {"type": "string", "enum": ["nan", "inf", "-inf"]}],
}
_PLAIN: dict[int, str] = {
    FieldDescriptor.CPPTYPE_STRING: "string",
    FieldDescriptor.CPPTYPE_BOOL: "boolean",
    FieldDescriptor.CPPTYPE_DOUBLE: "number",
    FieldDescriptor.CPPTYPE_INT32: "integer",
    FieldDescriptor.CPPTYPE_INT64: "integer",
}
_PROBLEM: Schema = {
    "type": "object",
    "description": "What failed (RFC 9457).",
    "properties": {
        "type": {"type": "string", "description": 'Always "about:blank".'},
        "title": {"type": "string", "description": "The reason in words."},
        "status": {"type": "integer", "description": "The HTTP status."},
        "detail": {
            "type": "string",
            "description": "One line: `<argument>: expected <what>, got <value>[ at <where>]; <what to do>`.",
        },
        "reason": {
            "type": "string",
            "enum": [kind.reason for kind in KINDS],
            "description": "Kind of failure, with this status where no other is due (405, 413, 415, 421): "
            + ", ".join(f"{kind.reason} {kind.http_status}" for kind in KINDS)
            + ".",
        },
        "argument": {"type": "string", "description": "What of the request is at fault, if anything is."},
        "call_id": {"type": "string", "description": "Id of the call in the server's log, as x-request-id."},
        "retry_after": {
            "type": "number",
            "description": "Seconds after which the same call may succeed, where the server knows.",
        },
    },
    "required": ["type", "title", "status", "detail", "reason"],
}


def reference(name: str) -> Schema:
    """Return a reference to a schema of the description."""
    return {"$ref": f"#/components/schemas/{name}"}


@cache
def comments() -> Mapping[str, str]:
    """Return the comments of the proto files by "Message", "Message.field" and "Service.Rpc"."""
    file = importlib.resources.files("revolute.contract.v1").joinpath("comments.json")
    found: dict[str, str] = json.loads(file.read_text(encoding="utf-8"))
    return found


def _bodies() -> list[type[Body]]:
    """Return the bodies of requests that have one over HTTP."""
    verbs = [verb for verb in VERBS.values() if verb.http_method not in ("GET", "DELETE")]
    return [body for verb in verbs if (body := body_of(verb)) is not None]


def request_schemas() -> Schema:
    """Return the schemas of the requests and of the objects in them, by name."""
    _, found = models_json_schema(
        [(kind, "validation") for kind in _bodies()], ref_template="#/components/schemas/{model}"
    )
    bodies: Schema = found["$defs"]
    bodies["ValueAndGradientInputs"]["properties"]["loss"] = reference("Loss")
    for name, body in bodies.items():
        message = name if name in comments() else f"{name}Request"
        body["description"] = comments()[message]
        for field, schema in body["properties"].items():
            schema["description"] = comments()[f"{message}.{field}"]
    return {**bodies, "Loss": _loss(), "LossTerm": _loss_term()}


def common_schemas() -> Schema:
    """Return the schemas that many bodies refer to."""
    return {"Numbers": _numbers(), "Real": _REAL, "Problem": _PROBLEM}


def add_answer(message: type[Message] | Descriptor, schemas_by_name: Schema) -> Schema:
    """Add the schemas of a message and of the messages in it, and return a reference to it."""
    descriptor = message if isinstance(message, Descriptor) else message.DESCRIPTOR
    if descriptor.name == "Tensor":
        return reference("Numbers")
    if descriptor.name == "Blob":
        return {"type": "string"}
    if descriptor.name not in schemas_by_name:
        properties: Schema = {}
        schemas_by_name[descriptor.name] = {
            "type": "object",
            "description": comments()[descriptor.name],
            "properties": properties,
            "required": [field.name for field in descriptor.fields if not field.has_presence],
        }
        for field in descriptor.fields:
            text = comments()[f"{descriptor.name}.{field.name}"]
            properties[field.name] = {**_answer_field(field, schemas_by_name), "description": text}
    return reference(descriptor.name)


def _numbers() -> Schema:
    """Return the schema of an array; it is not recursive, because client generators cannot handle that."""
    shapes = [reference("Real")]
    for _ in range(_MOST_AXES):
        shapes.append({"type": "array", "items": shapes[-1]})
    return {"description": "Nested lists of numbers, or a number for an array without axes.", "anyOf": shapes}


def _answer_field(field: Any, schemas_by_name: Schema) -> Schema:
    inner = field.message_type
    if inner is not None and inner.GetOptions().map_entry:
        values = _answer_field(inner.fields_by_name["value"], schemas_by_name)
        return {"type": "object", "additionalProperties": values}
    one = add_answer(inner, schemas_by_name) if inner is not None else _plain(field)
    return {"type": "array", "items": one} if field.is_repeated else one


def _plain(field: Any) -> Schema:
    """Return the schema of a scalar; numbers of a gradient report may be NaN or infinite."""
    if field.cpp_type == FieldDescriptor.CPPTYPE_DOUBLE and field.file == gradient_report_pb2.DESCRIPTOR:
        return reference("Real")
    return {"type": _PLAIN[field.cpp_type]}


def _loss() -> Schema:
    terms = {"type": "array", "items": reference("LossTerm"), "minItems": 1}
    return _strict("Loss", {"terms": terms}, required=["terms"])


def _loss_term() -> Schema:
    """Return the schema of a term; in JSON its `index` is a plain list."""
    entries: Schema = {"type": "array", "items": {"type": "integer", "minimum": 0}, "uniqueItems": True}
    times: Schema = {"type": "array", "items": {"type": "integer"}, "minItems": 1, "uniqueItems": True}
    fields = {
        "quantity": {"type": "string", "enum": list(QUANTITIES)},
        "weight": {**NUMBER_OR_NUMBERS, "default": 1.0},
        "target": {**NUMBER_OR_NUMBERS, "default": 0.0},
        "when": {"type": "string", "enum": list(MOMENTS), "default": MOMENTS[0]},
        "index": {"anyOf": [entries, {"type": "null"}], "default": None},
        "form": {"type": "string", "enum": list(FORMS), "default": FORMS[0]},
        "times": {"anyOf": [times, {"type": "null"}], "default": None},
        "elements": {"type": "array", "items": {"type": "string"}, "default": []},
        "relative_to": {"anyOf": [{"type": "string"}, {"type": "null"}], "default": None},
    }
    return _strict("LossTerm", fields, required=["quantity"])


def _strict(message: str, fields: Schema, required: list[str]) -> Schema:
    return {
        "type": "object",
        "description": comments()[message],
        "properties": {
            name: {**schema, "description": comments()[f"{message}.{name}"]}
            for name, schema in fields.items()
        },
        "required": required,
        "additionalProperties": False,
    }

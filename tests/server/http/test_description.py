"""The OpenAPI description: complete, described by the proto files, with examples that the server answers."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import jsonschema_rs
import pytest

from revolute.contract.verbs import VERBS
from revolute_server.verbs import body_of
from revolute_server.verbs.body import EXAMPLE_MODEL
from revolute_server.verbs.models import ModelSource
from revolute_server.verbs.trajectories import RolloutInputs
from testbed.wire import HttpWire

PROTO = Path(__file__).parents[3] / "proto/revolute/v1"


@pytest.fixture(scope="module")
def description(json_wire: HttpWire) -> dict[str, Any]:
    found: dict[str, Any] = json_wire.client.get("/openapi.json").json()
    return found


def _operations(description: dict[str, Any]) -> Iterator[tuple[str, str, dict[str, Any]]]:
    for path, methods in description["paths"].items():
        for method, operation in methods.items():
            if path.startswith("/v1"):
                yield method.upper(), path, operation


def _check(description: dict[str, Any], schema: dict[str, Any], document: Any) -> None:
    """Compare a document with a schema of the description."""
    whole = {"components": description["components"], **schema}
    jsonschema_rs.Draft202012Validator(whole).validate(document)


def test_every_field_and_every_parameter_is_described(description: dict[str, Any]) -> None:
    bare = [
        f"{name}.{field}"
        for name, schema in description["components"]["schemas"].items()
        for field, inner in schema.get("properties", {}).items()
        if not inner.get("description")
    ]
    bare += [
        f"{path} {parameter['name']}"
        for _, path, operation in _operations(description)
        for parameter in operation.get("parameters", ())
        if parameter["in"] == "query" and not parameter.get("description")
    ]
    assert not bare


def test_fields_are_described_as_in_the_proto_files(description: dict[str, Any]) -> None:
    """Of requests and answers alike, read from the files as text."""
    text = " ".join("".join(path.read_text() for path in PROTO.glob("*.proto")).replace("//", " ").split())
    schemas = description["components"]["schemas"]
    for name, field in (
        ("Cotangents", "times"),
        ("LossTerm", "when"),
        ("ModelOptions", "margin"),
        ("CreateSession", "lease"),
        ("InputCheck", "verdict"),
        ("Trajectory", "diverged_step"),
        ("Limits", "queue"),
    ):
        described = schemas[name]["properties"][field]["description"]
        assert len(described) > 20
        assert described in text, (name, field)


def test_operations_are_named_like_their_rpcs(description: dict[str, Any]) -> None:
    names = [operation["operationId"] for *_, operation in _operations(description)]
    assert len(set(names)) == len(names)
    assert {"RegisterModel", "Step", "Jacobian", "SessionJacobian", "ValueAndGradient"} <= set(names)


def test_every_operation_may_end_as_a_problem_of_a_known_reason(description: dict[str, Any]) -> None:
    for *_, operation in _operations(description):
        problem = operation["responses"]["default"]["content"]["application/problem+json"]["schema"]
        assert problem == {"$ref": "#/components/schemas/Problem"}
    table = (PROTO / "error.proto").read_text()
    reasons = description["components"]["schemas"]["Problem"]["properties"]["reason"]["enum"]
    listed = [
        line.split()[1] for line in table.splitlines() if line.startswith("//   ") and line[5].isupper()
    ]
    assert sorted(reasons) == sorted(listed)


def test_an_array_without_axes_may_be_a_number(description: dict[str, Any]) -> None:
    for loss in ({"quantity": "qpos", "target": 1}, {"quantity": "qpos", "target": [[1.0]]}):
        _check(description, {"$ref": "#/components/schemas/LossTerm"}, loss)
    with pytest.raises(jsonschema_rs.ValidationError):
        _check(description, {"$ref": "#/components/schemas/LossTerm"}, {"quantity": "qpos", "wieght": 1})


def test_examples_are_answered_as_described(description: dict[str, Any], json_wire: HttpWire) -> None:
    client = json_wire.client
    model_id = client.post("/v1/models", json=dict(ModelSource.example)).raise_for_status().json()["model_id"]
    session = {"model_id": model_id, "batch": 2}
    trajectory = {**RolloutInputs.example, "model_id": model_id}
    ids = {
        "model_id": model_id,
        "session_id": client.post("/v1/sessions", json=session).raise_for_status().json()["session_id"],
        "trajectory_id": client.post("/v1/trajectories", json=trajectory).json()["trajectory_id"],
    }
    seen = set()
    for method, path, operation in _operations(description):
        if "requestBody" not in operation:
            continue
        body = operation["requestBody"]["content"]["application/json"]
        document = json.loads(json.dumps(body["example"]).replace(EXAMPLE_MODEL, model_id))
        _check(description, body["schema"], document)
        response = client.request(method, path.format(**ids), json=document)
        described = operation["responses"].get(str(response.status_code))
        assert described, response.text
        kind, content = next(iter(described["content"].items()))
        assert response.headers["content-type"] == kind
        lines = response.text.splitlines() if kind == "application/x-ndjson" else [response.text]
        for line in lines:
            _check(description, content["schema"], json.loads(line))
        seen.add(body["schema"]["$ref"].rpartition("/")[2])
    with_body = [verb for verb in VERBS.values() if verb.http_method not in ("GET", "DELETE")]
    bodies = [body for verb in with_body if (body := body_of(verb))]
    assert seen == {body.__name__ for body in bodies}


def test_no_schema_holds_itself(description: dict[str, Any]) -> None:
    """A type that names itself does not compile in every language that clients are generated in."""
    held = {
        name: set(re.findall(r'"#/components/schemas/(\w+)"', json.dumps(schema)))
        for name, schema in description["components"]["schemas"].items()
    }
    assert "LossTerm" in held["Loss"]
    while leaves := [name for name, inner in held.items() if not inner & set(held)]:
        for name in leaves:
            del held[name]
    assert not held

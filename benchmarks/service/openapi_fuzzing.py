"""Runs schemathesis on the server's own OpenAPI description, with ids and arrays that reach the engine."""

from __future__ import annotations

import copy
import dataclasses
import json
import re
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

import httpx

from .seeds import CART

CHECKS = (
    "not_a_server_error",
    "status_code_conformance",
    "content_type_conformance",
    "response_headers_conformance",
    "response_schema_conformance",
    "allow_header_conformance",
)
"""What is judged. Whether a request that fits the schema is accepted is not: shapes of arrays depend on the
model, which a schema cannot say."""

_COUNTS = ("batch", "steps", "directions")
"""Numbers that say how much is to be computed; with 2^63 steps a call would run until its client goes."""

_NUMBER = {"type": "number", "minimum": -10, "maximum": 10}
_ROW = {"type": "array", "items": _NUMBER, "minItems": 1, "maxItems": 3}


@dataclasses.dataclass
class Report:
    """What a run found.

    Attributes:
        cases: requests sent.
        failures: one line each.
        output: what schemathesis printed.
    """

    cases: int
    failures: list[str]
    output: str


def fuzz(address: str, examples: int, seed: int, *, sharpen: bool, seconds: float) -> Report:
    """Send requests made from the description.

    Args:
        address: the server, "http://host:port".
        examples: most requests of one operation, besides those of schemathesis's own coverage.
        seed: of everything random.
        sharpen: whether ids are of things that are there, and arrays of the shapes that models have.
        seconds: when to give up.

    Raises:
        RuntimeError: schemathesis did not run to its end.
    """
    schema = httpx.get(f"{address}/openapi.json").raise_for_status().json()
    if sharpen:
        schema = sharpened(schema, _ids(address))
    with tempfile.TemporaryDirectory() as folder:
        description, report = Path(folder, "openapi.json"), Path(folder, "report.json")
        description.write_text(json.dumps(schema))
        command = [sys.executable, "-c", "from schemathesis.cli import schemathesis; schemathesis()", "run"]
        options = {
            "--url": address,
            "--phases": "coverage,fuzzing",
            "--max-examples": examples,
            "--checks": ",".join(CHECKS),
            "--seed": seed,
            "--generation-database": "none",
            "--request-timeout": 30,
            "--report": "json",
            "--report-json-path": report,
        }
        flags = [text for name, value in options.items() for text in (name, str(value))]
        done = subprocess.run(
            [*command, str(description), *flags, "--no-color", "--no-shrink", "--continue-on-failure"],
            capture_output=True,
            text=True,
            timeout=seconds,
            check=False,
            cwd=folder,
        )
        if not report.exists():
            raise RuntimeError(f"schemathesis ended with {done.returncode}: {done.stdout}{done.stderr}")
        return _read(json.loads(report.read_text()), done.stdout)


def sharpened(schema: dict[str, Any], ids: dict[str, str]) -> dict[str, Any]:
    """Return the description with ids of things that are there, and with arrays of small numbers.

    Args:
        schema: the OpenAPI description.
        ids: ids by name of field or path parameter.
    """
    schema = copy.deepcopy(schema)
    for operations in schema["paths"].values():
        for method, operation in operations.items():
            # what is deleted is made up, or the rest would find nothing
            known = {} if method == "delete" else ids
            for parameter in operation.get("parameters", ()):
                if parameter["name"] in known:
                    parameter["schema"] = {"type": "string", "enum": [known[parameter["name"]]]}
    kinds = schema["components"]["schemas"]
    for name in _requested(schema):
        _sharpen(kinds[name], ids)
    return schema


def _requested(schema: dict[str, Any]) -> set[str]:
    """Return the names of the schemas that requests are made of."""
    bodies = [
        operation["requestBody"]
        for operations in schema["paths"].values()
        for operation in operations.values()
        if "requestBody" in operation
    ]
    found: set[str] = set()
    waiting = json.dumps(bodies)
    while names := set(re.findall(r'"#/components/schemas/(\w+)"', waiting)) - found:
        found |= names
        waiting = json.dumps([schema["components"]["schemas"][name] for name in names])
    return found


def _sharpen(node: Any, ids: dict[str, str]) -> None:
    if isinstance(node, list):
        for entry in node:
            _sharpen(entry, ids)
    elif isinstance(node, dict):
        for name in node.get("properties", {}):
            if name in ids:
                node["properties"][name] = {"type": "string", "enum": [ids[name]]}
            elif name in _COUNTS:
                node["properties"][name] = {"type": "integer", "minimum": 1, "maximum": 8}
        if node.get("type") == "array" and node.get("items") == {}:
            del node["type"], node["items"]
            node["anyOf"] = [_ROW, {"type": "array", "items": _ROW, "minItems": 1, "maxItems": 4}]
        for value in node.values():
            _sharpen(value, ids)


def _ids(address: str) -> dict[str, str]:
    """Register a model, open a session and roll out a trajectory; return their ids."""
    with httpx.Client(base_url=address) as client:
        model = client.post("/v1/models", json={"text": CART.decode()}).raise_for_status().json()
        ids = {"model_id": model["model_id"]}
        session = client.post("/v1/sessions", json={**ids, "batch": 1}).raise_for_status().json()
        start = {"qpos": [0.0], "qvel": [0.0], "ctrl": [[1.0]] * 3}
        trajectory = client.post("/v1/trajectories", json={**ids, **start}).raise_for_status().json()
        return {**ids, "session_id": session["session_id"], "trajectory_id": trajectory["trajectory_id"]}


def _read(report: dict[str, Any], output: str) -> Report:
    failures = [f"{failure['title']}: {', '.join(failure['operations'])}" for failure in report["failures"]]
    failures += [json.dumps(error) for error in report["errors"]]
    if not report["complete"]:
        failures.append(f"it stopped early: {report['stop_reason']}")
    return Report(report["test_cases"]["generated"], failures, output)

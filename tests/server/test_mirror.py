"""HTTP mirrors gRPC one for one under /v1: the server's OpenAPI description against the proto files."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from revolute.contract.v1 import model_pb2, server_pb2, session_pb2, trajectory_pb2
from revolute.contract.verbs import VERBS
from revolute_server.access.admission import Calls
from revolute_server.access.tokens import Access
from revolute_server.domain.service import Service
from revolute_server.http.routes import create_app
from revolute_server.settings import Settings
from revolute_server.verbs import Verbs

FILES = (model_pb2, session_pb2, trajectory_pb2, server_pb2)
RPCS = {
    f"{service.name}.{method.name}": method
    for file in FILES
    for service in file.DESCRIPTOR.services_by_name.values()
    for method in service.methods
}


@pytest.fixture(scope="module")
def description() -> dict[str, Any]:
    calls = Calls(Access(None))
    return create_app(Verbs(Service(Settings(workers=1, threads=1))), calls).openapi()


@pytest.fixture(scope="module")
def operations(description: dict[str, Any]) -> list[tuple[str, str, str, dict[str, Any]]]:
    """Return the rpc, method, path and description of each route."""
    return [
        (f"{operation['tags'][0]}.{operation['summary'].replace(' ', '')}", method.upper(), path, operation)
        for path, methods in description["paths"].items()
        for method, operation in methods.items()
        if path.startswith("/v1/")
    ]


def test_every_rpc_has_one_route_and_every_route_is_an_rpc(operations: Any) -> None:
    assert sorted(rpc for rpc, *_ in operations) == sorted(RPCS)


def test_the_client_knows_the_servers_routes(operations: Any) -> None:
    """What the Python client calls is what the server has: method, path and the id in it."""
    served = {(method, path): rpc for rpc, method, path, _ in operations}
    for verb, route in VERBS.items():
        path = route.http_path.format(f"{{{route.id_field}}}") if route.id_field else route.http_path
        service, _, name = served[route.http_method, path].partition(".")
        session_verb = service == "SessionService" and name == "Jacobian"
        assert (f"Session{name}" if session_verb else name) == verb
    assert len(VERBS) == len(served)


def test_the_conformance_suite_calls_every_rpc() -> None:
    folder = Path(__file__).parents[1] / "conformance"
    text = "".join(path.read_text() for path in folder.glob("*.py"))
    for rpc in RPCS:
        name = "SessionJacobian" if rpc == "SessionService.Jacobian" else rpc.partition(".")[2]
        assert f'"{name}"' in text or f".{name}(" in text, rpc


def test_bodies_have_the_fields_of_their_messages(description: Any, operations: Any) -> None:
    """Those of the message that the rpc's first part carries, less the id that stands in the path."""
    schemas = description["components"]["schemas"]
    compared = 0
    for rpc, _, path, operation in operations:
        if "requestBody" not in operation:
            continue
        reference = operation["requestBody"]["content"]["application/json"]["schema"]["$ref"]
        message = RPCS[rpc].input_type
        if "start" in message.fields_by_name:
            message = message.fields_by_name["start"].message_type
        in_path = {part.strip("{}") for part in path.split("/") if part.startswith("{")}
        fields = {field.name for field in message.fields} - in_path
        assert set(schemas[reference.rpartition("/")[2]]["properties"]) == fields, rpc
        compared += 1
    assert compared >= 10

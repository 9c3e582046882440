"""One table of errors: the same class, argument and text over gRPC, JSON and npz."""

from __future__ import annotations

import numpy as np
import pytest

from revolute.contract.errors import (
    ArgumentError,
    InternalError,
    LimitError,
    ModelError,
    NotFoundError,
    RevoluteError,
)
from revolute_server.observe.incidents import public_error
from testbed.server_process import ServerProcess
from testbed.wire import GrpcWire, HttpWire, problem_of

from .conftest import Wire

ZERO = np.zeros(1)
STATE = {"qpos": ZERO, "qvel": ZERO}

BAD_REQUESTS = {
    "unknown parameter in wrt": ("ValueAndGradient", {"wrt": ["bogus"]}, ArgumentError, "wrt"),
    "control of the wrong length": ("Rollout", {**STATE, "ctrl": np.zeros((4, 3))}, ArgumentError, "ctrl"),
    "state of the wrong size": (
        "Rollout",
        {**STATE, "qpos": np.zeros(5), "ctrl": np.zeros((4, 1))},
        ArgumentError,
        "qpos",
    ),
    "infinite control": ("Rollout", {**STATE, "ctrl": np.full((4, 1), np.inf)}, ArgumentError, "ctrl"),
    "empty batch": ("Rollout", {**STATE, "ctrl": np.zeros((0, 4, 1))}, ArgumentError, "ctrl"),
    "unknown parameter": (
        "Rollout",
        {**STATE, "ctrl": np.zeros((4, 1)), "params": {"mass": np.ones(2)}},
        ArgumentError,
        "params",
    ),
    "empty session": ("CreateSession", {"batch": 0}, ArgumentError, "batch"),
}


@pytest.mark.parametrize("case", BAD_REQUESTS)
def test_bad_requests_name_the_field(wire: Wire, cart: str, case: str) -> None:
    verb, document, kind, argument = BAD_REQUESTS[case]
    document = {"model_id": cart, **document}
    if verb == "ValueAndGradient":
        wrt = document.pop("wrt")
        rollout = {**document, **STATE, "ctrl": np.zeros((4, 1))}
        document = {"inputs": rollout, "loss": {"terms": [{"quantity": "qpos"}]}, "wrt": wrt}
    error, code = wire.error(verb, document)
    assert type(error) is kind
    assert (error.argument or "").startswith(argument), error.argument
    assert str(error).startswith(argument)
    assert "expected" in str(error)
    assert code in ("INVALID_ARGUMENT", "400")


@pytest.mark.parametrize(
    ("source", "argument"),
    [
        ({"text": "this is no XML"}, None),
        ({"text": "<mujoco><worldbody><body><joint type='bogus'/></body></worldbody></mujoco>"}, None),
    ],
)
def test_models_that_do_not_compile(wire: Wire, source: dict[str, str], argument: str | None) -> None:
    error, code = wire.error("RegisterModel", source)
    assert type(error) is ModelError
    assert code in ("INVALID_ARGUMENT", "422")


@pytest.mark.parametrize("timestep", [-0.001, 0.0])
def test_a_timestep_has_to_be_positive(wire: Wire, timestep: float) -> None:
    error, _ = wire.error("RegisterModel", {"builtin": "cartpole", "options": {"timestep": timestep}})
    assert type(error) is ArgumentError
    assert "timestep" in str(error)


@pytest.mark.parametrize("steps", [-1])
def test_negative_steps(wire: Wire, cart: str, steps: int) -> None:
    session_id = wire.call("CreateSession", {"model_id": cart, "batch": 1})["session_id"]
    error, _ = wire.error("Step", {"session_id": session_id, "ctrl": ZERO, "steps": steps})
    assert type(error) is ArgumentError
    assert "steps" in str(error)
    assert "-1" in str(error)
    assert wire.call("GetState", {"session_id": session_id})["step_count"] == 0


def test_a_mesh_that_was_not_sent_is_named(wire: Wire) -> None:
    text = (
        '<mujoco><asset><mesh name="foot" file="foot.stl"/></asset>'
        '<worldbody><geom type="mesh" mesh="foot"/></worldbody></mujoco>'
    )
    error, _ = wire.error("RegisterModel", {"text": text, "name": "robot.xml"})
    assert type(error) is ModelError
    assert "foot.stl" in str(error)
    assert "robot.xml" in str(error)


@pytest.mark.parametrize("path", ["/etc/hostname", "../../etc/passwd", "file:///etc/hostname"])
def test_no_path_that_a_client_names_is_opened(wire: Wire, path: str) -> None:
    text = f'<mujoco><include file="{path}"/></mujoco>'
    error, _ = wire.error("RegisterModel", {"text": text})
    assert isinstance(error, (ModelError, NotFoundError))
    assert isinstance(wire.error("RegisterModel", {"text": path})[0], (ModelError, NotFoundError))


def test_the_texts_are_the_same_on_every_transport(
    grpc_wire: GrpcWire, json_wire: HttpWire, npz_wire: HttpWire, cart: str
) -> None:
    document = {"model_id": cart, **STATE, "ctrl": np.zeros((4, 3))}
    texts = {str(each.error("Rollout", document)[0]) for each in (grpc_wire, json_wire, npz_wire)}
    assert len(texts) == 1
    document = {"trajectory_id": "0" * 32}
    texts = {str(each.error("GetTrajectory", document)[0]) for each in (grpc_wire, json_wire, npz_wire)}
    assert len(texts) == 1


@pytest.mark.parametrize(
    ("method", "path", "status"), [("GET", "/nope", 404), ("PUT", "/livez", 405), ("GET", "/v1/models/", 404)]
)
def test_the_frameworks_own_errors_are_problems_too(
    json_wire: HttpWire, method: str, path: str, status: int
) -> None:
    response = json_wire.client.request(method, path)
    assert response.status_code == status
    problem_of(response)


def test_a_wrong_method_names_those_that_the_path_has(json_wire: HttpWire) -> None:
    for path, methods in (
        ("/v1/models", {"GET", "POST"}),
        ("/v1/models/x", {"DELETE", "GET"}),
        ("/livez", {"GET"}),
    ):
        response = json_wire.client.request("PATCH", path)
        assert response.status_code == 405
        assert set(response.headers["allow"].split(", ")) - {"HEAD"} == methods


def test_an_unknown_body_type_is_415(json_wire: HttpWire) -> None:
    response = json_wire.client.post("/v1/trajectories", content=b"a,b", headers={"content-type": "text/csv"})
    assert response.status_code == 415
    assert problem_of(response).argument == "content-type"


def test_a_body_without_a_type_is_415(json_wire: HttpWire) -> None:
    request = json_wire.client.build_request("POST", "/v1/models", content=b'{"builtin": "cartpole"}')
    del request.headers["content-type"]
    assert json_wire.client.send(request).status_code == 415


@pytest.mark.parametrize(
    "host", ["evil.example", "evil.example:8000", "10.0.0.1", "127.0.0.1.evil.example", "", "[::2]"]
)
def test_names_that_are_not_loopback_are_refused(json_wire: HttpWire, host: str) -> None:
    response = json_wire.client.get("/v1/server", headers={"host": host})
    assert response.status_code == 421
    assert problem_of(response).argument == "host"


@pytest.mark.parametrize("host", ["localhost", "LOCALHOST:1", "127.0.0.1", "127.9.9.9:80", "[::1]:5"])
def test_loopback_names_are_served(json_wire: HttpWire, host: str) -> None:
    assert json_wire.client.get("/v1/server", headers={"host": host}).status_code == 200


@pytest.mark.parametrize(
    ("body", "argument"),
    [
        (b"{", "body"),
        (b"[1, 2]", "body"),
        (b"\xff\xfe", "body"),
        (b'{"model_id": "a", "model_id": "b"}', "model_id"),
        (b'{"model_id": 3, "qpos": [0], "qvel": [0], "ctrl": [[0]]}', "model_id"),
        (b'{"model_id": "a", "qpos": [0], "qvel": [0]}', "ctrl"),
        (b'{"model_id": "a", "qpos": [0], "qvel": [0], "ctrl": [[0]], "controls": 1}', "controls"),
        (b'{"model_id": ' + b"[" * 30 + b"]" * 30 + b"}", "model_id"),
        (b'{"model_id": ' + b"9" * 5000 + b"}", "model_id"),
    ],
)
def test_malformed_json_names_the_field(json_wire: HttpWire, body: bytes, argument: str) -> None:
    response = json_wire.client.post("/v1/trajectories", content=body)
    assert response.status_code == 400
    assert problem_of(response).argument == argument


@pytest.mark.parametrize("body", [b"[" * 100000, b'{"model_id": ' + b"[" * 900 + b"]" * 900 + b"}"])
def test_json_too_deep_is_beyond_a_limit(json_wire: HttpWire, body: bytes) -> None:
    response = json_wire.client.post("/v1/trajectories", content=body)
    assert response.status_code == 429
    error = problem_of(response)
    assert error.argument == "body" and "--max-json-depth 32" in str(error)


def test_a_fault_is_logged_under_an_incident_and_says_nothing(caplog: pytest.LogCaptureFixture) -> None:
    found = public_error(KeyError("/srv/secret/path"), "Rollout")
    assert type(found) is InternalError
    assert "secret" not in str(found)
    incident = str(found).rpartition("incident ")[2].split(",")[0]
    assert incident in caplog.text
    assert "/srv/secret/path" in caplog.text


def test_errors_of_revolute_pass_unchanged() -> None:
    error = LimitError("queue: expected room, got none", argument="queue")
    assert public_error(error, "Rollout") is error
    assert isinstance(public_error(MemoryError(), "Rollout"), LimitError)


def test_the_server_goes_on_after_all_this(server: ServerProcess, wire: Wire) -> None:
    assert server.process.poll() is None
    assert wire.call("GetServerInfo", {})["version"]
    assert "Traceback" not in server.log.read_text()


def test_an_error_is_never_an_answer(wire: Wire) -> None:
    error, _ = wire.error("GetModel", {"model_id": "x" * 5000})
    assert isinstance(error, RevoluteError)
    assert len(str(error)) < 1000

"""Case E14: errors carry their cause, over every transport; unknown names are not zeros."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import httpx
import numpy as np
import pytest

import revolute
from testbed.server_process import ServerProcess
from testbed.wire import GrpcWire

FOLDER = Path(__file__).parent / "E14"
CART = (FOLDER / "cart.xml").read_text()
STIFF = CART.replace("<joint", '<joint stiffness="1e6"')
"""A stiff spring; with h = 10 s the state grows by 1e8 a step."""

Simulator, Model = revolute.Simulator, revolute.ModelHandle
LOSS = revolute.Loss([revolute.Term("qpos")])
START: tuple[Any, Any] = ([0.0], [0.0])


def _gradient(simulator: Simulator, model: Model, name: str) -> None:
    simulator.value_and_gradient(model, *START, np.ones((4, 1)), LOSS, wrt=[name])


REQUESTS: dict[str, tuple[str, str, Callable[[Simulator, Model], Any]]] = {
    "gradient by an unknown name": ("wrt", "'joint_damping'", lambda s, m: _gradient(s, m, "joint_damping")),
    "gradient by an integer": ("wrt", "'iterations'", lambda s, m: _gradient(s, m, "iterations")),
    "control of the wrong length": ("ctrl", "[4, 3]", lambda s, m: s.rollout(m, *START, np.ones((4, 3)))),
    "model that does not parse": ("model", "XML text", lambda s, m: s.load_model(CART[:-20])),
    "q of the wrong size": ("qpos", "[2]", lambda s, m: s.rollout(m, [0.0, 0.0], [0.0], np.ones((4, 1)))),
    "negative h": ("timestep", "-0.001", lambda s, m: s.load_model(CART, timestep=-0.001)),
    "N = -1": ("steps", "-1", lambda s, m: s.session(m).step([1.0], steps=-1)),
}


@pytest.mark.parametrize("request_name", REQUESTS)
def test_cause_is_named(request_name: str, simulators: dict[str, Simulator]) -> None:
    argument, got, make = REQUESTS[request_name]
    texts = []
    for simulator in simulators.values():
        with pytest.raises(ValueError) as caught:
            make(simulator, simulator.load_model(CART))
        assert isinstance(caught.value, revolute.RevoluteError)
        assert (caught.value.argument or "") == argument
        texts.append(str(caught.value))
    assert len(set(texts)) == 1
    assert got in texts[0] and "expected" in texts[0]
    assert ("XML text" if argument == "model" else argument) in texts[0]
    assert "Traceback" not in texts[0] and ".py" not in texts[0] and "\n" not in texts[0]


def test_no_steps(simulator: Simulator) -> None:
    model = simulator.load_model(CART)
    trajectory = simulator.rollout(model, [0.5], [2.0], np.zeros((0, 1)))
    assert (trajectory.qpos.tolist(), trajectory.qvel.tolist()) == ([[0.5]], [[2.0]])
    gradient = trajectory.backward([[3.0]], [[4.0]])
    assert (gradient.qpos.tolist(), gradient.qvel.tolist()) == ([3.0], [4.0])
    assert gradient.ctrl.shape == (0, 1)


def test_diverging_run(simulator: Simulator) -> None:
    model = simulator.load_model(STIFF, timestep=10.0)
    trajectory = simulator.rollout(model, [1.0], [0.0], np.zeros((200, 1)))
    step = int(trajectory.diverged_step)
    assert int(trajectory.status) == 1 and 0 < step < 200
    # the first bad step is the one whose result is not finite
    assert np.isfinite(trajectory.qpos[: step + 1]).all() and np.isnan(trajectory.qpos[step + 1 :]).all()
    with pytest.raises(revolute.DivergedError, match=rf"diverged first at step {step} in environment 0"):
        trajectory.backward(np.ones((201, 1)))


@pytest.fixture(scope="module")
def http(server: ServerProcess) -> Iterator[httpx.Client]:
    with httpx.Client(base_url=server.http, trust_env=False) as client:
        yield client


@pytest.fixture(scope="module")
def model_id(http: httpx.Client) -> str:
    return http.post("/v1/models", json={"text": CART}).json()["model_id"]


def _bodies(model_id: str) -> dict[str, tuple[str, dict[str, Any], int, str]]:
    """Return path, body, status and named field of requests that cannot be carried out."""
    start = {"model_id": model_id, "qpos": [0.0], "qvel": [0.0]}
    loss = {"terms": [{"quantity": "qpos"}]}
    one = {**start, "ctrl": [[1.0]]}
    gradient = "/v1/value-and-gradient"
    return {
        "name": (gradient, {"inputs": one, "loss": loss, "wrt": ["damping"]}, 400, "wrt"),
        "integer": (gradient, {"inputs": one, "loss": loss, "wrt": ["iterations"]}, 400, "wrt"),
        "not a name": (gradient, {"inputs": one, "loss": loss, "wrt": [3]}, 400, "wrt"),
        "control": ("/v1/trajectories", {**start, "ctrl": [[1.0, 2.0, 3.0]]}, 400, "ctrl"),
        "no control": ("/v1/trajectories", start, 400, "ctrl"),
        "model": ("/v1/models", {"text": CART[:-20]}, 422, "XML text"),
        "qpos": ("/v1/trajectories", {**one, "qpos": [0.0, 0.0]}, 400, "qpos"),
        "timestep": ("/v1/models", {"text": CART, "options": {"timestep": -1e-3}}, 400, "timestep"),
        "unknown field": ("/v1/trajectories", {**one, "horizon": 3}, 400, "horizon"),
        "unknown model": ("/v1/trajectories", {**one, "model_id": "none"}, 404, "model_id"),
        "unknown path": ("/v1/trajectory", one, 404, "path"),
    }


@pytest.mark.parametrize("name", _bodies(""))
def test_http_errors_are_problem_documents(name: str, http: httpx.Client, model_id: str) -> None:
    path, body, status, field = _bodies(model_id)[name]
    response = http.post(path, json=body)
    assert response.headers["content-type"] == "application/problem+json"
    problem = json.loads(response.content, parse_constant=pytest.fail)
    assert response.status_code == problem["status"] == status, problem
    assert field in problem["detail"] and "expected" in problem["detail"]
    assert {"type", "title", "reason"} <= set(problem)
    assert "Traceback" not in response.text and ".py" not in response.text


def test_body_that_is_not_json(http: httpx.Client) -> None:
    response = http.post("/v1/models", content=b"{", headers={"Content-Type": "application/json"})
    assert response.status_code == 400
    assert response.json()["reason"] == "INVALID_ARGUMENT"


def test_grpc_codes(server: ServerProcess, model_id: str) -> None:
    rollout = {"model_id": model_id, "qpos": np.zeros(1), "qvel": np.zeros(1), "ctrl": np.ones((4, 3))}
    wire = GrpcWire(server.grpc_target)
    try:
        for verb, request, code in (
            ("Rollout", rollout, "INVALID_ARGUMENT"),
            ("Rollout", {**rollout, "model_id": "none"}, "NOT_FOUND"),
            ("RegisterModel", {"text": CART[:-20]}, "INVALID_ARGUMENT"),
        ):
            error, found = wire.error(verb, request)
            assert found == code
            assert "expected" in str(error) and "Traceback" not in str(error)
    finally:
        wire.close()

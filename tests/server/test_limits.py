"""Limits: refused at once, with the limit, the size and the flag in the text, and the server usable after."""

from __future__ import annotations

import base64
import threading
from collections.abc import Iterator

import grpc
import numpy as np
import pytest

from revolute.contract.codec.documents import fill_message
from revolute.contract.codec.npz import pack_npz
from revolute.contract.codec.parts import to_parts
from revolute.contract.errors import ArgumentError, LimitError
from revolute.contract.v1 import trajectory_pb2
from testbed.cart import CART
from testbed.server_process import running_server
from testbed.stubs import Stub
from testbed.wire import GrpcWire, HttpWire, problem_of

FLAGS = (
    # what is kept elsewhere takes no memory
    *("--store", "memory:"),
    *("--max-models", "2", "--max-sessions", "2", "--max-trajectories", "2"),
    *("--max-model", "8KiB", "--max-mesh", "4KiB", "--max-batch", "400000"),
    *("--max-request", "1MiB", "--max-json", "16KiB", "--memory", "8MiB", "--workers", "1", "--queue", "1"),
)
Wire = GrpcWire | HttpWire


@pytest.fixture(scope="module")
def wires() -> Iterator[dict[str, Wire]]:
    with running_server(*FLAGS) as small:
        ways: dict[str, Wire] = {
            "grpc": GrpcWire(small.grpc_target),
            "json": HttpWire(small.http, npz=False),
            "npz": HttpWire(small.http, npz=True),
        }
        yield ways
        for way in ways.values():
            way.close()


@pytest.fixture(params=["grpc", "json", "npz"])
def wire(request: pytest.FixtureRequest, wires: dict[str, Wire]) -> Wire:
    return wires[request.param]


@pytest.fixture
def cart(wire: Wire) -> str:
    return wire.call("RegisterModel", {"text": CART})["model_id"]


def assert_limit(wire: Wire, verb: str, document: dict[str, object], flag: str) -> None:
    error, code = wire.error(verb, document)
    assert type(error) is LimitError
    assert code in ("RESOURCE_EXHAUSTED", "429")
    assert flag.strip("-").replace("-", "_") in str(error).replace("-", "_")


def rollout(cart: str, steps: int, batch: int = 1) -> dict[str, object]:
    return {"model_id": cart, "qpos": np.zeros(1), "qvel": np.zeros(1), "ctrl": np.zeros((batch, steps, 1))}


def test_bytes_of_a_model(wire: Wire) -> None:
    """Of its text, of each mesh and of each file it includes."""
    long = CART.replace("<worldbody>", "<worldbody>" + " " * 8192)
    assert_limit(wire, "RegisterModel", {"text": long}, "--max-model")
    for name, size, flag in (("a.stl", 4097, "--max-mesh"), ("b.xml", 8193, "--max-model")):
        content: object = np.zeros(size, np.uint8) if wire.name == "npz" else bytes(size)
        if wire.name == "json":
            content = base64.b64encode(bytes(size)).decode()
        assert_limit(wire, "RegisterModel", {"text": CART, "assets": {name: content}}, flag)


def test_environments_of_a_session_and_of_a_call(wire: Wire, cart: str) -> None:
    assert_limit(wire, "CreateSession", {"model_id": cart, "batch": 400001}, "--max-batch")
    if wire.name != "json":  # it cannot say how long the axes of an empty array are
        assert_limit(wire, "Rollout", rollout(cart, 0, 400001), "--max-batch")


def test_a_check_of_gradients(wire: Wire, cart: str) -> None:
    """Its memory follows its length; a length out of range is named before memory is asked for."""
    assert_limit(wire, "CheckGradient", {"model_id": cart, "steps": 100_000}, "--memory")
    error, _ = wire.error("CheckGradient", {"model_id": cart, "steps": 2**53 + 1})
    assert type(error) is ArgumentError
    assert str(error) == f"steps: expected an integer from 1 to 1000000, got {2**53 + 1}"
    assert wire.call("CheckGradient", {"model_id": cart, "steps": 20, "wrt": ["qvel"]})["passed"]


def test_models(wire: Wire, cart: str) -> None:
    wire.call("RegisterModel", {"text": CART, "options": {"timestep": 0.25}})
    assert_limit(wire, "RegisterModel", {"text": CART, "options": {"timestep": 0.125}}, "--max-models")
    assert wire.call("RegisterModel", {"text": CART})["model_id"] == cart


def test_sessions(wire: Wire, cart: str) -> None:
    handles = [wire.call("CreateSession", {"model_id": cart, "batch": 1})["session_id"] for _ in range(2)]
    assert_limit(wire, "CreateSession", {"model_id": cart, "batch": 1}, "--max-sessions")
    for handle in handles:
        wire.call("DeleteSession", {"session_id": handle})
    handle = wire.call("CreateSession", {"model_id": cart, "batch": 1})["session_id"]
    wire.call("DeleteSession", {"session_id": handle})


def test_trajectories(wire: Wire, cart: str) -> None:
    handles = [wire.call("Rollout", rollout(cart, 3))["trajectory_id"] for _ in range(2)]
    assert_limit(wire, "Rollout", rollout(cart, 3), "--max-trajectories")
    for handle in handles:
        wire.call("DeleteTrajectory", {"trajectory_id": handle})


def test_bytes_of_a_request(wire: Wire, cart: str) -> None:
    flag = "--max-json" if wire.name == "json" else "--max-request"
    assert_limit(wire, "Rollout", rollout(cart, 200_000), flag)
    handle = wire.call("Rollout", rollout(cart, 3))["trajectory_id"]
    wire.call("DeleteTrajectory", {"trajectory_id": handle})


def test_memory(wire: Wire, cart: str) -> None:
    error, _ = wire.error("CreateSession", {"model_id": cart, "batch": 390_000})
    assert type(error) is LimitError
    assert "--memory" in str(error)


def test_memory_of_derivatives(wire: Wire, cart: str) -> None:
    assert_limit(wire, "CheckGradient", {"model_id": cart, "steps": 100_000}, "--memory")
    assert_limit(wire, "CheckGradient", {"model_id": cart, "steps": 1000, "directions": 100}, "--memory")
    report = wire.call("CheckGradient", {"model_id": cart, "steps": 10, "wrt": ["ctrl"]})
    assert report["passed"]


def test_memory_is_given_back(wire: Wire, cart: str) -> None:
    """Each of these needs a seventh of the memory, so a leak shows within ten."""
    steps = 400 if wire.name == "json" else 50_000
    for _ in range(12):
        handle = wire.call("Rollout", rollout(cart, steps))["trajectory_id"]
        wire.call("Backward", {"trajectory_id": handle, "qpos_bar": np.ones((1, steps + 1, 1))})
        wire.call("Jvp", {"trajectory_id": handle, "qvel_tan": np.ones(1)})
        wire.call("DeleteTrajectory", {"trajectory_id": handle})


def test_a_full_queue(wires: dict[str, Wire]) -> None:
    wire = wires["grpc"]
    assert isinstance(wire, GrpcWire)
    cart = wire.call("RegisterModel", {"text": CART})["model_id"]
    session = {"session_id": wire.call("CreateSession", {"model_id": cart, "batch": 1})["session_id"]}
    other = {"session_id": wire.call("CreateSession", {"model_id": cart, "batch": 1})["session_id"]}
    codes: list[grpc.StatusCode] = []

    def step(handle: dict[str, str]) -> None:
        try:
            wire.call("Step", {**handle, "ctrl": np.ones(1), "steps": 10**9}, timeout=2.0)
        except grpc.RpcError as error:
            codes.append(error.code())

    threads = [threading.Thread(target=step, args=(handle,)) for handle in (session, other)]
    for thread in threads:
        thread.start()
    threading.Event().wait(0.5)
    for name in ("grpc", "json", "npz"):
        assert_limit(wires[name], "Rollout", rollout(cart, 3), "--queue")
    for thread in threads:
        thread.join()
    assert set(codes) == {grpc.StatusCode.DEADLINE_EXCEEDED}
    for handle in (session, other):
        wire.call("DeleteSession", handle)
    handle = wire.call("Rollout", rollout(cart, 3))["trajectory_id"]
    wire.call("DeleteTrajectory", {"trajectory_id": handle})


def test_a_trajectory_whose_answer_does_not_fit_is_not_kept(wires: dict[str, Wire]) -> None:
    """The states are too many for JSON: the rollout is undone."""
    wire = wires["grpc"]
    cart = wire.call("RegisterModel", {"text": CART})["model_id"]
    json_wire = wires["json"]
    assert isinstance(json_wire, HttpWire)
    npz = pack_npz(rollout(cart, 100_000))
    for _ in range(3):
        response = json_wire.client.post(
            "/v1/trajectories", content=npz, headers={"content-type": "application/x-npz"}
        )
        assert response.status_code == 429
        assert "ask for npz" in problem_of(response).message
    handle = wire.call("Rollout", rollout(cart, 100_000))["trajectory_id"]
    wire.call("DeleteTrajectory", {"trajectory_id": handle})


def test_a_rollout_whose_answer_is_not_read_to_its_end_is_not_kept(wires: dict[str, Wire]) -> None:
    wire = wires["grpc"]
    assert isinstance(wire, GrpcWire)
    cart = wire.call("RegisterModel", {"text": CART})["model_id"]
    # a window of 64 KiB, so that most of the answer is still with the server when the call is cancelled
    channel = grpc.insecure_channel(wire.target, options=[("grpc.http2.bdp_probe", 0)])
    stub = Stub(trajectory_pb2, channel)
    for _ in range(4):
        start = trajectory_pb2.RolloutInputs()
        parts = to_parts(trajectory_pb2.RolloutRequest, start, fill_message(start, rollout(cart, 100_000)))
        answer = stub.Rollout(parts)
        next(answer)
        answer.cancel()
        threading.Event().wait(0.2)
    channel.close()
    handle = wire.call("Rollout", rollout(cart, 100_000))["trajectory_id"]
    wire.call("DeleteTrajectory", {"trajectory_id": handle})


def test_an_answer_in_json_has_a_limit(wires: dict[str, Wire]) -> None:
    """2000 states of the cart are 32 kB, twice what --max-json allows; nothing of what is refused happens."""
    wire, binary = wires["json"], wires["npz"]
    cart = wire.call("RegisterModel", {"text": CART})["model_id"]
    inputs = {"model_id": cart, "qpos": np.zeros(1), "qvel": np.zeros(1), "ctrl": np.zeros((2000, 1))}
    kept = binary.call("Rollout", inputs)["trajectory_id"]
    advice = "ask for npz with `Accept: application/x-npz`"
    error, code = wire.error("GetTrajectory", {"trajectory_id": kept})
    assert type(error) is LimitError and code == "429" and advice in str(error)
    assert str(error).startswith("answer: expected at most 16KiB of arrays in JSON, got ")
    assert binary.call("GetTrajectory", {"trajectory_id": kept})["trajectory_id"] == kept

    error, _ = wire.error("Rollout", {**inputs, "states": "all"})
    assert advice in str(error)
    # it is not kept, so there is room for another one
    second = binary.call("Rollout", inputs)["trajectory_id"]
    for trajectory in (kept, second):
        binary.call("DeleteTrajectory", {"trajectory_id": trajectory})

    session = {"session_id": wire.call("CreateSession", {"model_id": cart, "batch": 1000})["session_id"]}
    for verb, more in (("Step", {"ctrl": np.zeros(1), "steps": 3}), ("Reset", {}), ("SetState", {})):
        error, _ = wire.error(verb, {**session, **more})
        assert advice in str(error)
    assert binary.call("GetState", session)["step_count"] == 0
    assert binary.call("Step", {**session, "ctrl": np.zeros(1), "steps": 3})["step_count"] == 3
    binary.call("DeleteSession", session)

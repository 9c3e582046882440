"""Messages and bodies that are broken at random: refused with a reason, never an internal error."""

from __future__ import annotations

import json
import random
from collections.abc import Callable

import grpc
import numpy as np
import pytest

from revolute.contract.codec.documents import fill_message
from revolute.contract.codec.npz import pack_npz
from revolute.contract.codec.parts import to_parts
from revolute.contract.v1 import tensor_pb2, trajectory_pb2
from revolute.contract.verbs import VERBS
from testbed.server_process import ServerProcess
from testbed.stubs import Stub
from testbed.wire import MESSAGES, GrpcWire, HttpWire, problem_of, rpc_of

SEED = 4
TRIES = 150
INTERNAL = (grpc.StatusCode.INTERNAL, grpc.StatusCode.UNKNOWN)


@pytest.fixture
def bodies(cart: str, grpc_wire: GrpcWire) -> dict[str, tuple[dict[str, str], dict[str, object]]]:
    """Return valid ids and bodies of the verbs that take one."""
    rollout = {
        "model_id": cart,
        "qpos": [0.0],
        "qvel": [0.0],
        "ctrl": [[1.0], [2.0]],
        "params": {"body_mass": [0, 1], "gravity": [0, 0, -9.81], "dof_damping": [0.5]},
    }
    step = {"model_id": cart, "qpos": [0.0], "qvel": [0.0], "ctrl": [1.0], "params": {"dof_damping": [0.1]}}
    check = {"wrt": ["ctrl", "gravity"], "steps": 5, "directions": 2, "seed": 1, "tolerance": 1e-4}
    arrays = {key: np.asarray(rollout[key]) for key in ("qpos", "qvel", "ctrl")}
    trajectory = {"trajectory_id": grpc_wire.call("Rollout", {"model_id": cart, **arrays})["trajectory_id"]}
    session = {"session_id": grpc_wire.call("CreateSession", {"model_id": cart, "batch": 2})["session_id"]}
    loss = {"terms": [{"quantity": "qpos", "weight": 2.0, "target": [0.5], "when": "final", "index": [0]}]}
    return {
        "RegisterModel": ({}, {"builtin": "cartpole", "options": {"timestep": 0.01, "ground": True}}),
        "CreateSession": ({}, {"model_id": cart, "batch": 2}),
        "Reset": (session, {"qpos": [[0.0], [1.0]], "qvel": [0.0]}),
        "Step": (session, {"ctrl": [1.0], "steps": 2}),
        "Rollout": ({}, rollout),
        "Backward": (trajectory, {"qpos_bar": [[0.0], [0.0], [1.0]], "wrt": ["ctrl"]}),
        "Jvp": (trajectory, {"qvel_tan": [1.0], "params_tan": {"gravity": [1.0, 0.0, 0.0]}}),
        "Jacobian": ({}, step),
        "SessionJacobian": (session, {"ctrl": [1.0]}),
        "CheckGradient": ({}, {"model_id": cart, "qpos": [0.0], "params": {"body_mass": [0, 1]}, **check}),
        "ValueAndGradient": ({}, {"inputs": rollout, "loss": loss, "wrt": ["qpos"]}),
    }


def changed(value: object, dice: random.Random) -> object:
    """Return a document with one thing in it replaced, dropped or added."""
    odd = [
        None,
        -1,
        2**63,
        1e308,
        "",
        "x",
        [],
        {},
        [[]],
        [[1], [1, 2]],
        True,
        "nan",
        {"a": 1},
        [None],
        0.5,
        [1e200] * 3,
    ]
    if isinstance(value, dict) and value and dice.random() < 0.8:
        key = dice.choice(sorted(value))
        kind = dice.random()
        if kind < 0.15:
            return {name: entry for name, entry in value.items() if name != key}
        if kind < 0.25:
            return {**value, "surplus": dice.choice(odd)}
        return {**value, key: changed(value[key], dice)}
    if isinstance(value, list) and value and dice.random() < 0.6:
        position = dice.randrange(len(value))
        return [*value[:position], changed(value[position], dice), *value[position + 1 :]]
    return dice.choice(odd)


STATELESS = ("RegisterModel", "CreateSession", "Rollout", "Jacobian", "CheckGradient", "ValueAndGradient")
BY_HANDLE = ("Reset", "Step", "SessionJacobian", "Backward", "Jvp")


@pytest.mark.parametrize("verb", [*STATELESS, *BY_HANDLE])
def test_changed_json(json_wire: HttpWire, bodies: dict[str, tuple[dict, dict]], verb: str) -> None:
    dice = random.Random(f"{SEED} {verb}")
    handle, body = bodies[verb]
    path = VERBS[verb].http_path.format(*handle.values())
    for _ in range(TRIES):
        document = changed(body, dice)
        if (
            isinstance(document, dict)
            and isinstance(document.get("steps"), int)
            and document["steps"] > 10**6
        ):
            continue
        response = json_wire.client.post(path, content=json.dumps(document))
        assert response.status_code < 500, (document, response.text)
        if response.is_error:
            problem_of(response)


@pytest.mark.parametrize("verb", ["Rollout", "ValueAndGradient", "Backward", "Jvp", "Jacobian"])
def test_changed_bytes_of_an_archive(
    npz_wire: HttpWire, bodies: dict[str, tuple[dict, dict]], verb: str
) -> None:
    dice = random.Random(f"{SEED} {verb}")
    handle, body = bodies[verb]
    path = VERBS[verb].http_path.format(*handle.values())
    packed = pack_npz(
        {key: np.asarray(value) if isinstance(value, list) else value for key, value in body.items()}
    )
    for _ in range(TRIES):
        response = npz_wire.client.post(path, content=_damaged(packed, dice))
        assert response.status_code < 500, response.text
        if response.is_error:
            problem_of(response)


@pytest.mark.parametrize("verb", sorted(MESSAGES))
def test_changed_bytes_of_a_message(grpc_wire: GrpcWire, cart: str, verb: str) -> None:
    method = rpc_of(verb)
    call = grpc_wire.channel.stream_stream(
        f"/{method.containing_service.full_name}/{method.name}",
        request_serializer=None,
        response_deserializer=None,
    )
    dice = random.Random(f"{SEED} {verb}")
    start = trajectory_pb2.RolloutInputs()
    values = fill_message(
        start, {"model_id": cart, "qpos": np.zeros(1), "qvel": np.zeros(1), "ctrl": np.zeros((3, 1))}
    )
    valid = next(to_parts(trajectory_pb2.RolloutRequest, start, values)).SerializeToString()
    for _ in range(40):
        parts = [_damaged(valid, dice) for _ in range(dice.randrange(1, 3) if method.client_streaming else 1)]
        try:
            list(call(iter(parts), timeout=20.0))
        except grpc.RpcError as error:
            assert error.code() not in INTERNAL, error


def _damaged(content: bytes, dice: random.Random) -> bytes:
    """Flip, cut, or repeat some bytes."""
    damaged = bytearray(content)
    for _ in range(dice.randrange(1, 6)):
        place = dice.randrange(len(damaged))
        kind = dice.random()
        if kind < 0.6:
            damaged[place] = dice.randrange(256)
        elif kind < 0.8:
            del damaged[place : place + dice.randrange(1, 20)]
        else:
            damaged[place:place] = damaged[place : place + dice.randrange(1, 20)]
        damaged = damaged or bytearray(b"\x00")
    return bytes(damaged)


def rollout_parts(cart: str, change: Callable[[list], list]) -> list:
    start = trajectory_pb2.RolloutInputs()
    values = fill_message(
        start, {"model_id": cart, "qpos": np.zeros(1), "qvel": np.zeros(1), "ctrl": np.zeros((9, 1))}
    )
    return change(list(to_parts(trajectory_pb2.RolloutRequest, start, values, chunk_bytes=24)))


def chunk(**fields: object) -> trajectory_pb2.RolloutRequest:
    return trajectory_pb2.RolloutRequest(chunk=tensor_pb2.Chunk(**fields))


STREAMS: dict[str, Callable[[list], list]] = {
    "no part at all": lambda parts: [],
    "an empty part": lambda parts: [trajectory_pb2.RolloutRequest()],
    "two starts": lambda parts: [parts[0], *parts],
    "no start": lambda parts: parts[1:],
    "a missing chunk": lambda parts: [parts[0], *parts[2:]],
    "an early end": lambda parts: parts[:-1],
    "a chunk twice": lambda parts: [*parts, parts[-1]],
    "an unknown field": lambda parts: [parts[0], chunk(field="bogus", data=b"x")],
    "an empty chunk": lambda parts: [parts[0], chunk(field="ctrl"), *parts[1:]],
    "a negative offset": lambda parts: [parts[0], chunk(field="ctrl", offset=-8, data=b"x" * 8)],
}


@pytest.mark.parametrize("stream", STREAMS)
def test_streams_that_make_up_no_message(grpc_wire: GrpcWire, cart: str, stream: str) -> None:
    stub = Stub(trajectory_pb2, grpc_wire.channel)
    with pytest.raises(grpc.RpcError) as caught:
        list(stub.Rollout(iter(rollout_parts(cart, STREAMS[stream])), timeout=20.0))
    assert caught.value.code() is grpc.StatusCode.INVALID_ARGUMENT


def test_a_declared_size_beyond_the_limit_is_refused_from_the_first_part(
    grpc_wire: GrpcWire, cart: str
) -> None:
    stub = Stub(trajectory_pb2, grpc_wire.channel)
    start = trajectory_pb2.RolloutInputs(model_id=cart, ctrl=tensor_pb2.Tensor(dtype="<f8", shape=[2**40, 1]))
    with pytest.raises(grpc.RpcError) as caught:
        list(stub.Rollout(iter([trajectory_pb2.RolloutRequest(start=start)]), timeout=20.0))
    assert caught.value.code() is grpc.StatusCode.RESOURCE_EXHAUSTED
    assert "max_request" in caught.value.details()


def test_a_very_long_name_is_cut_in_the_error(grpc_wire: GrpcWire, cart: str) -> None:
    rollout = {"model_id": cart, "qpos": np.zeros(1), "qvel": np.zeros(1), "ctrl": np.zeros((2, 1))}
    document = {"inputs": rollout, "loss": {"terms": [{"quantity": "qpos"}]}, "wrt": ["w" * 100_000]}
    error, code = grpc_wire.error("ValueAndGradient", document)
    assert code == "INVALID_ARGUMENT"
    assert len(str(error)) < 1100


def test_the_server_took_it_all(server: ServerProcess, grpc_wire: GrpcWire) -> None:
    assert server.process.poll() is None
    assert "incident" not in server.log.read_text(), server.log.read_text()[-3000:]
    assert grpc_wire.call("GetServerInfo", {})["version"]

"""Requests and answers of one part each: unary calls, the same answers, and what is too large for that."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import grpc
import numpy as np
import pytest

import revolute
from revolute.codec.documents import fill_message, read_message
from revolute.codec.parts import ONE, ONE_PART_BYTES, PARTS_HEADER, assemble, to_wire
from revolute.codec.status import DETAILS_KEY, decode_status
from revolute.transports import memory
from revolute.v1 import session_pb2, trajectory_pb2

from .conftest import CART
from .processes import ServerProcess
from .wire import GrpcWire

ROLLOUT = "/revolute.v1.TrajectoryService/Rollout"


@pytest.fixture
def channel(server: ServerProcess) -> Iterator[grpc.Channel]:
    with grpc.insecure_channel(server.grpc_target) as channel:
        yield channel


def _request(cart: str, steps: int, **more: Any) -> bytes:
    """Return a rollout's request of one part."""
    start = trajectory_pb2.RolloutInputs()
    ctrl = np.ones((steps, 1))
    document = {"model_id": cart, "qpos": np.zeros(1), "qvel": np.ones(1), "ctrl": ctrl, **more}
    (part,) = to_wire(
        trajectory_pb2.RolloutRequest, start, fill_message(start, document), chunk_bytes=ONE_PART_BYTES
    )
    return part


def _one(channel: grpc.Channel, path: str, request: bytes) -> bytes:
    call: Any = channel.unary_unary(path)
    return call(request, metadata=((PARTS_HEADER, ONE),))


def test_the_answer_is_that_of_a_stream(channel: grpc.Channel, cart: str, grpc_wire: GrpcWire) -> None:
    request = _request(cart, 50)
    answer = _one(channel, ROLLOUT, request)
    found = read_message(*assemble([trajectory_pb2.RolloutResponse.FromString(answer)]))
    stream: Any = channel.unary_stream(ROLLOUT)
    parts = [trajectory_pb2.RolloutResponse.FromString(part) for part in stream(request)]
    expected = read_message(*assemble(parts))
    assert found["qpos"].tobytes() == expected["qpos"].tobytes()
    assert found.keys() == expected.keys()
    grpc_wire.call("DeleteTrajectory", {"trajectory_id": found["trajectory_id"]})


def test_more_than_a_part_but_less_than_a_message(channel: grpc.Channel, cart: str) -> None:
    steps = ONE_PART_BYTES // 16 - 100
    answer = _one(channel, ROLLOUT, _request(cart, steps))
    assert len(answer) > 2.9 * 1024**2
    document = read_message(*assemble([trajectory_pb2.RolloutResponse.FromString(answer)]))
    assert document["qpos"].shape == (steps + 1, 1)


def test_what_is_too_large_is_refused_and_done_once(
    channel: grpc.Channel, cart: str, grpc_wire: GrpcWire
) -> None:
    part = _request(cart, 250_000, request_id="one-part")
    with pytest.raises(grpc.RpcError) as caught:
        _one(channel, ROLLOUT, part)
    error: Any = caught.value
    (status,) = [value for key, value in error.trailing_metadata() if key == DETAILS_KEY]
    found = decode_status(status)
    assert isinstance(found, revolute.ArgumentError) and found.argument == PARTS_HEADER
    stream: Any = channel.unary_stream(ROLLOUT)
    answers = [
        read_message(*assemble(trajectory_pb2.RolloutResponse.FromString(part) for part in stream(part)))
        for _ in range(2)
    ]
    assert answers[0]["trajectory_id"] == answers[1]["trajectory_id"]
    grpc_wire.call("DeleteTrajectory", {"trajectory_id": answers[0]["trajectory_id"]})


def test_a_request_in_chunks_is_not_one_part(channel: grpc.Channel, cart: str) -> None:
    start = trajectory_pb2.RolloutInputs()
    values = {"model_id": cart, "qpos": np.zeros(1), "qvel": np.zeros(1), "ctrl": np.zeros((500_000, 1))}
    first = next(iter(to_wire(trajectory_pb2.RolloutRequest, start, fill_message(start, values))))
    with pytest.raises(grpc.RpcError) as caught:
        _one(channel, ROLLOUT, first)
    assert caught.value.code() is grpc.StatusCode.INVALID_ARGUMENT
    assert "ctrl: expected 4000000 bytes" in caught.value.details()


def test_unary_verbs_take_no_notice(channel: grpc.Channel) -> None:
    assert _one(channel, "/revolute.v1.ServerService/GetServerInfo", b"")


def test_streamed_segments_are_many(channel: grpc.Channel, cart: str) -> None:
    start = trajectory_pb2.StreamRolloutInputs()
    inputs = {"model_id": cart, "qpos": np.zeros(1), "qvel": np.zeros(1), "ctrl": np.zeros((9, 1))}
    (part,) = to_wire(
        trajectory_pb2.StreamRolloutRequest,
        start,
        fill_message(start, {"inputs": inputs, "segment_steps": 3}),
    )
    with pytest.raises(grpc.RpcError) as caught:
        _one(channel, "/revolute.v1.TrajectoryService/StreamRollout", part)
    assert caught.value.details().startswith("x-parts: expected nothing for an answer that large")


@pytest.mark.parametrize("shared", [True, False])
def test_the_client_takes_large_answers_in_parts(
    server: ServerProcess, monkeypatch: pytest.MonkeyPatch, shared: bool
) -> None:
    """A gradient by many controls for the cotangent of one state: the request is small, the answer is not."""
    monkeypatch.setattr(memory, "AVAILABLE", shared)
    steps = ONE_PART_BYTES // 8 + 10_000
    with revolute.connect(server.grpc) as simulator:
        model = simulator.load_model(CART)
        ctrl = np.zeros((steps, 1))
        with simulator.rollout(model, [0.0], [0.0], ctrl, checkpoints="interval=1000") as trajectory:
            for _ in range(2):
                gradient = trajectory.backward(qvel_bar=np.ones((1, 1)), times=[-1])
                # v_N = h sum u
                assert np.allclose(gradient.ctrl, 0.001, rtol=1e-12, atol=0)


def test_a_part_of_a_session(channel: grpc.Channel) -> None:
    """An error has its own status here, too."""
    start = session_pb2.StepInputs(session_id="none")
    (part,) = to_wire(session_pb2.StepRequest, start, {"ctrl": np.zeros(1)})
    with pytest.raises(grpc.RpcError) as caught:
        _one(channel, "/revolute.v1.SessionService/Step", part)
    assert caught.value.code() is grpc.StatusCode.NOT_FOUND

"""StreamRollout of any server of the v1 protocol: states as they are computed, each once, then the handle."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest

from revolute.contract.codec.documents import fill_message
from revolute.contract.codec.npz import pack_npz, unpack_npz
from revolute.contract.codec.parts import to_parts
from revolute.contract.v1 import trajectory_pb2
from testbed.stubs import Stub
from testbed.wire import GrpcWire, HttpWire, numbers
from tests.conformance.conftest import Wire
from tests.conformance.test_protocol import CART, TOLERANCE, H

STEPS, SEGMENT = 25, 10


def _stream(wire: Wire, document: dict[str, Any]) -> list[dict[str, Any]]:
    """Return the documents of an answer in the order in which they came."""
    return list(_over_grpc(wire, document) if isinstance(wire, GrpcWire) else _over_http(wire, document))


def _over_grpc(wire: GrpcWire, document: dict[str, Any]) -> Iterator[dict[str, Any]]:
    start = trajectory_pb2.StreamRolloutInputs()
    values = fill_message(start, document)
    request = to_parts(trajectory_pb2.StreamRolloutRequest, start, values)
    stub = Stub(trajectory_pb2, wire.channel)
    for part in stub.StreamRollout(request, timeout=60):
        kind = part.WhichOneof("part")
        assert kind in ("start", "end"), "segments this small need no chunks"
        message = getattr(part, kind)
        arrays = {
            field.name: _array(getattr(message, field.name))
            for field in message.DESCRIPTOR.fields
            if field.message_type is not None
            and field.message_type.name == "Tensor"
            and message.HasField(field.name)
        }
        plain = {
            name: getattr(message, name) for name in ("first", "trajectory_id") if hasattr(message, name)
        }
        yield {**arrays, **plain}


def _array(tensor: Any) -> np.ndarray:
    return np.frombuffer(tensor.data, tensor.dtype).reshape(tuple(tensor.shape))


def _over_http(wire: HttpWire, document: dict[str, Any]) -> Iterator[dict[str, Any]]:
    if not wire.npz:
        lists = {name: value.tolist() for name, value in document["inputs"].items() if name != "model_id"}
        body = {**document, "inputs": {**document["inputs"], **lists}}
        answer = wire.client.post("/v1/stream-rollout", content=json.dumps(body))
        assert answer.headers["content-type"].startswith("application/x-ndjson")
        yield from map(json.loads, answer.text.splitlines())
        return
    answer = wire.client.post("/v1/stream-rollout", content=pack_npz(document))
    assert answer.headers["content-type"].startswith("application/x-npz-frames")
    rest = answer.content
    while rest:
        size = int.from_bytes(rest[:8], "little")
        yield unpack_npz(rest[8 : 8 + size])
        rest = rest[8 + size :]


@pytest.mark.parametrize("shape", [(STEPS, 1), (2, STEPS, 1)], ids=["one", "batch"])
def test_segments_make_up_the_trajectory(wire: Wire, shape: tuple[int, ...]) -> None:
    cart = wire.call("RegisterModel", {"text": CART})["model_id"]
    ctrl = np.random.default_rng(3).normal(size=shape)
    inputs = {"model_id": cart, "qpos": np.zeros(1), "qvel": np.zeros(1), "ctrl": ctrl}
    *segments, end = _stream(wire, {"inputs": inputs, "segment_steps": SEGMENT})
    assert len(segments) == 3
    qvel = np.concatenate([numbers(segment["qvel"]) for segment in segments], axis=-2)
    qpos = np.concatenate([numbers(segment["qpos"]) for segment in segments], axis=-2)
    firsts = [int(segment["first"]) for segment in segments]
    lengths = [numbers(segment["qvel"]).shape[-2] for segment in segments]
    # each time once, from 0 to T
    assert firsts == [0, *np.cumsum(lengths)[:-1]] and sum(lengths) == STEPS + 1
    start = np.zeros((*shape[:-2], 1, 1))
    velocity = H * np.concatenate([start, np.cumsum(ctrl, axis=-2)], axis=-2)
    np.testing.assert_allclose(qvel, velocity, rtol=TOLERANCE, atol=TOLERANCE)
    np.testing.assert_allclose(qpos, H * np.cumsum(velocity, axis=-2), rtol=TOLERANCE, atol=TOLERANCE)
    assert not numbers(end["status"]).any() and (numbers(end["diverged_step"]) == -1).all()
    # the handle is that of a kept trajectory
    handle = {"trajectory_id": end["trajectory_id"]}
    kept = wire.call("GetTrajectory", handle)
    assert numbers(kept["qpos"]).tobytes() == qpos.tobytes()
    bar = np.zeros((*shape[:-2], STEPS + 1, 1))
    bar[..., -1, :] = 1.0
    gradient = wire.call("Backward", {**handle, "qvel_bar": bar, "wrt": ["ctrl"]})
    np.testing.assert_allclose(numbers(gradient["arrays"]["ctrl"]), H * np.ones(shape), rtol=TOLERANCE)
    wire.call("DeleteTrajectory", handle)

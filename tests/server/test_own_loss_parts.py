"""ValueAndGradient with a loss of the client's own, part by part as a client in another language sends it."""

from __future__ import annotations

import queue
from collections.abc import Iterator
from typing import Any

import grpc
import numpy as np
import pytest

from revolute.contract.codec.status import DETAILS_KEY, decode_status
from revolute.contract.v1 import tensor_pb2, trajectory_pb2
from testbed.server_process import ServerProcess
from testbed.stubs import Stub

STEPS = 7


@pytest.fixture
def service(server: ServerProcess) -> Iterator[Any]:
    with grpc.insecure_channel(server.grpc_target) as channel:
        yield Stub(trajectory_pb2, channel)


def _tensor(numbers: np.ndarray) -> tensor_pb2.Tensor:
    return tensor_pb2.Tensor(dtype="<f8", shape=numbers.shape, data=numbers.tobytes())


def _gradient(service: Any, cart: str, cotangents: trajectory_pb2.Cotangents) -> bytes:
    """Simulate, send the cotangents when the trajectory is there, and return the gradient by the controls."""
    simulated = trajectory_pb2.RolloutInputs(
        model_id=cart, qpos=_tensor(np.zeros(1)), qvel=_tensor(np.ones(1)), ctrl=_tensor(np.ones((STEPS, 1)))
    )
    inputs = trajectory_pb2.ValueAndGradientInputs(inputs=simulated, wrt=["ctrl"])
    parts: queue.Queue[Any] = queue.Queue()
    parts.put(trajectory_pb2.ValueAndGradientRequest(start=inputs))
    answers = service.ValueAndGradient(iter(parts.get, None))
    assert next(answers).WhichOneof("part") == "trajectory"
    parts.put(trajectory_pb2.ValueAndGradientRequest(cotangents=cotangents))
    parts.put(None)
    found: bytes = next(answers).start.gradient.arrays["ctrl"].data
    return found


def _cotangents(qpos_bar: np.ndarray, times: list[int] | None = None) -> trajectory_pb2.Cotangents:
    message = trajectory_pb2.Cotangents(qpos_bar=_tensor(qpos_bar))
    if times is not None:
        message.times.entries.extend(times)
    return message


def test_cotangents_of_some_times_are_those_with_zeros_elsewhere(service: Any, cart: str) -> None:
    some = np.array([[2.0], [-3.0]])
    everywhere = np.zeros((STEPS + 1, 1))
    everywhere[[2, 5]] = some
    few = _gradient(service, cart, _cotangents(some, [2, -3]))
    all_of_them = _gradient(service, cart, _cotangents(everywhere))
    assert few == all_of_them
    assert np.any(np.frombuffer(few))


def test_times_that_do_not_fit_are_named(service: Any, cart: str) -> None:
    with pytest.raises(grpc.RpcError) as caught:
        _gradient(service, cart, _cotangents(np.zeros((1, 1)), [STEPS + 1]))
    details: Any = dict(caught.value.trailing_metadata())
    error: Any = decode_status(details[DETAILS_KEY])
    assert error.argument == "times"

"""Requests over gRPC that are made to be costly: refused early, and nobody else waits for them."""

from __future__ import annotations

import asyncio
import dataclasses
import threading
import time
from collections.abc import AsyncIterator, Iterator
from typing import Any

import grpc
import numpy as np
import pytest
from google.protobuf.message import Message
from grpc_health.v1 import health_pb2, health_pb2_grpc

import revolute
from revolute.contract.codec.documents import fill_message, read_message
from revolute.contract.codec.parts import assemble, to_parts
from revolute.contract.codec.status import DETAILS_KEY, decode_status
from revolute.contract.errors import ArgumentError, LimitError, RevoluteError
from revolute.contract.v1 import tensor_pb2, trajectory_pb2
from revolute_server.compute.memory_budget import MemoryBudget
from revolute_server.grpc.messages import ReceivedPart, receive
from revolute_server.settings import Settings
from testbed.cart import CART
from testbed.server_process import ServerProcess, running_server
from testbed.stubs import Stub
from testbed.wire import GrpcWire

MEMORY = 64 * 1024**2
SERVICE = "/revolute.v1.TrajectoryService"
LONGEST_WAIT = 3.0
"""Seconds for which a check of health may wait beside a hostile request. It takes 0.1 s where a core is free;
it took 15 s where the fields of a message were read one by one."""


@pytest.fixture(scope="module")
def small() -> Iterator[ServerProcess]:
    """A server with little memory."""
    with running_server("--memory", str(MEMORY), "--store", "memory:") as running:
        yield running


@pytest.fixture(scope="module")
def wire(small: ServerProcess) -> Iterator[GrpcWire]:
    way = GrpcWire(small.grpc_target)
    yield way
    way.close()


@pytest.fixture(scope="module")
def cart(wire: GrpcWire) -> str:
    return wire.call("RegisterModel", {"text": CART})["model_id"]


class Health:
    """Asks for the server's health all the time, and notes the longest wait."""

    def __init__(self, server: ServerProcess) -> None:
        self._stop = threading.Event()
        self._channel = grpc.insecure_channel(server.grpc_target)
        self._stub = health_pb2_grpc.HealthStub(self._channel)
        self._thread = threading.Thread(target=self._ask)
        self.longest = 0.0

    def _ask(self) -> None:
        while not self._stop.is_set():
            began = time.monotonic()
            self._stub.Check(health_pb2.HealthCheckRequest(), timeout=60.0)
            self.longest = max(self.longest, time.monotonic() - began)
            time.sleep(0.005)

    def __enter__(self) -> Health:
        self._thread.start()
        time.sleep(0.1)
        return self

    def __exit__(self, *_error: object) -> None:
        self._stop.set()
        self._thread.join()
        self._channel.close()


def _field(number: int, content: bytes) -> bytes:
    """Return a field with a length in protobuf's wire format."""
    return _varint(number << 3 | 2) + _varint(len(content)) + content


def _varint(number: int) -> bytes:
    out = bytearray()
    while number >= 0x80:
        out.append(number & 0x7F | 0x80)
        number >>= 7
    return bytes((*out, number))


def _number(kind: type[Message], name: str) -> int:
    return kind.DESCRIPTOR.fields_by_name[name].number


def _costly(megabytes: float) -> dict[str, tuple[str, bytes]]:
    """Return method and content of requests with as many fields as there is room for."""
    count = int(1e6 * megabytes / 2) - 16
    inputs = trajectory_pb2.RolloutInputs
    loss = _number(trajectory_pb2.ValueAndGradientInputs, "loss")
    keys = (f"{number:06}".encode() for number in range(count // 5))
    return {
        "empty starts": ("Rollout", _field(1, b"") * count),
        "empty terms": ("ValueAndGradient", _field(1, _field(loss, _field(1, b"") * count))),
        "empty names": ("Rollout", _field(1, _field(_number(inputs, "forget"), b"") * count)),
        "one entry again and again": ("Rollout", _field(1, _field(_number(inputs, "params"), b"") * count)),
        "entries": (
            "Rollout",
            _field(1, b"".join(_field(_number(inputs, "params"), _field(1, key)) for key in keys)),
        ),
        "unknown fields": ("Rollout", _field(1, _field(99, b"")[:3] * (2 * count // 3))),
        "axes": ("Rollout", _field(1, _field(4, _field(1, b"<f8") + _field(2, b"\0" * 2 * count)))),
        "times": (
            "Backward",
            _field(1, _field(_number(trajectory_pb2.Cotangents, "times"), _field(1, b"\1" * 2 * count))),
        ),
    }


@pytest.mark.parametrize("kind", list(_costly(0.1)))
@pytest.mark.parametrize("megabytes", [1.9, 3.8])
def test_health_answers_beside_a_message_of_very_many_fields(
    small: ServerProcess, wire: GrpcWire, kind: str, megabytes: float
) -> None:
    method, content = _costly(megabytes)[kind]
    call: Any = wire.channel.unary_stream(f"{SERVICE}/{method}")
    with Health(small) as health:
        for _ in range(3):
            with pytest.raises(grpc.RpcError) as caught:
                list(call(content, timeout=60.0))
    assert caught.value.code() in (
        grpc.StatusCode.INVALID_ARGUMENT,
        grpc.StatusCode.NOT_FOUND,
        grpc.StatusCode.RESOURCE_EXHAUSTED,
    )
    assert health.longest < LONGEST_WAIT


@pytest.mark.parametrize("kind", ["terms", "names", "entries"])
def test_more_entries_than_the_limit_are_refused_and_fewer_are_read(
    wire: GrpcWire, cart: str, kind: str
) -> None:
    def refused(count: int) -> RevoluteError:
        names = [str(number) for number in range(count)]
        inputs = {"model_id": cart, "qpos": np.zeros(1), "qvel": np.zeros(1), "ctrl": np.zeros((1, 1))}
        if kind == "terms":
            document = {"inputs": inputs, "loss": {"terms": [{"quantity": "none"}] * count}}
            return wire.error("ValueAndGradient", document)[0]
        if kind == "names":
            return wire.error("Rollout", {**inputs, "forget": names})[0]
        return wire.error("Rollout", {**inputs, "params": dict.fromkeys(names, np.zeros(1))})[0]

    error = refused(20_100)
    assert isinstance(error, LimitError) and "--max-entries" in error.message
    error = refused(15_000)
    assert isinstance(error, ArgumentError) and "--max-entries" not in error.message


@pytest.mark.parametrize("most", [3, 400, 501])
def test_the_smallest_entries_are_counted(most: int) -> None:
    """Empty names take two bytes each, the least that an entry takes."""

    async def read(count: int) -> dict[str, Any]:
        message = trajectory_pb2.RolloutRequest(start=trajectory_pb2.RolloutInputs(forget=[""] * count))

        async def parts() -> AsyncIterator[ReceivedPart]:
            yield ReceivedPart(message, message.ByteSize())

        settings = dataclasses.replace(Settings(), max_entries=most)
        return await receive(parts(), MemoryBudget(2**30).reserve("a request"), settings)

    assert len(asyncio.run(read(most))["forget"]) == most
    with pytest.raises(LimitError, match="--max-entries"):
        asyncio.run(read(most + 1))


def test_health_answers_beside_a_message_at_the_limit(
    small: ServerProcess, wire: GrpcWire, cart: str
) -> None:
    inputs = {"model_id": cart, "qpos": np.zeros(1), "qvel": np.zeros(1), "ctrl": np.zeros((1, 1))}
    names = [str(number) for number in range(19_000)]
    with Health(small) as health:
        for _ in range(3):
            wire.error("Rollout", {**inputs, "params": dict.fromkeys(names, np.zeros(1))})
    assert health.longest < LONGEST_WAIT


def test_a_message_may_not_come_byte_by_byte(wire: GrpcWire, cart: str) -> None:
    inputs = trajectory_pb2.RolloutInputs(model_id=cart)
    inputs.ctrl.dtype, inputs.ctrl.shape[:] = "<f8", [1000, 1]

    def parts() -> Iterator[trajectory_pb2.RolloutRequest]:
        yield trajectory_pb2.RolloutRequest(start=inputs)
        for place in range(8000):
            chunk = tensor_pb2.Chunk(field="ctrl", offset=place, data=b"\0")
            yield trajectory_pb2.RolloutRequest(chunk=chunk)

    stub = Stub(trajectory_pb2, wire.channel)
    with pytest.raises(grpc.RpcError) as caught:
        list(stub.Rollout(parts(), timeout=30.0))
    assert caught.value.code() is grpc.StatusCode.INVALID_ARGUMENT
    assert "chunk: expected at most 1007 chunks for 8000 bytes" in caught.value.details()


class Unfinished:
    """A rollout's request of which only some has been sent."""

    def __init__(self, wire: GrpcWire, cart: str, declared: int, sent: int) -> None:
        inputs = trajectory_pb2.RolloutInputs(model_id=cart)
        inputs.ctrl.dtype, inputs.ctrl.shape[:] = "<f8", [declared // 8, 1]
        self._end = threading.Event()
        self._taken = threading.Event()
        piece = 1000 * 1000

        def parts() -> Iterator[trajectory_pb2.RolloutRequest]:
            yield trajectory_pb2.RolloutRequest(start=inputs)
            for place in range(0, sent, piece):
                chunk = tensor_pb2.Chunk(field="ctrl", offset=place, data=bytes(piece))
                yield trajectory_pb2.RolloutRequest(chunk=chunk)
            # asked for when the part before has been taken from us
            self._taken.set()
            self._end.wait()

        self._answer = Stub(trajectory_pb2, wire.channel).Rollout(parts(), timeout=60.0)
        deadline = time.monotonic() + 30.0
        while not self._taken.wait(0.05) and self._answer.is_active():
            assert time.monotonic() < deadline

    def error(self) -> grpc.StatusCode:
        """End the request and return what it ends with."""
        self._end.set()
        return self._answer.code()

    def cancel(self) -> None:
        self._end.set()
        self._answer.cancel()


def test_bytes_are_counted_as_they_arrive(wire: GrpcWire, cart: str) -> None:
    rollout = {"model_id": cart, "qpos": np.zeros(1), "qvel": np.zeros(1), "ctrl": np.zeros((100_000, 1))}
    # what is only declared takes nothing from others
    empty = [Unfinished(wire, cart, MEMORY // 2, 0) for _ in range(5)]
    named = wire.call("Rollout", rollout)["trajectory_id"]
    wire.call("DeleteTrajectory", {"trajectory_id": named})
    for request in empty:
        assert request.error() is grpc.StatusCode.INVALID_ARGUMENT
    # what has come does
    share, rollout["ctrl"] = MEMORY // 2 - 3 * 1024**2, np.zeros((400_000, 1))
    full = [Unfinished(wire, cart, share, share - 10**6) for _ in range(2)]
    # what gRPC may hold of a part counts when it has not come for a moment
    time.sleep(0.5)
    deadline = time.monotonic() + 30.0
    while (found := wire.error("Rollout", rollout) if _refused(wire, rollout) else None) is None:
        assert time.monotonic() < deadline, "unfinished requests are not counted"
        time.sleep(0.05)
    assert "--memory" in found[0].message
    for request in full:
        request.cancel()
    while _refused(wire, rollout):
        assert time.monotonic() < deadline, "the bytes of requests that ended are still counted"
        time.sleep(0.05)


def _refused(wire: GrpcWire, rollout: dict[str, Any]) -> bool:
    try:
        wire.call("DeleteTrajectory", {"trajectory_id": wire.call("Rollout", rollout)["trajectory_id"]})
    except grpc.RpcError as error:
        assert error.code() is grpc.StatusCode.RESOURCE_EXHAUSTED
        return True
    return False


def test_a_message_for_which_there_is_no_room_is_refused_at_its_first_part(wire: GrpcWire, cart: str) -> None:
    request = Unfinished(wire, cart, MEMORY + 8, 0)
    assert request.error() is grpc.StatusCode.RESOURCE_EXHAUSTED


def test_an_older_client_gets_its_answer_in_parts(wire: GrpcWire, cart: str) -> None:
    """It asks for an answer of one part, as a unary call; refused, it calls again, and nothing was done."""
    document = {"model_id": cart, "qpos": np.zeros(1), "qvel": np.ones(1), "ctrl": np.ones((50, 1))}
    start = trajectory_pb2.RolloutInputs()
    (part,) = to_parts(trajectory_pb2.RolloutRequest, start, fill_message(start, document))
    request = part.SerializeToString()
    unary: Any = wire.channel.unary_unary(f"{SERVICE}/Rollout")
    with pytest.raises(grpc.RpcError) as caught:
        unary(request, metadata=(("x-parts", "one"),))
    error: Any = caught.value
    (status,) = [value for key, value in error.trailing_metadata() if key == DETAILS_KEY]
    found = decode_status(status)
    assert isinstance(found, revolute.ArgumentError) and found.argument == "x-parts"
    stream: Any = wire.channel.unary_stream(f"{SERVICE}/Rollout")
    answer = map(trajectory_pb2.RolloutResponse.FromString, stream(request))
    values = read_message(*assemble(answer))
    assert values["qpos"].shape == (51, 1)
    wire.call("DeleteTrajectory", {"trajectory_id": values["trajectory_id"]})
    info: Any = wire.channel.unary_unary("/revolute.v1.ServerService/GetServerInfo")
    assert info(b"", metadata=(("x-parts", "one"),))

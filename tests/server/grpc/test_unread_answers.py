"""A trajectory is forgotten when its caller leaves before the answer has been sent."""

from __future__ import annotations

import re
import time
from typing import Any

import grpc
import numpy as np
import pytest

from benchmarks.laikago import POSE, START
from revolute.contract.codec.npz import pack_npz
from testbed.server_process import ServerProcess
from testbed.wire import GrpcWire, HttpWire

STEPS = 30_000


@pytest.fixture
def request_document(grpc_wire: GrpcWire) -> dict[str, Any]:
    model_id = grpc_wire.call("RegisterModel", {"builtin": "laikago"})["model_id"]
    ctrl = np.tile(POSE, (STEPS, 1))
    return {"model_id": model_id, "qpos": START, "qvel": np.zeros(18), "ctrl": ctrl}


def test_a_caller_who_leaves_during_the_rollout_keeps_nothing(
    npz_wire: HttpWire, server: ServerProcess, grpc_wire: GrpcWire, request_document: dict[str, Any]
) -> None:
    before = _trajectories(npz_wire)
    answer = grpc_wire.start("Rollout", request_document)
    time.sleep(0.05)
    answer.cancel()
    deadline, used = time.monotonic() + 10, server.cpu_seconds()
    while True:
        time.sleep(0.25)
        now = server.cpu_seconds()
        if now - used < 0.05:
            break
        assert time.monotonic() < deadline, "the engine goes on"
        used = now
    assert _trajectories(npz_wire) == before


def test_a_caller_who_cancels_during_the_answer_keeps_nothing(
    npz_wire: HttpWire, grpc_wire: GrpcWire, request_document: dict[str, Any]
) -> None:
    """Of 9 MB the sockets take some; the rest is still with the server when the client leaves."""
    before = _trajectories(npz_wire)
    answer = grpc_wire.start("Rollout", request_document)
    assert next(answer).start.trajectory_id and _trajectories(npz_wire) == before + 1
    answer.cancel()
    _wait_for(npz_wire, before)


def test_a_caller_who_closes_the_connection_during_the_answer_keeps_nothing(
    npz_wire: HttpWire, request_document: dict[str, Any]
) -> None:
    """Of 9 MB the sockets take some; the rest is still with the server when the client leaves."""
    before = _trajectories(npz_wire)
    request = npz_wire.client.build_request(
        "POST", "/v1/trajectories", content=pack_npz(request_document), headers=npz_wire.client.headers
    )
    answer = npz_wire.client.send(request, stream=True)
    assert answer.status_code == 201 and _trajectories(npz_wire) == before + 1
    answer.close()
    _wait_for(npz_wire, before)


def _wait_for(wire: HttpWire, count: float) -> None:
    """Wait until the server keeps so many trajectories."""
    deadline = time.monotonic() + 10
    while _trajectories(wire) != count:
        assert time.monotonic() < deadline, "the trajectory stays"
        time.sleep(0.05)


def _trajectories(wire: HttpWire) -> float:
    """Return how many the server keeps."""
    found = re.search(r"^revolute_trajectories (\S+)$", wire.client.get("/metrics").text, re.MULTILINE)
    assert found
    return float(found[1])


def test_an_error_in_the_arguments_is_an_error_as_ever(
    grpc_wire: GrpcWire, request_document: dict[str, Any]
) -> None:
    ctrl = request_document["ctrl"].copy()
    ctrl[-1, 3] = np.nan
    with pytest.raises(grpc.RpcError) as caught:
        grpc_wire.call("Rollout", {**request_document, "ctrl": ctrl})
    assert caught.value.code() is grpc.StatusCode.INVALID_ARGUMENT

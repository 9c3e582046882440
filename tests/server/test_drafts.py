"""Answers are sent while they are made, and acknowledge nothing before they are whole."""

from __future__ import annotations

import asyncio
import re
import time
from typing import Any

import grpc
import numpy as np
import pytest

from benchmarks.laikago import POSE, START
from revolute.codec.chunks import read_part
from revolute.codec.npz import pack_npz
from revolute.codec.parts import assemble
from revolute.errors import ArgumentError, LimitError, UnavailableError
from revolute.v1 import trajectory_pb2
from revolute_server.drafts import Draft
from revolute_server.grpc_messages import send_draft
from revolute_server.telemetry import Telemetry

from .processes import ServerProcess
from .wire import GrpcWire, HttpWire

Part = trajectory_pb2.RolloutResponse
STEPS = 30_000


@pytest.fixture
def request_document(grpc_wire: GrpcWire) -> dict[str, Any]:
    model_id = grpc_wire.call("RegisterModel", {"builtin": "laikago"})["model_id"]
    ctrl = np.tile(POSE, (STEPS, 1))
    return {"model_id": model_id, "qpos": START, "qvel": np.zeros(18), "ctrl": ctrl}


def test_states_come_before_the_trajectory_is_kept(
    grpc_wire: GrpcWire, request_document: dict[str, Any]
) -> None:
    answer = grpc_wire.start("Rollout", request_document)
    parts = [next(answer), next(answer)]
    named = {"trajectory_id": parts[0].start.trajectory_id}
    assert named["trajectory_id"] and parts[1].chunk.field in ("qpos", "qvel")
    with pytest.raises(grpc.RpcError) as caught:
        grpc_wire.call("GetTrajectory", named)
    assert caught.value.code() is grpc.StatusCode.NOT_FOUND
    parts += answer
    _, values = assemble(parts)
    kept = grpc_wire.call("GetTrajectory", named)
    for name in ("qpos", "qvel", "final_qpos", "final_qvel", "status", "diverged_step"):
        np.testing.assert_array_equal(values[name], kept[name], strict=True)
    np.testing.assert_array_equal(values["qpos"][-1], values["final_qpos"])
    # a short request of the same batch goes the plain way, and both give the same bits
    short = {**request_document, "ctrl": request_document["ctrl"][:50]}
    np.testing.assert_array_equal(grpc_wire.call("Rollout", short)["qpos"], values["qpos"][:51])
    grpc_wire.call("DeleteTrajectory", named)


def test_environments_of_a_batch_come_one_after_the_other(
    grpc_wire: GrpcWire, request_document: dict[str, Any]
) -> None:
    ctrl = np.stack([request_document["ctrl"][:1000] + 1e-3 * number for number in range(24)])
    document = {**request_document, "ctrl": ctrl, "checkpoints": "none", "states": "all"}
    answer = list(grpc_wire.start("Rollout", document))
    assert sum(part.WhichOneof("part") == "chunk" and part.chunk.field == "qpos" for part in answer) > 3
    _, values = assemble(answer)
    for number in (0, 13, 23):
        alone = grpc_wire.call("Rollout", {**document, "ctrl": ctrl[number, :100]})
        np.testing.assert_array_equal(alone["qpos"], values["qpos"][number, :101])
    np.testing.assert_array_equal(values["qvel"][:, -1], values["final_qvel"])


def test_who_leaves_before_the_end_keeps_nothing(
    server: ServerProcess, grpc_wire: GrpcWire, request_document: dict[str, Any]
) -> None:
    answer = grpc_wire.start("Rollout", request_document)
    named = {"trajectory_id": next(answer).start.trajectory_id}
    answer.cancel()
    deadline = time.monotonic() + 10
    before = server.cpu_seconds()
    while True:
        time.sleep(0.25)
        now = server.cpu_seconds()
        if now - before < 0.05:
            break
        assert time.monotonic() < deadline, "the engine goes on"
        before = now
    with pytest.raises(grpc.RpcError) as caught:
        grpc_wire.call("GetTrajectory", named)
    assert caught.value.code() is grpc.StatusCode.NOT_FOUND


def test_who_closes_the_connection_before_the_end_keeps_nothing(
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
    deadline = time.monotonic() + 10
    while _trajectories(npz_wire) != before:
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


def test_large_states_of_sessions_come_back_so_as_well(grpc_wire: GrpcWire, cart: str) -> None:
    carts = 9000
    created = grpc_wire.call("CreateSession", {"model_id": cart, "batch": carts})
    handle = {"session_id": created["session_id"]}
    numbers = np.random.default_rng(0).normal(size=(carts, 1))
    answer = list(grpc_wire.start("Reset", {**handle, "qpos": numbers, "request_id": "large-reset"}))
    assert len(answer) > 1 and answer[-1].chunk.field == "status"
    _, values = assemble(answer)
    np.testing.assert_array_equal(values["qpos"], numbers)
    # a repeat gets the answer that was recorded, in one part
    again = list(grpc_wire.start("Reset", {**handle, "qpos": numbers, "request_id": "large-reset"}))
    assert len(again) == 1
    np.testing.assert_array_equal(assemble(again)[1]["qpos"], numbers)
    grpc_wire.call("DeleteSession", handle)


def _document(trajectory_id: str = "t") -> dict[str, Any]:
    return {
        "trajectory_id": trajectory_id,
        "qpos": np.arange(40_000.0),
        "status": np.zeros(1, np.int32),
        "checkpoints": "every",
    }


async def _sent(draft: Draft, work: Any, count: Any = lambda _document: None) -> tuple[list[bytes], Any]:
    """Return the parts that were sent, and the error with which it ended."""
    parts: list[bytes] = []
    task = asyncio.ensure_future(work)
    try:
        start = trajectory_pb2.Trajectory()
        async for part in send_draft(Part, start, draft, task, count, Telemetry()):
            parts.append(part)
    except Exception as error:
        return parts, error
    return parts, None


@pytest.mark.parametrize("failure", ["work", "count", "another answer"])
def test_what_fails_after_it_was_announced_is_never_whole(failure: str) -> None:
    """A commit that fails, memory for the answer that is not there, another replica that was faster."""
    expected = {"work": LimitError, "count": LimitError, "another answer": UnavailableError}[failure]

    async def run() -> None:
        draft = Draft()

        async def work() -> dict[str, Any]:
            draft.update(_document())
            await asyncio.sleep(0.05)
            if failure == "work":
                raise LimitError("disk: full")
            return _document("another" if failure == "another answer" else "t")

        def count(_document: dict[str, Any]) -> None:
            if failure == "count":
                raise LimitError("memory: full")

        parts, error = await _sent(draft, work(), count)
        assert isinstance(error, expected)
        assert parts, "it was announced"
        with pytest.raises(ArgumentError, match="status: expected 4 bytes"):
            assemble(read_part(part, Part) for part in parts)

    asyncio.run(run())


@pytest.mark.parametrize("announced", [False, True])
def test_what_succeeds_is_whole_announced_or_not(announced: bool) -> None:
    async def run() -> None:
        draft = Draft()

        async def work() -> dict[str, Any]:
            if announced:
                draft.update(_document(), {"qpos": 800, "status": 0})
                await asyncio.sleep(0.02)
                draft.update(_document())
                await asyncio.sleep(0.02)
            return _document()

        parts, error = await _sent(draft, work())
        assert error is None
        assert (len(parts) > 1) == announced
        _, values = assemble(read_part(part, Part) for part in parts)
        np.testing.assert_array_equal(values["qpos"], _document()["qpos"])

    asyncio.run(run())

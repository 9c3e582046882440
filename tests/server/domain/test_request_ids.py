"""A mutation that is repeated has one effect and one answer: after lost replies, at once, after kill -9, on
another replica."""

from __future__ import annotations

import threading
import uuid
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import grpc
import numpy as np
import pytest

from revolute.contract.errors import ArgumentError
from testbed.cart import CART
from testbed.lossy_transport import mutate_with_losses
from testbed.server_process import running_server
from testbed.wire import GrpcWire, numbers

from ..conftest import Wire

H = 1e-3


def test_lost_replies_have_one_effect_each() -> None:
    """300 mutations; benchmarks/service/lost_replies.py has 10,000."""
    with running_server("--threads", "1") as server:
        found = mutate_with_losses(server.grpc, 300)
        assert found["wrong"] == []
        assert found["lost"]["reply"] > 5
        assert server.metric("revolute_trajectories") == found["trajectories"]


def test_a_repeat_gets_the_first_answer(wire: Wire, cart: str) -> None:
    once = {"request_id": str(uuid.uuid4())}
    session = wire.call("CreateSession", {"model_id": cart, "batch": 1, **once})
    assert wire.call("CreateSession", {"model_id": cart, "batch": 1, **once}) == session
    named = {"session_id": session["session_id"]}
    step = {**named, "ctrl": np.ones(1), "request_id": str(uuid.uuid4())}
    first = wire.call("Step", step)
    assert wire.call("Step", {**named, "ctrl": np.ones(1)})["step_count"] == 2
    again = wire.call("Step", step)
    assert again["step_count"] == first["step_count"] == 1
    assert numbers(again["qpos"]).tobytes() == numbers(first["qpos"]).tobytes()
    assert wire.call("GetState", named)["step_count"] == 2

    inputs = {"model_id": cart, "qpos": np.zeros(1), "qvel": np.zeros(1), "ctrl": np.ones((4, 1))}
    rollout = {**inputs, "request_id": str(uuid.uuid4())}
    trajectory = wire.call("Rollout", rollout)
    again = wire.call("Rollout", rollout)
    assert again["trajectory_id"] == trajectory["trajectory_id"]
    assert numbers(again["qpos"]).tobytes() == numbers(trajectory["qpos"]).tobytes()
    gone = {"trajectory_id": trajectory["trajectory_id"], "request_id": str(uuid.uuid4())}
    assert wire.call("DeleteTrajectory", gone) == wire.call("DeleteTrajectory", gone)
    assert wire.error("Rollout", rollout)[0].reason == "NOT_FOUND"
    close = {**named, "request_id": str(uuid.uuid4())}
    assert wire.call("DeleteSession", close) == wire.call("DeleteSession", close)
    assert wire.error("DeleteSession", named)[0].reason == "NOT_FOUND"


def test_an_id_belongs_to_one_request(wire: Wire, cart: str) -> None:
    once = str(uuid.uuid4())
    wire.call("CreateSession", {"model_id": cart, "batch": 1, "request_id": once})
    for verb, other in (
        ("CreateSession", {"model_id": cart, "batch": 2}),
        ("RegisterModel", {"text": CART}),
        ("DeleteTrajectory", {"trajectory_id": "x"}),
    ):
        error, code = wire.error(verb, {**other, "request_id": once})
        assert (type(error), error.argument) == (ArgumentError, "request_id")
        assert code in ("INVALID_ARGUMENT", "400")
    error, _ = wire.error("CreateSession", {"model_id": cart, "batch": 1, "request_id": "a b"})
    assert error.argument == "request_id"


def test_what_failed_may_be_tried_again(wire: Wire, cart: str) -> None:
    once = {"request_id": str(uuid.uuid4())}
    named = {"session_id": wire.call("CreateSession", {"model_id": cart, "batch": 1})["session_id"]}
    for _ in range(2):
        assert wire.error("Step", {**named, "ctrl": np.ones(2), **once})[0].argument == "ctrl"
    assert wire.call("Step", {**named, "ctrl": np.ones(1), **once})["step_count"] == 1
    wire.call("DeleteSession", named)


def test_repeats_at_the_same_time_wait_for_the_first(grpc_wire: GrpcWire, cart: str) -> None:
    named = {"session_id": grpc_wire.call("CreateSession", {"model_id": cart, "batch": 1})["session_id"]}
    step = {**named, "ctrl": np.ones(1), "steps": 200_000, "request_id": str(uuid.uuid4())}
    with ThreadPoolExecutor(8) as crew:
        answers = list(crew.map(lambda _: grpc_wire.call("Step", step)["step_count"], range(8)))
    assert answers == [200_000] * 8
    assert grpc_wire.call("GetState", named)["step_count"] == 200_000
    grpc_wire.call("DeleteSession", named)


def test_a_repeat_after_a_cancelled_call_has_one_effect(grpc_wire: GrpcWire, cart: str) -> None:
    named = {"session_id": grpc_wire.call("CreateSession", {"model_id": cart, "batch": 1})["session_id"]}
    step = {**named, "ctrl": np.ones(1), "steps": 1000, "request_id": str(uuid.uuid4())}
    for seconds in (1e-4, 1e-3, 3e-3, 1e-2):
        try:
            grpc_wire.call("Step", step, timeout=seconds)
        except grpc.RpcError as error:
            assert error.code() == grpc.StatusCode.DEADLINE_EXCEEDED
    assert grpc_wire.call("Step", step)["step_count"] == 1000
    assert grpc_wire.call("GetState", named)["step_count"] == 1000


def test_a_repeat_after_kill_has_one_effect(tmp_path: Path) -> None:
    store = ("--store", f"sqlite:///{tmp_path}/store.db", "--threads", "1")
    with running_server(*store) as server:
        wire = GrpcWire(server.grpc_target)
        cart = wire.call("RegisterModel", {"text": CART})["model_id"]
        named = {"session_id": wire.call("CreateSession", {"model_id": cart, "batch": 2})["session_id"]}
        step = {**named, "ctrl": np.ones(1), "steps": 5, "request_id": str(uuid.uuid4())}
        first = wire.call("Step", step)
        server.process.kill()
        server.process.wait()
    with running_server(*store) as server:
        wire = GrpcWire(server.grpc_target)
        again = wire.call("Step", step)
        assert again["qpos"].tobytes() == first["qpos"].tobytes() and again["step_count"] == 5
        assert wire.call("GetState", named)["step_count"] == 5
        assert wire.call("Step", {**named, "ctrl": np.ones(1)})["step_count"] == 6
        assert [entry["model_id"] for entry in wire.call("ListModels", {})["models"]] == [cart]


@pytest.fixture
def replicas(redis_address: str) -> Iterator[list[GrpcWire]]:
    """Return two servers that share an empty Redis store."""
    import redis

    redis.Redis.from_url(redis_address).flushall()
    flags = ("--store", redis_address, "--threads", "1")
    with running_server(*flags) as one, running_server(*flags) as other:
        yield [GrpcWire(server.grpc_target) for server in (one, other)]


def test_replicas_share_everything(replicas: list[GrpcWire]) -> None:
    one, other = replicas
    cart = one.call("RegisterModel", {"text": CART})["model_id"]
    assert other.call("GetModel", {"model_id": cart})["name"] == "cart"
    inputs = {"model_id": cart, "qpos": np.zeros(1), "qvel": np.zeros(1), "ctrl": np.ones((9, 1))}
    trajectory = one.call("Rollout", inputs)
    named = {"trajectory_id": trajectory["trajectory_id"]}
    pulled = {**named, "qpos_bar": np.ones((10, 1))}
    here, there = (wire.call("Backward", pulled)["arrays"] for wire in replicas)
    assert all(here[name].tobytes() == there[name].tobytes() for name in ("qpos", "qvel", "ctrl"))
    other.call("DeleteTrajectory", named)
    assert one.error("Backward", pulled)[0].reason == "NOT_FOUND"

    # steps of both, mixed at random: each happens once, and none upon a state that is old
    session = {"session_id": one.call("CreateSession", {"model_id": cart, "batch": 1})["session_id"]}
    step = {**session, "ctrl": np.ones(1)}
    counts: list[int] = []
    lock = threading.Lock()

    def work(wire: GrpcWire) -> None:
        for _ in range(25):
            count = wire.call("Step", {**step, "request_id": str(uuid.uuid4())})["step_count"]
            with lock:
                counts.append(count)

    with ThreadPoolExecutor(2) as crew:
        list(crew.map(work, replicas))
    assert sorted(counts) == list(range(1, 51))
    for wire in replicas:
        state = wire.call("GetState", session)
        np.testing.assert_allclose(state["qpos"], [[H * H * 50 * 51 / 2]], rtol=1e-12)
    same = {**step, "request_id": str(uuid.uuid4())}
    with ThreadPoolExecutor(2) as crew:
        answers = list(crew.map(lambda wire: wire.call("Step", same)["step_count"], replicas * 4))
    assert answers == [51] * 8
    one.call("DeleteSession", session)
    assert other.error("Step", step)[0].reason == "NOT_FOUND"


def test_remembered_requests_take_a_bounded_part_of_the_memory() -> None:
    with running_server("--store", "memory:", "--memory", "1MiB", "--threads", "1") as server:
        wire = GrpcWire(server.grpc_target)
        model = wire.call("RegisterModel", {"text": CART})["model_id"]
        bound = 1024**2 // 8
        used = []
        for number in range(200):
            request = {"model_id": model, "batch": 1, "request_id": f"create-{number}"}
            session = wire.call("CreateSession", request)["session_id"]
            # the last ones are always remembered
            assert wire.call("CreateSession", request)["session_id"] == session
            wire.call("DeleteSession", {"session_id": session, "request_id": f"delete-{number}"})
            if number in (0, 100, 199):
                used.append(server.metric("revolute_memory_bytes"))
        assert used[2] - used[0] < bound and used[2] - used[1] < 4096
        assert 50 < server.metric("revolute_requests_remembered") < 128
        assert server.metric("revolute_requests_remembered_bytes") > 1000
        wire.close()

"""A rollout deletes trajectories that its caller no longer needs: with it, and only those."""

from __future__ import annotations

import contextlib
from pathlib import Path
from typing import Any

import grpc
import numpy as np
import pytest

import revolute
from revolute_server.access import tokens as auth
from testbed.cart import CART
from testbed.server_process import running_server
from testbed.wire import GrpcWire

from .conftest import Wire


def _inputs(cart: str, **more: Any) -> dict[str, Any]:
    return {"model_id": cart, "qpos": np.zeros(1), "qvel": np.zeros(1), "ctrl": np.ones((3, 1)), **more}


def _kept(wire: Wire, identifier: str) -> bool:
    held: list[str] = []
    with contextlib.suppress(grpc.RpcError, AssertionError):
        held.append(wire.call("GetTrajectory", {"trajectory_id": identifier, "states": "final"})["model_id"])
    if not held:
        error, code = wire.error("GetTrajectory", {"trajectory_id": identifier, "states": "final"})
        assert isinstance(error, revolute.NotFoundError) and code in ("NOT_FOUND", "404")
    return bool(held)


@pytest.mark.parametrize("checkpoints", ["every", "slots=2", "none"])
def test_named_trajectories_go_and_no_others(wire: Wire, cart: str, checkpoints: str) -> None:
    first, second, third = (wire.call("Rollout", _inputs(cart))["trajectory_id"] for _ in range(3))
    gone = [first, "nothing", second, first]
    found = wire.call("Rollout", _inputs(cart, checkpoints=checkpoints, forget=gone, states="all"))
    assert found["qpos"].shape == (4, 1) if isinstance(found["qpos"], np.ndarray) else len(found["qpos"]) == 4
    assert [_kept(wire, name) for name in (first, second, third)] == [False, False, True]
    if checkpoints != "none":
        assert _kept(wire, found["trajectory_id"])
        wire.call("DeleteTrajectory", {"trajectory_id": found["trajectory_id"]})
    wire.call("DeleteTrajectory", {"trajectory_id": third})


def test_a_rollout_that_fails_deletes_nothing(wire: Wire, cart: str) -> None:
    kept = wire.call("Rollout", _inputs(cart))["trajectory_id"]
    error, _ = wire.error("Rollout", {**_inputs(cart, forget=[kept]), "ctrl": np.ones((3, 2))})
    assert isinstance(error, revolute.ArgumentError) and error.argument == "ctrl"
    assert _kept(wire, kept)
    error, _ = wire.error("Rollout", _inputs(cart, forget=[kept] * 1001))
    assert isinstance(error, revolute.ArgumentError) and error.argument == "forget"
    assert _kept(wire, kept)
    wire.call("DeleteTrajectory", {"trajectory_id": kept})


def test_a_repeat_has_the_first_answer(wire: Wire, cart: str) -> None:
    kept = wire.call("Rollout", _inputs(cart))["trajectory_id"]
    request = _inputs(cart, forget=[kept], request_id=f"forget-{kept}")
    answers = [wire.call("Rollout", request) for _ in range(2)]
    assert answers[0]["trajectory_id"] == answers[1]["trajectory_id"]
    assert not _kept(wire, kept)
    error, _ = wire.error("Rollout", {**request, "forget": []})
    assert isinstance(error, revolute.ArgumentError) and error.argument == "request_id"
    wire.call("DeleteTrajectory", {"trajectory_id": answers[0]["trajectory_id"]})


def test_what_is_anothers_stays(tmp_path: Path) -> None:
    tokens = {name: auth.new_token() for name in ("ann", "ben")}
    file = tmp_path / "tokens"
    file.write_text("".join(auth.token_line(name, "run", token) + "\n" for name, token in tokens.items()))
    with running_server("--tokens", str(file)) as server:
        ann, ben = (GrpcWire(server.grpc_target, token) for token in tokens.values())
        cart = ann.call("RegisterModel", {"text": CART})["model_id"]
        hers, his = (wire.call("Rollout", _inputs(cart))["trajectory_id"] for wire in (ann, ben))
        ben.call("Rollout", _inputs(cart, forget=[hers, his]))
        assert _kept(ann, hers) and not _kept(ben, his)
        ann.close()
        ben.close()


@pytest.mark.parametrize("store", ["memory:", "redis"])
def test_every_store_does_it(store: str, request: pytest.FixtureRequest) -> None:
    address = request.getfixturevalue("redis_address") if store == "redis" else store
    with running_server("--store", address) as server:
        wire = GrpcWire(server.grpc_target)
        cart = wire.call("RegisterModel", {"text": CART})["model_id"]
        first = wire.call("Rollout", _inputs(cart))["trajectory_id"]
        second = wire.call("Rollout", _inputs(cart, forget=[first]))["trajectory_id"]
        assert not _kept(wire, first) and _kept(wire, second)
        wire.close()


def test_a_loop_of_a_client_keeps_one() -> None:
    with running_server("--max-trajectories", "1") as server:
        for address in (server.grpc, server.http):
            with revolute.connect(address) as simulator:
                model = simulator.load_model(CART)
                for steps in range(1, 6):
                    trajectory = simulator.rollout(model, [0.0], [0.0], np.ones((steps, 1)))
                    gradient = trajectory.backward(qvel_bar=np.ones((steps + 1, 1)))
                    assert gradient.ctrl[-1, 0] == pytest.approx(0.001)
                    del trajectory

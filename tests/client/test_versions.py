"""Clients and servers of different releases: what fits works, what does not says who is to be upgraded."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from typing import Any

import numpy as np
import pytest

import revolute
from revolute.contract.v1 import server_pb2, trajectory_pb2
from revolute.contract.verbs import VERBS
from revolute.simulator import Simulator
from revolute_server.in_process import LocalTransport
from testbed.cart import CART
from testbed.server_process import ServerProcess
from testbed.stubs import Stub
from testbed.wire import GrpcWire
from tests.client.transports.test_grpc import serving


@pytest.mark.parametrize(
    ("versions", "cure"),
    [
        (["v2", "v3"], "upgrade the client: pip install -U revolute"),
        (["v0"], "upgrade the server"),
        ([], "check the address"),
    ],
)
def test_another_api_version_is_refused_with_who_is_to_be_upgraded(versions: list[str], cure: str) -> None:
    answer = server_pb2.GetServerInfoResponse(version="7.0", api_versions=versions)
    with serving(lambda _: answer) as address, pytest.raises(revolute.UnavailableError) as raised:
        revolute.connect(address)
    assert "expected a revolute server with API v1, got release 7.0" in str(raised.value)
    assert cure in str(raised.value)


def test_a_server_with_our_version_among_others_is_taken() -> None:
    answer = server_pb2.GetServerInfoResponse(version="7.0", api_versions=["v1", "v2"])
    with serving(lambda _: answer) as address, revolute.connect(address) as simulator:
        assert simulator.server_info()["version"] == "7.0"


def test_a_verb_that_an_older_server_lacks_over_grpc() -> None:
    answer = server_pb2.GetServerInfoResponse(version="0.0.1", api_versions=["v1"])
    older = pytest.raises(revolute.UnavailableError, match=r"^ListModels: .*; upgrade the server$")
    with serving(lambda _: answer) as address, revolute.connect(address) as simulator, older:
        simulator.models()


def test_a_verb_that_an_older_server_lacks_over_http(
    server: ServerProcess, monkeypatch: pytest.MonkeyPatch
) -> None:
    with revolute.connect(server.http) as simulator:
        for method, path in (("GET", "/v1/later"), ("POST", "/v1/server")):
            later = dataclasses.replace(VERBS["ListModels"], http_method=method, http_path=path)
            monkeypatch.setitem(VERBS, "ListModels", later)
            with pytest.raises(revolute.UnavailableError, match=r"^ListModels: .*; upgrade the server$"):
                simulator.models()


class _Later(LocalTransport):
    """Answers like a later server: with a field more in every message."""

    def call(self, verb: str, document: Mapping[str, Any], *, timeout: float | None = None) -> dict[str, Any]:
        return {**super().call(verb, document, timeout=timeout), "a_later_field": [1, 2]}


def test_fields_of_later_servers_are_passed_over() -> None:
    with Simulator(_Later(1)) as simulator:
        cart = simulator.load_model(CART)
        trajectory = simulator.rollout(cart, np.zeros(1), np.zeros(1), np.ones((3, 1)))
        gradient = trajectory.backward(np.ones((4, 1)))
        assert gradient["ctrl"].shape == (3, 1)
        with simulator.session(cart, batch=1) as session:
            session.step(np.ones(1))


def test_fields_of_later_clients_are_passed_over(server: ServerProcess) -> None:
    """Field 2000, which no message has, in a request's start."""
    wire = GrpcWire(server.grpc_target)
    cart = wire.call("RegisterModel", {"text": CART})["model_id"]
    start = trajectory_pb2.RolloutInputs(model_id=cart)
    for name, shape in (("qpos", [1]), ("qvel", [1]), ("ctrl", [1, 1])):
        tensor = getattr(start, name)
        tensor.dtype, tensor.data = "<f8", bytes(8)
        tensor.shape.extend(shape)
    unknown = b"\x82\x7d\x03abc"
    later = trajectory_pb2.RolloutInputs.FromString(start.SerializeToString() + unknown)
    assert b"abc" in later.SerializeToString()
    request = trajectory_pb2.RolloutRequest(start=later)
    parts = list(Stub(trajectory_pb2, wire.channel).Rollout(iter([request]), timeout=10))
    assert parts[0].start.trajectory_id
    wire.close()

"""With tokens, a session, trajectory or request id exists for the token that made it, and for admins."""

from __future__ import annotations

import contextlib
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import httpx
import numpy as np
import pytest

import revolute
from testbed.cart import CART
from testbed.server_process import ServerProcess, running_server
from testbed.token_files import write_tokens
from testbed.wire import GrpcWire, HttpWire

from .conftest import Wire

ROLES = {"ann": "run", "ben": "run", "rea": "read", "root": "admin"}
STRANGERS = ("ben", "rea")
NOBODY = "0" * 32
CTRL = np.ones((1, 1))


class Tenants:
    """A server with tokens, and each caller's way to it."""

    def __init__(self, server: ServerProcess, tokens: dict[str, str]) -> None:
        self.server = server
        self.tokens = tokens
        self._wires: list[Wire] = []

    def wire(self, name: str, kind: str = "grpc") -> Any:
        token = self.tokens[name]
        made: Wire = (
            GrpcWire(self.server.grpc_target, token)
            if kind == "grpc"
            else HttpWire(self.server.http, npz=False, token=token)
        )
        self._wires.append(made)
        return made

    def close(self) -> None:
        for wire in self._wires:
            wire.close()


@contextlib.contextmanager
def tenants(folder: Path, *flags: str) -> Iterator[Tenants]:
    file = folder / "tokens"
    tokens = write_tokens(file, ROLES)
    with running_server("--tokens", str(file), "--threads", "1", *flags) as server:
        found = Tenants(server, tokens)
        yield found
        found.close()


@pytest.fixture(scope="module", params=["sqlite", "redis", "memory"])
def shared(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[tuple[Tenants, str, str, str]]:
    """Return a server with a model, a session and a trajectory of ann's."""
    folder = tmp_path_factory.mktemp("owners")
    store = {"sqlite": f"sqlite:///{folder}/store.db", "memory": "memory:"}.get(request.param)
    store = store or request.getfixturevalue("redis_address")
    with tenants(folder, "--store", store) as found:
        yield found, *made_by(found.wire("ann"))


def made_by(wire: Any) -> tuple[str, str, str]:
    """Make a model, a session and a trajectory, and return their ids."""
    model = wire.call("RegisterModel", {"text": CART})["model_id"]
    session = wire.call("CreateSession", {"model_id": model, "batch": 1})["session_id"]
    inputs = {"model_id": model, "qpos": np.zeros(1), "qvel": np.zeros(1), "ctrl": np.ones((3, 1))}
    return model, session, wire.call("Rollout", inputs)["trajectory_id"]


def reading(session: str, trajectory: str) -> list[tuple[str, dict[str, Any]]]:
    return [
        ("GetSession", {"session_id": session}),
        ("GetState", {"session_id": session}),
        ("GetTrajectory", {"trajectory_id": trajectory}),
    ]


def changing(session: str, trajectory: str) -> list[tuple[str, dict[str, Any]]]:
    return [
        ("KeepAlive", {"session_id": session}),
        ("ForkSession", {"session_id": session}),
        ("Reset", {"session_id": session}),
        ("Step", {"session_id": session, "ctrl": CTRL, "steps": 1}),
        ("SetState", {"session_id": session, "qpos": CTRL}),
        ("SessionJacobian", {"session_id": session, "ctrl": CTRL}),
        ("DeleteSession", {"session_id": session}),
        ("Backward", {"trajectory_id": trajectory, "qpos_bar": np.ones((4, 1))}),
        ("Jvp", {"trajectory_id": trajectory, "qpos_tan": np.ones(1)}),
        ("DeleteTrajectory", {"trajectory_id": trajectory}),
    ]


@pytest.mark.parametrize("kind", ["grpc", "json"])
def test_what_is_anothers_is_as_if_it_were_not_there(
    shared: tuple[Tenants, str, str, str], kind: str
) -> None:
    found, _, session, trajectory = shared
    for name in STRANGERS:
        wire = found.wire(name, kind)
        verbs = reading if ROLES[name] == "read" else lambda *ids: [*reading(*ids), *changing(*ids)]
        pairs = zip(verbs(session, trajectory), verbs(NOBODY, NOBODY), strict=True)
        for (verb, document), (_, missing) in pairs:
            error, code = wire.error(verb, document)
            assert isinstance(error, revolute.NotFoundError), verb
            text = str(error).replace(session, NOBODY).replace(trajectory, NOBODY)
            assert (text, code) == (str(wire.error(verb, missing)[0]), wire.error(verb, missing)[1]), verb
        assert wire.call("ListSessions", {})["sessions"] == []
    own = found.wire("ann", kind)
    assert [entry["session_id"] for entry in own.call("ListSessions", {})["sessions"]] == [session]
    assert own.call("GetState", {"session_id": session})["step_count"] == 0
    assert own.call("GetTrajectory", {"trajectory_id": trajectory})


def test_an_answer_too_large_for_json_does_not_tell_that_a_session_is_there(tmp_path: Path) -> None:
    with tenants(tmp_path, "--max-json", "200") as found:
        ann, ben = found.wire("ann"), found.wire("ben", "json")
        model = ann.call("RegisterModel", {"text": CART})["model_id"]
        session = ann.call("CreateSession", {"model_id": model, "batch": 100})["session_id"]
        for wanted in (session, NOBODY):
            assert ben.error("Reset", {"session_id": wanted})[1] == "404"
        assert found.wire("ann", "json").error("Reset", {"session_id": session})[1] == "429"


def test_a_rollout_forgets_no_trajectory_of_anothers(shared: tuple[Tenants, str, str, str]) -> None:
    found, model, _, trajectory = shared
    inputs = {"model_id": model, "qpos": np.zeros(1), "qvel": np.zeros(1), "ctrl": np.ones((3, 1))}
    found.wire("ben").call("Rollout", {**inputs, "forget": [trajectory]})
    assert found.wire("ann").call("GetTrajectory", {"trajectory_id": trajectory})


@pytest.mark.parametrize("kind", ["grpc", "http"])
@pytest.mark.parametrize("steps", [40, 400_000])
def test_a_streamed_rollout_has_an_owner(
    shared: tuple[Tenants, str, str, str], kind: str, steps: int
) -> None:
    """Also a long one, whose answer is sent by other tasks than the one that let the call in."""
    found, _, _, _ = shared
    address = getattr(found.server, kind)
    with (
        revolute.connect(address, token=found.tokens["ann"]) as ann,
        revolute.connect(address, token=found.tokens["ben"]) as ben,
    ):
        cart = ann.load_model(CART)
        stream = ann.stream_rollout(cart, np.zeros(1), np.zeros(1), np.zeros((40, 1)), segment_steps=10)
        assert len(list(stream)) == 4
        for kept in (stream.trajectory, ann.rollout(cart, np.zeros(1), np.zeros(1), np.zeros((steps, 1)))):
            trajectory = kept.detach()
            with pytest.raises(revolute.NotFoundError):
                ben.trajectory(ben.load_model(CART), trajectory)
            ann.trajectory(cart, trajectory).delete()


def test_an_admin_sees_and_changes_everything(shared: tuple[Tenants, str, str, str]) -> None:
    found, _, session, trajectory = shared
    root = found.wire("root")
    assert session in [entry["session_id"] for entry in root.call("ListSessions", {})["sessions"]]
    for verb, document in reading(session, trajectory):
        assert root.call(verb, document)
    fork = root.call("ForkSession", {"session_id": session})["session_id"]
    # what an admin makes of it is the admin's own
    assert found.wire("ann").error("GetState", {"session_id": fork})[1] == "NOT_FOUND"
    root.call("DeleteSession", {"session_id": fork})


def test_request_ids_of_two_tokens_never_meet(shared: tuple[Tenants, str, str, str]) -> None:
    found, model, _, _ = shared
    for kind in ("grpc", "json"):
        request = {"model_id": model, "batch": 1, "request_id": f"mine-{kind}"}
        made = {}
        for name in ("ann", "ben", "root"):
            wire = found.wire(name, kind)
            made[name] = wire.call("CreateSession", request)["session_id"]
            assert wire.call("CreateSession", request)["session_id"] == made[name]
        assert len(set(made.values())) == 3
        # another request under the same name is nobody's business but one's own
        other = {**request, "batch": 2, "request_id": f"ann-{kind}"}
        found.wire("ann", kind).call("CreateSession", {**other, "batch": 3})
        assert found.wire("ben", kind).call("CreateSession", other)["batch"] == 2
        for name, session in made.items():
            found.wire(name).call("DeleteSession", {"session_id": session})
    for name in ("ann", "ben"):
        wire = found.wire(name)
        for entry in wire.call("ListSessions", {})["sessions"][name == "ann" :]:
            wire.call("DeleteSession", {"session_id": entry["session_id"]})


def test_a_page_has_only_ones_own(shared: tuple[Tenants, str, str, str]) -> None:
    """Also where sessions of others lie between one's own."""
    found, model, first, _ = shared
    ann, ben = found.wire("ann"), found.wire("ben")
    own, others = [first], []
    for _ in range(4):
        others += [ben.call("CreateSession", {"model_id": model, "batch": 1})["session_id"] for _ in range(3)]
        own.append(ann.call("CreateSession", {"model_id": model, "batch": 1})["session_id"])
    listed, token = [], ""
    while True:
        page = ann.call("ListSessions", {"page_size": 2, "page_token": token})
        assert 0 < len(page["sessions"]) <= 2
        listed += [entry["session_id"] for entry in page["sessions"]]
        if not (token := page["next_page_token"]):
            break
    assert listed == own
    for wire, sessions in ((ann, own[1:]), (ben, others)):
        for session in sessions:
            wire.call("DeleteSession", {"session_id": session})


def test_models_are_shared_and_deleted_by_their_owner(shared: tuple[Tenants, str, str, str]) -> None:
    found, _, _, _ = shared
    text = CART.replace('"cart"', '"shared cart"')
    ann, ben = found.wire("ann"), found.wire("ben")
    model = ann.call("RegisterModel", {"text": text})["model_id"]
    for name in STRANGERS:
        wire = found.wire(name)
        assert model in [entry["model_id"] for entry in wire.call("ListModels", {})["models"]]
        assert wire.call("GetModel", {"model_id": model})["nq"] == 1
    assert ben.call("RegisterModel", {"text": text})["model_id"] == model
    error, code = ben.error("DeleteModel", {"model_id": model})
    assert code == "PERMISSION_DENIED" and "only its owner and an admin" in str(error)
    assert "ann" not in str(error)
    ann.call("DeleteModel", {"model_id": model})


def test_only_the_owner_reads_back_the_files_of_a_model(shared: tuple[Tenants, str, str, str]) -> None:
    found, _, _, _ = shared
    ann = found.wire("ann")
    model = ann.call("RegisterModel", {"text": CART.replace('"cart"', '"secret cart"')})["model_id"]
    builtin = ann.call("RegisterModel", {"builtin": "pendulum2"})["model_id"]
    for name in STRANGERS:
        wire = found.wire(name)
        error, code = wire.error("GetModelFiles", {"model_id": model})
        assert code == "PERMISSION_DENIED" and "only its owner and an admin may read its files" in str(error)
        assert wire.call("GetModelFiles", {"model_id": builtin}) is not None
    for wire in (ann, found.wire("root")):
        assert wire.call("GetModelFiles", {"model_id": model}) is not None
    for each in (model, builtin):
        ann.call("DeleteModel", {"model_id": each})


@pytest.mark.parametrize("store", ["sqlite", "redis"])
def test_owners_survive_a_restart(store: str, tmp_path: Path, request: pytest.FixtureRequest) -> None:
    address = (
        f"sqlite:///{tmp_path}/store.db" if store == "sqlite" else request.getfixturevalue("redis_address")
    )
    flags = ("--tokens", str(tmp_path / "tokens"), "--threads", "1", "--store", address)
    tokens = write_tokens(tmp_path / "tokens", ROLES)
    with running_server(*flags) as server:
        first = Tenants(server, tokens)
        model, session, trajectory = made_by(first.wire("ann"))
        request_of_ann = {"model_id": model, "batch": 1, "request_id": "once"}
        once = first.wire("ann").call("CreateSession", request_of_ann)["session_id"]
        first.close()
        assert server.stop() == 0
    with running_server(*flags) as server:
        second = Tenants(server, tokens)
        ben = second.wire("ben")
        for verb, document in [*reading(session, trajectory), *changing(session, trajectory)]:
            assert ben.error(verb, document)[1] == "NOT_FOUND", verb
        other = ben.call("CreateSession", request_of_ann)["session_id"]
        ann = second.wire("ann")
        assert ann.call("CreateSession", request_of_ann)["session_id"] == once != other
        for verb, document in [*reading(session, trajectory), *changing(session, trajectory)]:
            assert ann.call(verb, document) is not None
        second.close()


def test_what_was_made_without_tokens_is_for_admins(tmp_path: Path) -> None:
    address = f"sqlite:///{tmp_path}/store.db"
    with running_server("--store", address) as server:
        open_to_all = GrpcWire(server.grpc_target)
        _, session, trajectory = made_by(open_to_all)
        open_to_all.close()
        assert server.stop() == 0
    with tenants(tmp_path, "--store", address) as found:
        for name in ("ann", "rea"):
            for verb, document in reading(session, trajectory):
                assert found.wire(name).error(verb, document)[1] == "NOT_FOUND"
        for verb, document in reading(session, trajectory):
            assert found.wire("root").call(verb, document)


def test_an_expired_session_of_anothers_was_never_there(tmp_path: Path) -> None:
    with tenants(tmp_path) as found:
        ann, ben = found.wire("ann"), found.wire("ben")
        model = ann.call("RegisterModel", {"text": CART})["model_id"]
        session = ann.call("CreateSession", {"model_id": model, "batch": 1, "lease": 0.2})["session_id"]
        # before and after the sweeper has deleted it
        for seconds in (0.5, 1.5):
            time.sleep(seconds)
            assert "its lease of 0.2 s ended" in str(ann.error("GetState", {"session_id": session})[0])
            assert "lease" not in str(ben.error("GetState", {"session_id": session})[0])


def test_no_header_gives_a_caller_a_second_share(tmp_path: Path) -> None:
    """Neither with tokens nor, where the host counts, without them."""
    headers = [{}, {"x-client-id": "other"}, {"x-forwarded-for": "192.0.2.7"}]

    def creations(address: str, model: str, token: str) -> list[int]:
        shown = {"authorization": f"Bearer {token}"} if token else {}
        body = {"model_id": model, "batch": 1}
        return [
            httpx.post(f"{address}/v1/sessions", json=body, headers={**shown, **more}).status_code
            for more in headers
        ]

    flags = ("--max-client-sessions", "1", "--store", "memory:")
    with tenants(tmp_path, *flags) as found:
        model = found.wire("ann").call("RegisterModel", {"text": CART})["model_id"]
        for name in ("ann", "ben"):
            assert creations(found.server.http, model, found.tokens[name]) == [201, 429, 429]
    with running_server(*flags) as server:
        wire = GrpcWire(server.grpc_target)
        model = wire.call("RegisterModel", {"text": CART})["model_id"]
        assert creations(server.http, model, "") == [201, 429, 429]
        # gRPC and HTTP are two ways of one host
        assert wire.error("CreateSession", {"model_id": model, "batch": 1})[1] == "RESOURCE_EXHAUSTED"
        wire.close()

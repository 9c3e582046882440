"""Sessions of any server of the v1 protocol: forked, set back, listed, kept alive; each mutation once."""

from __future__ import annotations

import uuid
from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest

from testbed.wire import numbers
from tests.conformance.conftest import Wire
from tests.conformance.test_protocol import CART, TOLERANCE, H


@pytest.fixture
def cart(wire: Wire) -> str:
    return wire.call("RegisterModel", {"text": CART})["model_id"]


@pytest.fixture
def session(wire: Wire, cart: str) -> Iterator[dict[str, Any]]:
    """Return the id of a session with two environments, ended with the test."""
    made = wire.call("CreateSession", {"model_id": cart, "batch": 2})
    handle = {"session_id": made["session_id"]}
    yield handle
    wire.call("DeleteSession", handle)


def _step(wire: Wire, handle: dict[str, Any], steps: int, **more: Any) -> dict[str, Any]:
    return wire.call("Step", {**handle, "ctrl": np.ones((2, 1)), "steps": steps, **more})


def _closed_form(state: dict[str, Any], steps: int) -> None:
    assert state["step_count"] == steps
    np.testing.assert_allclose(numbers(state["qvel"]), np.full((2, 1), H * steps), rtol=TOLERANCE)
    np.testing.assert_allclose(
        numbers(state["qpos"]), np.full((2, 1), H * H * steps * (steps + 1) / 2), rtol=TOLERANCE
    )


def test_a_fork_goes_its_own_way(wire: Wire, session: dict[str, Any]) -> None:
    _step(wire, session, 10)
    fork = {"session_id": wire.call("ForkSession", session)["session_id"]}
    assert fork != session
    _closed_form(wire.call("GetState", fork), 10)
    _closed_form(_step(wire, fork, 5), 15)
    _closed_form(wire.call("GetState", session), 10)
    wire.call("DeleteSession", fork)
    _closed_form(_step(wire, session, 1), 11)


def test_a_state_that_is_set_is_gone_on_from(wire: Wire, session: dict[str, Any]) -> None:
    kept = _step(wire, session, 10)
    _step(wire, session, 7)
    back = {name: numbers(kept[name]) for name in ("qpos", "qvel")}
    state = wire.call("SetState", {**session, **back, "step_count": 10})
    assert numbers(state["qpos"]).tobytes() == back["qpos"].tobytes()
    _closed_form(_step(wire, session, 5), 15)


def test_parameters_of_a_session_hold_for_later_steps(wire: Wire, session: dict[str, Any]) -> None:
    """The speed grows by h u / m with each step."""
    masses = np.array([[0.0, 1.0], [0.0, 4.0]])
    _step(wire, session, 2)
    assert not wire.call("SetParams", {**session, "params": {"body_mass": masses}})
    changed = numbers(_step(wire, session, 4)["qvel"])
    np.testing.assert_allclose(changed, H * np.array([[2.0 + 4.0], [2.0 + 4.0 / 4.0]]), rtol=TOLERANCE)
    # of those that are not named the model's values return
    wire.call("SetParams", {**session, "params": {}})
    np.testing.assert_allclose(numbers(_step(wire, session, 1)["qvel"]), changed + H, rtol=TOLERANCE)
    for params in ({"body_weight": masses}, {"body_mass": masses[0] - 1.0}):
        error, _ = wire.error("SetParams", {**session, "params": params})
        assert error.reason == "INVALID_ARGUMENT"
    np.testing.assert_allclose(numbers(_step(wire, session, 1)["qvel"]), changed + 2 * H, rtol=TOLERANCE)


def test_sessions_are_described_and_listed(wire: Wire, session: dict[str, Any], cart: str) -> None:
    _step(wire, session, 3)
    one = wire.call("GetSession", session)
    one = one.get("session", one)
    assert (one["model_id"], one["batch"], one["step_count"]) == (cart, 2, 3)
    assert one["lease"] > 0 and one["expires_in"] > 0
    wanted, token, seen = session["session_id"], "", 0
    while True:
        page = wire.call("ListSessions", {"page_size": 1, "page_token": token} if token else {"page_size": 1})
        assert len(page["sessions"]) <= 1
        seen += wanted in [entry["session_id"] for entry in page["sessions"]]
        token = page.get("next_page_token", "")
        if not token:
            break
    assert seen == 1


def test_a_lease_is_renewed(wire: Wire, cart: str) -> None:
    made = wire.call("CreateSession", {"model_id": cart, "batch": 1, "lease": 30.0})
    handle = {"session_id": made["session_id"]}
    assert wire.call("KeepAlive", handle)["lease"] == 30.0
    wire.call("DeleteSession", handle)
    error, _ = wire.error("KeepAlive", handle)
    assert error.reason == "NOT_FOUND"


def test_a_repeated_mutation_has_one_effect(wire: Wire, session: dict[str, Any]) -> None:
    name = str(uuid.uuid4())
    first = _step(wire, session, 4, request_id=name)
    again = _step(wire, session, 4, request_id=name)
    for field in ("qpos", "qvel"):
        assert numbers(first[field]).tobytes() == numbers(again[field]).tobytes()
    _closed_form(wire.call("GetState", session), 4)
    error, _ = wire.error("Step", {**session, "ctrl": np.ones((2, 1)), "steps": 5, "request_id": name})
    assert error.reason == "INVALID_ARGUMENT"
    _closed_form(wire.call("GetState", session), 4)


def test_a_model_is_deleted(wire: Wire) -> None:
    text = CART.replace('model="cart"', f'model="cart-{uuid.uuid4().hex}"')
    model = {"model_id": wire.call("RegisterModel", {"text": text})["model_id"]}
    wire.call("DeleteModel", model)
    error, _ = wire.error("GetModel", model)
    assert error.reason == "NOT_FOUND"

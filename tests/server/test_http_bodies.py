"""Bodies over HTTP: with a length or without one, and in memory that is used again."""

from __future__ import annotations

import json

import httpx
import numpy as np

import revolute
from revolute.codec.buffers import LARGE

from .conftest import CART
from .processes import ServerProcess, running_server

JSON = {"Content-Type": "application/json"}


def test_a_body_without_a_length_is_read_as_one_with(server: ServerProcess, cart: str) -> None:
    body = json.dumps({"model_id": cart, "batch": 3}).encode()
    for content in (body, iter([body[:7], body[7:]])):
        answer = httpx.post(f"{server.http}/v1/sessions", content=content, headers=JSON)
        assert answer.status_code == 201
        session_id = answer.json()["session_id"]
        assert httpx.get(f"{server.http}/v1/sessions/{session_id}").json()["batch"] == 3


def test_a_body_without_a_length_is_refused_above_the_limit() -> None:
    with running_server("--max-json", "64KiB") as server:
        pieces = (b" " * 1024 for _ in range(65))
        answer = httpx.post(f"{server.http}/v1/sessions", content=pieces, headers=JSON)
    assert (answer.status_code, answer.json()["argument"]) == (429, "body")


def test_what_came_in_one_body_is_not_touched_by_the_next() -> None:
    """Each of these is large enough for memory that is used again."""
    carts = LARGE // 8 + 1
    with running_server("--max-batch", str(carts)) as server, revolute.connect(server.http) as simulator:
        model = simulator.load_model(CART)
        sessions = [simulator.session(model, carts) for _ in range(3)]
        for _ in range(2):
            answers = [
                session.reset(np.full((carts, 1), float(number)), np.zeros((carts, 1)))
                for number, session in enumerate(sessions)
            ]
        for number, (session, answer) in enumerate(zip(sessions, answers, strict=True)):
            assert np.all(answer.qpos == number)
            assert np.all(session.state().qpos == number)

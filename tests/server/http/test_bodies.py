"""Bodies over HTTP: with a length or without one, and in memory that is used again."""

from __future__ import annotations

import contextlib
import json
import select
import threading
import time

import httpx
import numpy as np

import revolute
from revolute.contract.codec.buffers import LARGE
from testbed.server_process import ServerProcess, running_server

from ..test_http_connections import MIB, connected, head, resident_bytes, send_all

CARTS = 100
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
    cart = '<body><joint type="slide"/><geom size="1" contype="0" conaffinity="0"/></body>'
    train = f"<mujoco><worldbody>{CARTS * cart}</worldbody></mujoco>"
    trains = LARGE // 8 // CARTS + 1
    with running_server("--max-batch", str(trains)) as server, revolute.connect(server.http) as simulator:
        model = simulator.load_model(train)
        sessions = [simulator.session(model, trains) for _ in range(3)]
        for _ in range(2):
            answers = [
                session.reset(np.full((trains, CARTS), float(number)), np.zeros((trains, CARTS)))
                for number, session in enumerate(sessions)
            ]
        for number, (session, answer) in enumerate(zip(sessions, answers, strict=True)):
            assert np.all(answer.qpos == number)
            assert np.all(session.state().qpos == number)


def test_the_memory_of_unfinished_bodies_is_counted_as_they_come() -> None:
    """20 bodies of 40 MB that stop after 20 MB: as many as fit are held, the others refused."""
    begun = head("/v1/trajectories", b"content-type: application/x-npz\r\ncontent-length: 40000000\r\n\r\n")
    with running_server("--memory", "256MiB", "--body-timeout", "20") as server:
        before = server.metric("revolute_memory_bytes")
        with contextlib.ExitStack() as clients:
            open_ones = [clients.enter_context(connected(server)) for _ in range(20)]
            threads = [
                threading.Thread(target=send_all, args=(client, begun, bytes(20_000_000)))
                for client in open_ones
            ]
            for thread in threads:
                thread.start()
            for thread in threads:
                thread.join()
            assert 4 * 20_000_000 <= server.metric("revolute_memory_bytes") <= 256 * MIB
            assert resident_bytes(server) < (256 + 150) * MIB
            refused = [client for client in open_ones if select.select([client], [], [], 0)[0]]
            assert len(refused) >= 10
            assert b"429" in refused[0].recv(65536)
        _wait_for_memory(server, before)


def test_a_declared_length_holds_no_memory() -> None:
    """50 bodies of a gigabyte each of which one byte has come leave room for others."""
    begun = head(
        "/v1/trajectories", b"content-type: application/x-npz\r\ncontent-length: 1000000000\r\n\r\n1"
    )
    with running_server("--memory", "64MiB") as server, contextlib.ExitStack() as clients:
        before = server.metric("revolute_memory_bytes")
        for _ in range(50):
            clients.enter_context(connected(server)).sendall(begun)
        time.sleep(0.5)
        assert 0 < server.metric("revolute_memory_bytes") - before < 16 * MIB
        answer = httpx.post(f"{server.http}/v1/sessions", content=b"{}", headers=JSON)
        assert answer.status_code == 400
        clients.close()
        _wait_for_memory(server, before)


def _wait_for_memory(server: ServerProcess, expected: float) -> None:
    deadline = time.monotonic() + 10
    while server.metric("revolute_memory_bytes") > expected and time.monotonic() < deadline:
        time.sleep(0.1)
    assert server.metric("revolute_memory_bytes") <= expected

"""Closing a simulator while another thread waits for its answer, and blocks that end without their server."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import trustme

import revolute
from testbed.cart import CART
from testbed.server_process import ServerProcess, running_server

FOREVER = 10**9


def outcome(work: Callable[[], Any], close: Callable[[], None]) -> BaseException:
    """Close while another thread works, and return what that thread got."""
    caught: list[BaseException] = []

    def run() -> None:
        try:
            work()
        except BaseException as error:
            caught.append(error)

    thread = threading.Thread(target=run)
    thread.start()
    time.sleep(0.3)
    assert thread.is_alive()
    close()
    thread.join(20.0)
    assert not thread.is_alive()
    return caught[0]


def check(address: str, ca: str | None = None) -> None:
    simulator = revolute.connect(address, ca=ca)
    session = simulator.session(simulator.load_model(CART), 1)
    error = outcome(lambda: session.step([0.0], steps=FOREVER), simulator.close)
    assert type(error) is revolute.CancelledError
    assert str(error) == "Step: expected an answer, got a simulator that was closed meanwhile"
    with pytest.raises(revolute.UnavailableError, match="expected an open simulator, got a closed one"):
        simulator.models()


@pytest.mark.parametrize("transport", ["grpc", "http"])
def test_a_waiting_call_ends(server: ServerProcess, transport: str) -> None:
    check(getattr(server, transport))


def test_a_waiting_call_ends_with_tls(tmp_path: Path) -> None:
    authority = trustme.CA()
    issued = authority.issue_cert("127.0.0.1")
    authority.cert_pem.write_to_path(str(tmp_path / "ca.pem"))
    issued.private_key_and_cert_chain_pem.write_to_path(str(tmp_path / "server.pem"))
    with running_server(*(f"--tls-{kind}={tmp_path}/server.pem" for kind in ("cert", "key"))) as server:
        check(server.http, str(tmp_path / "ca.pem"))


def test_a_waiting_call_ends_over_a_unix_socket(tmp_path: Path) -> None:
    with running_server("--http-socket", str(tmp_path / "http.sock")) as server:
        check(server.addresses["http_socket"])


@pytest.mark.parametrize("transport", ["grpc", "http"])
def test_a_pause_between_attempts_ends(transport: str) -> None:
    with running_server() as server:
        simulator = revolute.connect(getattr(server, transport), retries=100)
        server.process.kill()
        server.process.wait()
        error = outcome(simulator.server_info, simulator.close)
        assert type(error) is revolute.CancelledError


@pytest.mark.parametrize("transport", ["grpc", "http"])
def test_the_error_inside_of_a_block_is_the_one_that_is_raised(transport: str) -> None:
    """Also when the block cannot be ended well, since the server has gone meanwhile."""
    with running_server() as server:
        simulator = revolute.connect(getattr(server, transport), retries=0)
        model = simulator.load_model("pendulum1")
        blocks = simulator.rollout(model, [0.0], [0.0], [[0.0]]), simulator.session(model)
        server.process.kill()
        server.process.wait()
        for block in blocks:
            with pytest.raises(KeyboardInterrupt), block:
                raise KeyboardInterrupt
            with pytest.raises(revolute.UnavailableError), block:
                pass

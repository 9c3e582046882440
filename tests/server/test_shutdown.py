"""SIGTERM ends the server within the grace time, whatever hangs, and a second signal ends it at once."""

from __future__ import annotations

import contextlib
import signal
import socket
import sqlite3
import threading
import time
from collections.abc import Iterator
from pathlib import Path

import grpc
import pytest

from testbed.cart import CART
from testbed.server_process import ServerProcess, running_server
from testbed.wire import GrpcWire

GRACE = 2.0
SLACK = 1.5
"""Seconds in which a process on a crowded machine ends."""


@contextlib.contextmanager
def locked(path: Path) -> Iterator[None]:
    """Hold the file of a store as another process that hangs would."""
    connection = sqlite3.connect(path, isolation_level=None)
    connection.execute("BEGIN IMMEDIATE")
    try:
        yield
    finally:
        connection.execute("ROLLBACK")
        connection.close()


@contextlib.contextmanager
def registering(server: ServerProcess) -> Iterator[None]:
    """Have a call wait for the store while the block runs."""

    def register() -> None:
        wire = GrpcWire(server.grpc_target)
        with pytest.raises(grpc.RpcError):
            wire.call("RegisterModel", {"text": CART}, timeout=60.0)
        wire.close()

    thread = threading.Thread(target=register)
    thread.start()
    time.sleep(1.0)
    try:
        yield
    finally:
        thread.join(30.0)


@contextlib.contextmanager
def half_sent(server: ServerProcess) -> Iterator[None]:
    """Hold requests of which a half has come: of a header, of a body."""
    host, port = server.http.removeprefix("http://").split(":")
    with contextlib.ExitStack() as connections:
        for content in (
            b"",
            b"POST /v1/models HT",
            b"POST /v1/models HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n"
            b"Content-Length: 1000\r\n\r\n{",
        ):
            connection = connections.enter_context(socket.create_connection((host, int(port))))
            connection.sendall(content)
        time.sleep(0.2)
        yield


def seconds_to_end(server: ServerProcess) -> float:
    started = time.monotonic()
    assert server.stop(signal.SIGTERM) == 0
    return time.monotonic() - started


def test_a_store_that_hangs_does_not_hold_up_the_end(tmp_path: Path) -> None:
    store = tmp_path / "store.db"
    with (
        running_server("--grace", str(GRACE), "--store", f"sqlite:///{store}") as server,
        locked(store),
        registering(server),
    ):
        assert seconds_to_end(server) < GRACE + SLACK
        assert "Traceback" not in server.log.read_text()


def test_requests_that_never_end_do_not_hold_up_the_end() -> None:
    with running_server("--grace", str(GRACE)) as server, half_sent(server):
        assert seconds_to_end(server) < GRACE + SLACK


def test_a_second_signal_ends_what_hangs_at_once(tmp_path: Path) -> None:
    store, path = tmp_path / "store.db", tmp_path / "http.sock"
    flags = ("--grace", "60", "--store", f"sqlite:///{store}", "--http-socket", str(path))
    with running_server(*flags) as server, locked(store), registering(server), half_sent(server):
        server.process.send_signal(signal.SIGTERM)
        time.sleep(0.5)
        assert server.process.poll() is None and path.exists()
        assert seconds_to_end(server) < SLACK
        assert not path.exists()

"""Connections that send much which belongs to no call are closed; those with large calls stay."""

from __future__ import annotations

import contextlib
import socket
import sys
import time
from collections.abc import Callable, Iterator

import numpy as np
import pytest

from revolute_server.grpc.traffic import Traffic, received_bytes
from revolute_server.grpc.waits import Peers
from testbed.cart import CART
from testbed.http2 import CONTINUATION, END_HEADERS, HEADERS, RST_STREAM, Http2, call_fields, fields, frame
from testbed.server_process import ServerProcess, running_server
from testbed.wire import GrpcWire

MIB = 1024**2
PATIENCE = 30.0

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="only Linux counts the bytes of a connection")


@pytest.fixture(scope="module")
def server() -> Iterator[ServerProcess]:
    with running_server("--threads", "1") as running:
        yield running


def resets(client: Http2) -> Iterator[bytes]:
    """Streams that are opened and reset at once."""
    head = fields(call_fields("/revolute.v1.ModelService/ListModels"))
    for first in range(1, 2**30, 200):
        yield b"".join(
            frame(HEADERS, END_HEADERS, stream, head) + frame(RST_STREAM, 0, stream, bytes(4))
            for stream in range(first, first + 200, 2)
        )


def endless_head(client: Http2) -> Iterator[bytes]:
    """One call whose header does not end."""
    yield frame(HEADERS, 0, 1, fields(call_fields("/a")))
    while True:
        yield frame(CONTINUATION, 0, 1, fields({"x": "y" * 15_000}))


def unknown_frames(client: Http2) -> Iterator[bytes]:
    """Frames of a type that HTTP/2 does not have, which are to be ignored."""
    while True:
        yield frame(99, 0, 0, bytes(16_000))


@pytest.mark.parametrize("flood", [resets, endless_head, unknown_frames])
def test_a_flood_is_closed(server: ServerProcess, flood: Callable[[Http2], Iterator[bytes]]) -> None:
    with Http2(server.grpc_target) as client:
        pieces, until = flood(client), time.monotonic() + PATIENCE
        with contextlib.suppress(OSError):
            while client.is_open():
                assert time.monotonic() < until, "the connection stays open"
                # enough at a time for a flood on a machine that has other work
                client.send(b"".join(next(pieces) for _ in range(10)))
                time.sleep(0.001)


def test_calls_of_many_bytes_are_no_flood(server: ServerProcess) -> None:
    """Large arrays in many parts, many small calls, and some that are refused, over one connection."""
    wire = GrpcWire(server.grpc_target)
    model = wire.call("RegisterModel", {"text": CART})["model_id"]
    session = wire.call("CreateSession", {"model_id": model, "batch": 60_000})["session_id"]
    state = {"session_id": session, "qpos": np.zeros((60_000, 1)), "qvel": np.zeros((60_000, 1))}
    for _ in range(40):
        wire.call("SetState", state)
    for _ in range(10):
        wire.error("SetState", {**state, "session_id": "0" * 32})
    for _ in range(300):
        wire.call("ListModels", {})
    wire.close()
    assert "Traceback" not in server.log.read_text()


def test_bytes_of_calls_are_explained() -> None:
    peers = Peers()
    traffic = Traffic(peers)
    with peers.working("large"):
        for _ in range(100):
            peers.received("large", MIB)
    with peers.working("waits"):
        assert traffic.floods({"large": 101 * MIB, "waits": 3 * MIB, "quiet": MIB}, 0.25) == set()
        assert traffic.floods({"large": 160 * MIB, "waits": 30 * MIB, "quiet": 33 * MIB}, 0.25) == {"large"}
    # what is sent slowly besides calls is forgiven
    assert traffic.floods({"quiet": 34 * MIB}, 0.25) == set()
    # a connection that ended is forgotten, and another may have its name
    assert peers.explained("large") == 0


def test_the_system_counts_the_bytes() -> None:
    with (
        socket.create_server(("127.0.0.1", 0)) as listener,
        socket.create_connection(listener.getsockname()) as client,
        listener.accept()[0] as accepted,
    ):
        client.sendall(bytes(12_345))
        received = 0
        while received < 12_345:
            received += len(accepted.recv(65536))
        assert received_bytes(accepted) == 12_345

"""Requests over HTTP that are too long or never end: refused early, closed in time, and in nobody's way."""

from __future__ import annotations

import contextlib
import json
import socket
import ssl
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import httpx
import pytest
import trustme

from testbed.cart import CART
from testbed.long_form import repeats
from testbed.server_process import ServerProcess, running_server

MIB = 1024**2
JSON = b"content-type: application/json\r\n"
SLOWEST_HEALTH = 2.0
"""Seconds that /livez may take beside an attack: 0.1 on idle cores, much more where many others compute."""

QUICK = (
    *("--header-timeout", "1", "--body-timeout", "1", "--idle-timeout", "3", "--min-body-rate", "1KiB"),
    *("--max-header", "16KiB", "--max-url", "4KiB", "--max-header-fields", "40"),
)


@pytest.fixture(scope="module")
def quick() -> Iterator[ServerProcess]:
    """Return a server with small limits and short times."""
    with running_server(*QUICK) as server:
        yield server


def connected(server: ServerProcess, seconds: float = 15.0) -> socket.socket:
    host, port = server.http.removeprefix("http://").split(":")
    return socket.create_connection((host, int(port)), timeout=seconds)


def head(path: str = "/v1/sessions", *fields: bytes, method: str = "POST") -> bytes:
    return f"{method} {path} HTTP/1.1\r\nhost: 127.0.0.1\r\n".encode() + b"".join(fields)


def answer_of(client: socket.socket) -> tuple[int, dict[str, Any]]:
    """Read until the server closes; return status and problem of the one answer, 0 and nothing for none."""
    received = b""
    with contextlib.suppress(ConnectionResetError):
        while piece := client.recv(65536):
            received += piece
    if not received:
        return 0, {}
    top, _, body = received.partition(b"\r\n\r\n")
    assert b"connection: close" in top.lower()
    return int(top.split()[1]), json.loads(body)


def send_all(client: socket.socket, *pieces: bytes) -> None:
    """Send, as far as the server takes it."""
    with contextlib.suppress(OSError):
        for piece in pieces:
            client.sendall(piece)


@contextlib.contextmanager
def health_watched(server: ServerProcess) -> Iterator[list[float]]:
    """Ask for /livez on a connection of its own all the time; the list gets the seconds of each answer."""
    seconds: list[float] = []
    begun, end = threading.Event(), threading.Event()

    def ask() -> None:
        with httpx.Client(base_url=server.http, timeout=30.0) as client:
            while not end.is_set():
                began = time.monotonic()
                assert client.get("/livez").status_code == 200
                seconds.append(time.monotonic() - began)
                begun.set()
                end.wait(0.01)

    thread = threading.Thread(target=ask)
    thread.start()
    try:
        assert begun.wait(30)
        yield seconds
    finally:
        end.set()
        thread.join()
    assert seconds and max(seconds) < SLOWEST_HEALTH, max(seconds)


def resident_bytes(server: ServerProcess) -> int:
    status = Path(f"/proc/{server.process.pid}/status").read_text()
    return int(status.partition("VmHWM:")[2].split()[0]) * 1024


@pytest.mark.parametrize(
    ("start", "status", "argument", "flag"),
    [
        (b"POST /v1/" + b"a" * (4 * MIB), 414, "url", "--max-url"),
        (head() + b"x: " + b"a" * (4 * MIB), 431, "headers", "--max-header "),
        (head() + b"a" * (4 * MIB), 431, "headers", "--max-header "),
        (head() + b"a:b\r\n" * 41, 431, "headers", "--max-header-fields"),
        (head() + b"a:b\r\n" * 500_000, 431, "headers", "--max-header-fields"),
        # what follows a body may not be endless, nor what comes between its chunks
        (
            head() + JSON + b"transfer-encoding: chunked\r\n\r\n1\r\n{\r\n0\r\nx: " + b"a" * (4 * MIB),
            431,
            "headers",
            "--max-header ",
        ),
        (
            head() + JSON + b"transfer-encoding: chunked\r\n\r\n1\r\n{\r\n0\r\n" + b"a:b\r\n" * 41,
            431,
            "headers",
            "--max-header-fields",
        ),
        (
            head() + JSON + b"transfer-encoding: chunked\r\n\r\n1;" + b"a" * (4 * MIB),
            431,
            "headers",
            "--max-header ",
        ),
    ],
    ids=["url", "value", "name", "fields", "many fields", "trailer", "trailers", "chunk extension"],
)
def test_a_head_has_bounds(quick: ServerProcess, start: bytes, status: int, argument: str, flag: str) -> None:
    with health_watched(quick), connected(quick) as client:
        send_all(client, start)
        found, problem = answer_of(client)
    assert (found, problem["reason"], problem["argument"]) == (status, "LIMIT_EXCEEDED", argument)
    assert flag in problem["detail"]


def test_large_heads_hold_neither_the_loop_nor_memory() -> None:
    """Before any login; 20 heads of 30 MB that do not end, and one each of 60 MB in header and URL."""
    with running_server("--memory", "64MiB") as server:
        before = resident_bytes(server)
        with health_watched(server), contextlib.ExitStack() as clients:
            threads = []
            for size, start in (*[(30, head() + b"x: ")] * 20, (60, head() + b"y: "), (60, b"GET /")):
                client = clients.enter_context(connected(server))
                pieces = (start, *[b"a" * MIB] * size)
                threads.append(threading.Thread(target=send_all, args=(client, *pieces)))
            for thread in threads:
                thread.start()
            for thread in threads:
                thread.join()
        assert resident_bytes(server) - before < 48 * MIB


def test_a_request_that_is_none_is_a_problem(quick: ServerProcess) -> None:
    with connected(quick) as client:
        send_all(client, b"\x16\x03\x01 hello\r\n\r\n")
        status, problem = answer_of(client)
    assert (status, problem["reason"], problem["argument"]) == (400, "INVALID_ARGUMENT", "request")


@pytest.mark.parametrize(
    ("start", "argument"),
    [
        (b"POST", "headers"),
        (head(), "headers"),
        (head() + JSON + b"content-length: 1000\r\n\r\n", "body"),
        (head() + JSON + b"content-length: 1000\r\n\r\n{", "body"),
        (head() + JSON + b"transfer-encoding: chunked\r\n\r\n1\r\n{\r\n", "body"),
    ],
)
def test_a_request_that_does_not_go_on_ends(quick: ServerProcess, start: bytes, argument: str) -> None:
    with connected(quick) as client:
        client.sendall(start)
        began = time.monotonic()
        status, problem = answer_of(client)
    assert 0.5 < time.monotonic() - began < 8
    assert (status, problem["reason"], problem["argument"]) == (408, "DEADLINE_EXCEEDED", argument)


@pytest.mark.parametrize(
    ("start", "argument"), [(head(), "headers"), (head() + JSON + b"content-length: 1000\r\n\r\n", "body")]
)
def test_a_trickle_ends_as_well(quick: ServerProcess, start: bytes, argument: str) -> None:
    with connected(quick) as client:
        client.sendall(start)
        client.settimeout(0.2)
        began = time.monotonic()
        received = b""
        while time.monotonic() - began < 10 and not received.endswith(b"}"):
            send_all(client, b"1")
            with contextlib.suppress(TimeoutError, ConnectionError):
                received += client.recv(65536)
    problem = json.loads(received.partition(b"\r\n\r\n")[2])
    assert (problem["status"], problem["argument"]) == (408, argument)


def test_an_answer_that_nobody_reads_is_given_up() -> None:
    """The connection goes, and the answer's memory with it; one that reads now and then gets all of it."""
    flags = ("--answer-timeout", "2", "--max-batch", "1000000", "--threads", "1")
    with running_server(*flags) as server:
        npz = {"accept": "application/x-npz"}
        model = httpx.post(server.http + "/v1/models", json={"text": CART}).json()["model_id"]
        opened = httpx.post(server.http + "/v1/sessions", json={"model_id": model, "batch": 1_000_000})
        path = f"/v1/sessions/{opened.json()['session_id']}/state"
        before = server.metric("revolute_memory_bytes")
        with connected(server) as client:
            client.sendall(
                f"GET {path} HTTP/1.1\r\nhost: localhost\r\naccept: application/x-npz\r\n\r\n".encode()
            )
            wait_until(lambda: server.metric("revolute_memory_bytes") > before + 10e6)
            wait_until(lambda: server.metric("revolute_memory_bytes") <= before)
        with httpx.stream("GET", server.http + path, headers=npz) as answer:
            received = 0
            for number, piece in enumerate(answer.iter_raw(4_000_000)):
                time.sleep(1.2 * (number < 3))
                received += len(piece)
        assert received == int(answer.headers["content-length"])


def wait_until(condition: Callable[[], object]) -> None:
    until = time.monotonic() + 15
    while not condition():
        assert time.monotonic() < until, "it did not happen"
        time.sleep(0.05)


def test_silent_connections_are_closed(quick: ServerProcess) -> None:
    """Without a byte, and after an answer; and those that were answered but never send their body."""
    get = head("/livez", b"\r\n", method="GET")
    for start, shortest, longest in ((b"", 0.5, 6), (get, 2, 10)):
        with connected(quick) as client:
            client.sendall(start)
            began = time.monotonic()
            while client.recv(65536):
                pass
            assert shortest < time.monotonic() - began < longest
    with connected(quick) as client:
        client.sendall(head("/livez", b"content-length: 1000000\r\n\r\n", method="GET"))
        received = b""
        while b"alive" not in received:
            received += client.recv(65536)
        client.settimeout(0.2)
        began = time.monotonic()
        with contextlib.suppress(ConnectionError):
            while time.monotonic() - began < 10:
                client.sendall(b"1")
                with contextlib.suppress(TimeoutError):
                    if not client.recv(65536):
                        break
        assert time.monotonic() - began < 6


def test_pipelined_requests_wait_for_their_turn(quick: ServerProcess) -> None:
    """A flood of them is answered in order, and what waits is not read without bounds."""
    count = repeats(10_000, 40_000)
    with health_watched(quick), connected(quick, 60) as client:
        flood = head("/livez", b"\r\n", method="GET") * count
        sender = threading.Thread(target=send_all, args=(client, flood))
        sender.start()
        received, rest = 0, b""
        while received < count:
            piece = client.recv(MIB)
            assert piece, received
            rest += piece
            received += rest.count(b'{"status":"alive"}')
            rest = rest[-17:] if not rest.endswith(b"}") else b""
        sender.join()
    with connected(quick) as client:
        for part in (b"/readyz", b"/livez"):
            client.sendall(head(part.decode(), b"\r\n", method="GET"))
        received_bytes = b""
        while received_bytes.count(b'{"status"') < 2:
            received_bytes += client.recv(65536)
        assert received_bytes.index(b'"ready"') < received_bytes.index(b'"alive"')


def test_idle_connections_make_room_for_others() -> None:
    with running_server("--max-connections", "8") as server, contextlib.ExitStack() as clients:
        silent = [clients.enter_context(connected(server)) for _ in range(30)]
        half = [clients.enter_context(connected(server)) for _ in range(30)]
        for client in half:
            client.sendall(head())
        assert httpx.get(server.http + "/livez").status_code == 200
        with contextlib.suppress(ConnectionResetError):
            assert silent[0].recv(1) == b"", "the oldest one was not closed"


def test_a_client_without_a_place_is_told_so() -> None:
    """As long as all others have a request under way, and these go on."""
    begun = head() + JSON + b"content-length: 100000\r\n\r\n"
    with running_server("--max-connections", "4") as server, contextlib.ExitStack() as clients:
        busy = [clients.enter_context(connected(server)) for _ in range(4)]
        for client in busy:
            client.sendall(begun)
        time.sleep(0.5)
        with connected(server) as client:
            status, problem = answer_of(client)
        assert (status, problem["reason"], problem["argument"]) == (503, "UNAVAILABLE", "connections")
        assert "--max-connections" in problem["detail"] and problem["retry_after"] == 1.0
        # those that do not go on make room
        time.sleep(2.5)
        assert httpx.get(server.http + "/livez").status_code == 200


def test_silent_handshakes_are_closed(tmp_path: Path) -> None:
    authority = trustme.CA()
    certificate = authority.issue_cert("127.0.0.1")
    certificate.private_key_pem.write_to_path(tmp_path / "key.pem")
    certificate.cert_chain_pems[0].write_to_path(tmp_path / "cert.pem")
    files = ("--tls-cert", str(tmp_path / "cert.pem"), "--tls-key", str(tmp_path / "key.pem"))
    context = ssl.create_default_context()
    authority.configure_trust(context)
    flags = ("--header-timeout", "2", "--max-connections", "8", "--max-header", "16KiB")
    with running_server(*files, *flags) as server, contextlib.ExitStack() as clients:
        host, port = server.http.removeprefix("https://").split(":")
        silent = [
            clients.enter_context(socket.create_connection((host, int(port)), timeout=15)) for _ in range(30)
        ]
        assert httpx.get(server.http + "/livez", verify=context).status_code == 200
        began = time.monotonic()
        for client in silent:
            with contextlib.suppress(ConnectionResetError):
                assert client.recv(1) == b""
        assert time.monotonic() - began < 10
        raw = clients.enter_context(socket.create_connection((host, int(port)), timeout=15))
        with context.wrap_socket(raw, server_hostname=host) as wrapped:
            wrapped.sendall(head() + b"x: " + b"a" * 20_000)
            assert answer_of(wrapped)[0] == 431


@pytest.mark.parametrize("npz", [False, True])
def test_a_client_that_leaves_in_the_middle_of_a_body_is_no_fault(npz: bool) -> None:
    kind = b"content-type: application/x-npz\r\n" if npz else JSON
    with running_server("--log-level", "info") as server:
        for length in (b"content-length: 1000000\r\n\r\n{", b"transfer-encoding: chunked\r\n\r\n1\r\n{\r\n"):
            with connected(server) as client:
                client.sendall(head("/v1/sessions", kind, length))
                time.sleep(0.2)
        deadline = time.monotonic() + 10
        while time.monotonic() < deadline and server.log.read_text().count("CANCELLED") < 2:
            time.sleep(0.05)
        log = server.log.read_text()
        assert log.count("SessionService.CreateSession CANCELLED over http") == 2
        assert "Traceback" not in log and "INTERNAL" not in log and "incident" not in log
        assert server.metric("revolute_memory_bytes") < 1024


@pytest.mark.parametrize("start", ["head", "body"])
def test_what_follows_a_refusal_is_dropped_slowly_and_not_without_end(
    quick: ServerProcess, start: str
) -> None:
    """A client reads its refusal after some more bytes; one that sends on and on is cut off."""
    refused = head("/v1/models", JSON, b"content-length: 1000000000\r\n\r\n")
    if start == "head":
        refused = head() + b"x: " + b"a" * 20_000
    with connected(quick) as client:
        send_all(client, refused, b"a" * (4 * MIB))
        assert client.recv(12) == b"HTTP/1.1 " + {"head": b"431", "body": b"429"}[start]
    with connected(quick) as client, health_watched(quick):
        send_all(client, refused)
        sent, block = 0, b"a" * MIB
        with contextlib.suppress(OSError):
            while sent < 400 * MIB:
                client.sendall(block)
                sent += MIB
        # 64 MiB are dropped; the system's own buffers take some more
        assert sent < 100 * MIB

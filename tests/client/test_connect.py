"""Connecting: addresses, servers that are not there, and what is said about it."""

from __future__ import annotations

import contextlib
import socket
import threading
import time
from collections.abc import Iterator

import pytest

import revolute
from revolute.transports.network import parse_address
from testbed.server_process import ServerProcess

GOOD = {
    "grpc://robots": ("grpc", "robots", 50051, False),
    "grpc://127.0.0.1:7": ("grpc", "127.0.0.1", 7, True),
    "grpcs://[::1]:7": ("grpcs", "::1", 7, True),
    "http://localhost:8000/": ("http", "localhost", 8000, True),
    "https://robots.example/api": ("https", "robots.example", 443, False),
}


@pytest.mark.parametrize("text", GOOD)
def test_addresses(text: str) -> None:
    address = parse_address(text)
    assert (address.scheme, address.host, address.port, address.is_loopback) == GOOD[text]


BAD = [
    "",
    "localhost:50051",
    "ftp://a",
    "grpc://",
    "grpc://a:99999",
    "grpc://a/path",
    "http://a?b",
    "http://u:p@a",
]


@pytest.mark.parametrize("text", BAD)
def test_other_text_is_refused(text: str) -> None:
    with pytest.raises(revolute.ArgumentError, match=r"^address: expected grpc://host:port, .*, got "):
        revolute.connect(text)


def test_arguments_are_checked() -> None:
    with pytest.raises(revolute.ArgumentError, match=r"^timeout: expected a positive number"):
        revolute.connect("grpc://localhost", timeout=-1)
    with pytest.raises(revolute.ArgumentError, match=r"^threads: expected None for a server, got 2"):
        revolute.connect("grpc://localhost", threads=2)
    with pytest.raises(revolute.ArgumentError, match=r"^address: expected text such as"):
        revolute.connect(3)  # type: ignore[arg-type]


@pytest.fixture
def free_port() -> int:
    """Return a port that nothing listens on."""
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        return listener.getsockname()[1]


@pytest.mark.parametrize("scheme", ["grpc", "http"])
def test_nobody_listens(scheme: str, free_port: int) -> None:
    address = f"{scheme}://127.0.0.1:{free_port}"
    began = time.monotonic()
    with pytest.raises(revolute.UnavailableError) as caught:
        revolute.connect(address)
    assert str(caught.value).startswith(f"{address}: expected a revolute server, got no connection (")
    flag = {"grpc": "--grpc-port", "http": "--http-port"}[scheme]
    assert f"`revolute serve --host 127.0.0.1 {flag} {free_port}`" in str(caught.value)
    assert time.monotonic() - began < 10


@contextlib.contextmanager
def appearing(port: int, target: str, seconds: float) -> Iterator[None]:
    """Listen on a port after some seconds, and forward what comes to a server."""
    over = threading.Event()
    open_ends: list[socket.socket] = []

    def copy(source: socket.socket, sink: socket.socket) -> None:
        with contextlib.suppress(OSError):
            while data := source.recv(65536):
                sink.sendall(data)

    def listen() -> None:
        over.wait(seconds)
        with socket.create_server(("127.0.0.1", port)) as listener:
            listener.settimeout(0.1)
            while not over.is_set():
                with contextlib.suppress(TimeoutError):
                    near = listener.accept()[0]
                    host, _, number = target.rpartition(":")
                    far = socket.create_connection((host, int(number)))
                    open_ends.extend((near, far))
                    for ends in ((near, far), (far, near)):
                        threading.Thread(target=copy, args=ends, daemon=True).start()

    thread = threading.Thread(target=listen)
    thread.start()
    try:
        yield
    finally:
        over.set()
        thread.join()
        for end in open_ends:
            end.close()


@pytest.mark.parametrize("scheme", ["grpc", "http"])
def test_a_server_that_starts_a_moment_later_is_found(
    scheme: str, free_port: int, server: ServerProcess
) -> None:
    target = getattr(server, scheme).rpartition("/")[2]
    with appearing(free_port, target, 0.5):
        with pytest.raises(revolute.UnavailableError):
            revolute.connect(f"{scheme}://127.0.0.1:{free_port}", retries=0)
        with revolute.connect(f"{scheme}://127.0.0.1:{free_port}", retries=20) as simulator:
            assert simulator.server_info()["version"]


@pytest.fixture
def silent_port() -> Iterator[int]:
    """Return a port that takes connections and never answers."""
    with socket.create_server(("127.0.0.1", 0)) as listener:
        yield listener.getsockname()[1]


@pytest.mark.parametrize("scheme", ["grpc", "http"])
def test_silence_ends_with_the_timeout(scheme: str, silent_port: int) -> None:
    began = time.monotonic()
    with pytest.raises(revolute.UnavailableError):
        revolute.connect(f"{scheme}://127.0.0.1:{silent_port}", timeout=0.5)
    assert 0.3 < time.monotonic() - began < 5


@pytest.fixture
def web_server() -> Iterator[int]:
    """Return the port of a web server that is not revolute."""
    with socket.create_server(("127.0.0.1", 0)) as listener:

        def answer() -> None:
            while True:
                try:
                    connection, _ = listener.accept()
                except OSError:
                    return
                with connection:
                    connection.recv(65536)
                    connection.sendall(
                        b"HTTP/1.1 404 Not Found\r\nContent-Type: text/html\r\nContent-Length: 4\r\n\r\nnope"
                    )

        thread = threading.Thread(target=answer, daemon=True)
        thread.start()
        yield listener.getsockname()[1]
        listener.shutdown(socket.SHUT_RDWR)
        thread.join(5)


def test_another_web_server(web_server: int) -> None:
    with pytest.raises(
        revolute.UnavailableError, match=r"got status 404 of type text/html; check the address"
    ):
        revolute.connect(f"http://127.0.0.1:{web_server}")


@pytest.mark.parametrize("scheme", ["grpc", "http"])
@pytest.mark.parametrize("proxy", ["http://127.0.0.1:9", "10.0.0.1:3128"])
def test_proxy_variables_do_not_touch_loopback(
    scheme: str, proxy: str, server: object, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in (
        "http_proxy",
        "https_proxy",
        "grpc_proxy",
        "all_proxy",
        "HTTP_PROXY",
        "HTTPS_PROXY",
        "ALL_PROXY",
    ):
        monkeypatch.setenv(name, proxy)
    for name in ("no_proxy", "NO_PROXY"):
        monkeypatch.delenv(name, raising=False)
    with revolute.connect(getattr(server, scheme), timeout=5) as simulator:
        assert simulator.server_info()["api_versions"] == ["v1"]


@pytest.mark.parametrize("scheme", ["grpc", "http"])
def test_closed_simulator(scheme: str, server: object) -> None:
    simulator = revolute.connect(getattr(server, scheme))
    simulator.close()
    simulator.close()
    with pytest.raises(revolute.UnavailableError, match="expected an open simulator, got a closed one"):
        simulator.models()


@pytest.mark.parametrize("token", ["a\nb", "a\0", "schlüssel"])
def test_a_token_that_no_header_can_carry_is_refused_and_not_shown(token: str) -> None:
    with pytest.raises(revolute.ArgumentError) as caught:
        revolute.connect("http://127.0.0.1:9", token=token)
    assert str(caught.value) == "token: expected printable ASCII characters, got others; remove line breaks"

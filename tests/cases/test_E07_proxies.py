"""Case E07: variables that name a proxy do not come between a client and a server on the same machine."""

from __future__ import annotations

import json
import os
import socket
import subprocess
import sys

import pytest

from testbed.case_files import expected
from testbed.server_process import ServerProcess, running_server

DEAD = expected("E07")["dead_proxy"]
MALFORMED = "10.0.0.1:3128"
SECONDS = 5.0
PROGRAM = """
import json, sys, time
import revolute

for address in sys.argv[1:]:
    began = time.monotonic()
    try:
        with revolute.connect(address) as simulator:
            simulator.models()
        answer = "served"
    except revolute.RevoluteError as error:
        answer = str(error)
    print(json.dumps([address, time.monotonic() - began, answer]))
"""


def _addresses(server: ServerProcess, *hosts: str) -> list[str]:
    ports = {scheme: getattr(server, scheme).rpartition(":")[2] for scheme in ("grpc", "http")}
    return [f"{scheme}://{host}:{port}" for host in hosts for scheme, port in ports.items()]


def _connect(addresses: list[str], proxy: str, exceptions: str) -> None:
    """Connect to each address in a process whose variables name a proxy, and check that all are served."""
    names = ("http_proxy", "https_proxy", "grpc_proxy", "all_proxy")
    variables = {spelt: proxy for name in names for spelt in (name, name.upper())}
    variables |= {"no_proxy": exceptions, "NO_PROXY": exceptions}
    done = subprocess.run(
        [sys.executable, "-c", PROGRAM, *addresses],
        env={**os.environ, **variables},
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    for address, seconds, answer in map(json.loads, done.stdout.splitlines()):
        assert answer == "served", (address, answer)
        assert seconds < SECONDS, address


@pytest.mark.parametrize("proxy", [DEAD, MALFORMED])
@pytest.mark.parametrize("exceptions", ["", "localhost,127.0.0.1"])
def test_loopback_needs_no_proxy(proxy: str, exceptions: str, server: ServerProcess) -> None:
    _connect(_addresses(server, "127.0.0.1", "localhost"), proxy, exceptions)


def test_loopback_of_version_6() -> None:
    try:
        socket.create_server(("::1", 0), family=socket.AF_INET6).close()
    except OSError:
        pytest.skip("this machine has no IPv6")
    with running_server("--host", "::1") as server:
        for exceptions in ("", "localhost,127.0.0.1"):
            _connect(_addresses(server, "[::1]"), DEAD, exceptions)


def test_unix_sockets(tmp_path: os.PathLike[str]) -> None:
    paths = [os.path.join(tmp_path, name) for name in ("g", "h")]
    with running_server("--no-tcp", "--grpc-socket", paths[0], "--http-socket", paths[1]):
        _connect([f"unix://{paths[0]}", f"http+unix://{paths[1]}"], DEAD, "")

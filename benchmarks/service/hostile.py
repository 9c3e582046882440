"""Attacks a server from outside, one way after the other: is it well, and how much memory does it take?

    python -m benchmarks.service.hostile [--attacks NAME …] [--memory 256MiB] [--token] [--scale 1.5]

Each attack has a server of its own. `watch.py` asks it for its health over both transports meanwhile, beside
a bare server that nobody attacks, and measures its memory. The checks of `hostile_checks.py` follow.
"""

from __future__ import annotations

import contextlib
import io
import itertools
import json
import os
import resource
import socket
import subprocess
import sys
import tempfile
import threading
import time
import zipfile
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import grpc
import httpx
import numpy as np

from testbed.cart import CART
from testbed.http2 import (
    CONTINUATION,
    END_HEADERS,
    HEADERS,
    PING,
    RST_STREAM,
    Http2,
    call_fields,
    fields,
    frame,
)
from testbed.server_process import ServerProcess, running_server
from testbed.token_files import write_tokens
from testbed.wire import GrpcWire

from . import verdict
from .hostile_checks import CHECKS
from .watch import MIB, Watch

SLACK = 150 * MIB
"""Bytes beyond `--memory` that the processes may take."""

GRACE = 3.0
"""Seconds from SIGTERM to the end at the latest."""

_PATIENCE = 20.0
_ECHO = """
import asyncio, grpc
from grpc_health.v1 import health, health_pb2, health_pb2_grpc
async def main():
    server = grpc.aio.server()
    servicer = health.aio.HealthServicer()
    health_pb2_grpc.add_HealthServicer_to_server(servicer, server)
    await servicer.set("", health_pb2.HealthCheckResponse.SERVING)
    print(server.add_insecure_port("127.0.0.1:0"), flush=True)
    await server.start()
    await server.wait_for_termination()
asyncio.run(main())
"""

Attack = Callable[[ServerProcess, float], None]
"""Attacks a server for about so many seconds."""

ATTACKS: dict[str, Attack] = {}


class _Attacker:
    """What all attacks have in common.

    Attributes:
        token: token that the attackers show, None for none.
        scale: factor of the sizes.
    """

    token: str | None = None
    scale = 1.0

    @classmethod
    def many(cls, count: int) -> int:
        """Return a number of things, scaled."""
        return int(cls.scale * count)

    @classmethod
    def headers(cls) -> dict[str, str]:
        """Return the header fields that show the token."""
        return {"authorization": f"Bearer {cls.token}"} if cls.token else {}

    @classmethod
    def wire(cls, server: ServerProcess) -> GrpcWire:
        """Return a client of gRPC."""
        return GrpcWire(server.grpc_target, cls.token)


def attack(function: Attack) -> Attack:
    """List an attack."""
    ATTACKS[function.__name__] = function
    return function


# the attacks


def _together(count: int, work: Callable[[int], object]) -> None:
    """Run work in threads, and wait for their ends."""

    def quiet(number: int) -> None:
        with contextlib.suppress(Exception):
            work(number)

    threads = [threading.Thread(target=quiet, args=(number,)) for number in range(count)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()


def _register(server: ServerProcess, text: str, count: int, seconds: float) -> None:
    def call(number: int) -> None:
        wire = _Attacker.wire(server)
        try:
            wire.call("RegisterModel", {"text": f"{text}<!--{number}-->"}, timeout=seconds)
        finally:
            wire.close()

    _together(count, call)


@attack
def nothing(_server: ServerProcess, seconds: float) -> None:
    """No attack, to compare with."""
    time.sleep(seconds)


@attack
def flat_models(server: ServerProcess, seconds: float) -> None:
    """Two models of 6000 slides side by side."""
    body = '<body><joint type="slide"/><geom size=".1"/></body>'
    _register(
        server, f"<mujoco><worldbody>{body * _Attacker.many(6000)}</worldbody></mujoco>", 2, 6 * seconds
    )


@attack
def many_attributes(server: ServerProcess, seconds: float) -> None:
    """An element of 40,000 attributes."""
    names = " ".join(f'a{number}="1"' for number in range(_Attacker.many(40_000)))
    _register(server, f"<mujoco><worldbody><body {names}/></worldbody></mujoco>", 2, 6 * seconds)


@attack
def long_chain(server: ServerProcess, seconds: float) -> None:
    """A chain of 5000 links."""
    count = _Attacker.many(5000)
    link = '<body pos="0 0 .1"><joint type="hinge"/><geom size=".01"/>'
    _register(
        server,
        f"<mujoco><worldbody>{link * count}{'</body>' * count}</worldbody></mujoco>",
        2,
        6 * seconds,
    )


@attack
def long_names(server: ServerProcess, seconds: float) -> None:
    """Names of 3.9 MB, and such that change the direction of text or ring a bell."""
    for name in ("x" * _Attacker.many(3_900_000), "a\u202eb\x07\x1b[2J", "\u2066" * 1000):
        with contextlib.suppress(Exception):
            httpx.post(
                server.http + "/v1/models",
                json={"text": CART, "name": name},
                headers=_Attacker.headers(),
                timeout=seconds,
            )
        with contextlib.suppress(Exception):
            wire = _Attacker.wire(server)
            wire.call("RegisterModel", {"text": CART, "name": name}, timeout=seconds)


@attack
def empty_fields(server: ServerProcess, seconds: float) -> None:
    """Messages of nothing but empty fields: 950,000 in 1.9 MB, and twice that."""
    for size in (950_000, 1_900_000):
        content = b"\x1a\x00" * _Attacker.many(size)
        with grpc.insecure_channel(server.grpc_target) as channel:
            for path in (
                "ModelService/RegisterModel",
                "ServerService/GetServerInfo",
                "ModelService/ListModels",
            ):
                call: Any = channel.unary_unary(f"/revolute.v1.{path}")
                with contextlib.suppress(grpc.RpcError):
                    call(content, timeout=seconds, metadata=tuple(_Attacker.headers().items()))


def _http(server: ServerProcess) -> socket.socket:
    host, port = server.http.partition("://")[2].split(":")
    return socket.create_connection((host, int(port)), timeout=_PATIENCE)


@attack
def large_heads(server: ServerProcess, _seconds: float) -> None:
    """A header of 88 MB, a URL of 66 MB, and twenty open heads of 30 MB."""
    block = b"x" * MIB

    def send(start: bytes, megabytes: int) -> None:
        with _http(server) as client:
            client.sendall(start)
            for _ in range(_Attacker.many(megabytes)):
                client.sendall(block)

    _together(1, lambda _: send(b"GET / HTTP/1.1\r\nhost: a\r\nx: ", 88))
    _together(1, lambda _: send(b"GET /", 66))
    _together(20, lambda _: send(b"GET / HTTP/1.1\r\nhost: a\r\nx: ", 30))


@attack
def structure_of_json(server: ServerProcess, seconds: float) -> None:
    """Four million brackets, and an object of 700,000 keys."""
    keys = json.dumps({str(number): 0 for number in range(_Attacker.many(700_000))})
    many = _Attacker.many(4_000_000)
    for content in (b"[" * many, b"[" * (many // 2) + b"]" * (many // 2), keys.encode()):
        _together(
            2,
            lambda _, body=content: httpx.post(  # type: ignore[misc]
                server.http + "/v1/trajectories",
                content=body,
                headers={"content-type": "application/json", **_Attacker.headers()},
                timeout=seconds,
            ),
        )


@attack
def archives(server: ServerProcess, seconds: float) -> None:
    """An NPZ of 60,000 arrays, and one of 1 GiB of zeros in 1 MB."""
    many, bomb = io.BytesIO(), io.BytesIO()
    array = io.BytesIO()
    np.save(array, np.zeros(1))
    with zipfile.ZipFile(many, "w") as file:
        for number in range(_Attacker.many(60_000)):
            file.writestr(f"a{number}.npy", array.getvalue())
    with zipfile.ZipFile(bomb, "w", zipfile.ZIP_DEFLATED) as file:
        file.writestr("qpos.npy", bytes(_Attacker.many(256) * MIB))
    for content in (many.getvalue(), bomb.getvalue()):
        _together(
            2,
            lambda _, body=content: httpx.post(  # type: ignore[misc]
                server.http + "/v1/trajectories",
                content=body,
                headers={"content-type": "application/x-npz", **_Attacker.headers()},
                timeout=seconds,
            ),
        )


@attack
def idle_sockets(server: ServerProcess, seconds: float) -> None:
    """Sockets of both ports that send nothing, half a head, or half a body."""
    starts = (b"", b"GET / HT", b"POST /v1/models HTTP/1.1\r\nhost: a\r\ncontent-length: 9999\r\n\r\n{")
    with contextlib.ExitStack() as stack:
        until = time.monotonic() + seconds
        while time.monotonic() < until:
            for number in range(_Attacker.many(60)):
                with contextlib.suppress(OSError):
                    client = stack.enter_context(_http(server))
                    client.sendall(starts[number % 3])
                with contextlib.suppress(OSError):
                    host, port = server.grpc_target.split(":")
                    stack.enter_context(socket.create_connection((host, int(port)), timeout=5.0))
            time.sleep(0.2)


@attack
def half_messages(server: ServerProcess, seconds: float) -> None:
    """Half-sent gRPC messages: many calls on many connections, each nearly 2 MiB."""
    paths = itertools.cycle(
        (
            "/revolute.v1.SessionService/Step",
            "/revolute.v1.SessionService/GetState",
            "/grpc.health.v1.Health/Check",
        )
    )
    with contextlib.ExitStack() as stack:
        clients = [stack.enter_context(Http2(server.grpc_target)) for _ in range(_Attacker.many(8))]
        until, stream = time.monotonic() + seconds, 1
        while time.monotonic() < until:
            for client in clients:
                with contextlib.suppress(OSError):
                    client.call(next(paths), stream, **_Attacker.headers())
                    client.message(bytes(2 * MIB - 4096), 2 * MIB - 1, stream, end=False)
            stream += 2


@attack
def silent_http2(server: ServerProcess, seconds: float) -> None:
    """Connections of HTTP/2 that call nothing, ping, and come again."""
    with contextlib.ExitStack() as stack:
        until, clients = time.monotonic() + seconds, []
        while time.monotonic() < until:
            for _ in range(_Attacker.many(60)):
                with contextlib.suppress(OSError):
                    clients.append(stack.enter_context(Http2(server.grpc_target)))
            for client in clients[-500:]:
                with contextlib.suppress(OSError):
                    client.send(frame(PING, 0, 0, bytes(8)))
            time.sleep(0.3)


@attack
def floods(server: ServerProcess, seconds: float) -> None:
    """Streams that are opened and reset at once, and heads without an end; closed clients come again."""
    until = time.monotonic() + seconds

    def reset(client: Http2) -> None:
        head = fields(call_fields("/revolute.v1.ModelService/ListModels", **_Attacker.headers()))
        stream = 1
        while time.monotonic() < until:
            client.send(
                b"".join(
                    frame(HEADERS, END_HEADERS, number, head) + frame(RST_STREAM, 0, number, bytes(4))
                    for number in range(stream, stream + 200, 2)
                )
            )
            stream += 200
            client.is_open()

    def continued(client: Http2) -> None:
        client.send(frame(HEADERS, 0, 1, fields(call_fields("/a"))))
        while time.monotonic() < until:
            client.send(frame(CONTINUATION, 0, 1, fields({"x": "y" * 15_000})))

    def again(flood: Callable[[Http2], None]) -> None:
        while time.monotonic() < until:
            with contextlib.suppress(OSError), Http2(server.grpc_target) as client:
                flood(client)

    many = _Attacker.many(2)
    _together(2 * many, lambda number: again(reset if number < many else continued))


def _large_session(server: ServerProcess, batch: int) -> str:
    wire = _Attacker.wire(server)
    model = wire.call("RegisterModel", {"text": CART})["model_id"]
    found = wire.call("CreateSession", {"model_id": model, "batch": batch})["session_id"]
    wire.close()
    return str(found)


def _head(method: str, path: str, *more: str) -> bytes:
    """Return the head of an HTTP request."""
    shown = (f"{name}: {value}" for name, value in _Attacker.headers().items())
    lines = (f"{method} {path} HTTP/1.1", "host: localhost", *shown, *more)
    return "".join(f"{line}\r\n" for line in (*lines, "")).encode()


def _question(session: str) -> bytes:
    return _head("GET", f"/v1/sessions/{session}/state", "accept: application/x-npz")


@attack
def slow_readers(server: ServerProcess, seconds: float) -> None:
    """Clients of both transports that ask for large answers and read nothing."""
    session = _large_session(server, 60_000)
    with contextlib.ExitStack() as stack:
        for _ in range(40):
            with contextlib.suppress(OSError):
                client = stack.enter_context(_http(server))
                client.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
                client.sendall(_question(session))
            with contextlib.suppress(OSError):
                http2 = stack.enter_context(Http2(server.grpc_target, window=0))
                for stream in range(1, 20, 2):
                    http2.call("/revolute.v1.SessionService/GetState", stream, **_Attacker.headers())
                    http2.message(b"\x0a" + bytes([len(session)]) + session.encode(), stream=stream)
        time.sleep(seconds)


@attack
def clients_that_leave(server: ServerProcess, seconds: float) -> None:
    """Clients that leave in the middle of a body or of an answer."""
    session = _large_session(server, 60_000)
    until = time.monotonic() + seconds
    while time.monotonic() < until:
        with contextlib.suppress(OSError), _http(server) as client:
            client.sendall(
                _head("POST", "/v1/models", "content-length: 9999999", "content-type: application/json")
                + b"{"
            )
            client.sendall(b" " * 5000)
        with contextlib.suppress(OSError), _http(server) as client:
            client.sendall(_question(session))
            client.recv(100)
        with contextlib.suppress(OSError), Http2(server.grpc_target) as http2:
            http2.call("/revolute.v1.SessionService/Step", 1, **_Attacker.headers())
            http2.message(bytes(100_000), 2 * MIB, end=False)


def stopped(server: ServerProcess, name: str, seconds: float) -> float:
    """Attack again, send SIGTERM meanwhile, and return the seconds until the end of the process."""
    attacker = threading.Thread(target=lambda: _together(1, lambda _: ATTACKS[name](server, seconds)))
    attacker.start()
    time.sleep(min(1.0, seconds / 2))
    began = time.monotonic()
    server.stop()
    taken = time.monotonic() - began
    attacker.join()
    return round(taken, 2)


@contextlib.contextmanager
def bare_server() -> Iterator[str]:
    """Start a bare server with gRPC's health, and yield its address."""
    process = subprocess.Popen([sys.executable, "-c", _ECHO], stdout=subprocess.PIPE)
    try:
        assert process.stdout is not None
        yield f"127.0.0.1:{int(process.stdout.readline())}"
    finally:
        process.kill()
        process.wait()


def main() -> int:
    """Run the attacks, each on a server of its own."""
    parser = verdict.parser(__doc__, 5.0)
    parser.add_argument("--attacks", nargs="*", choices=tuple(ATTACKS), default=tuple(ATTACKS))
    parser.add_argument("--memory", default="256MiB")
    parser.add_argument("--stop", action="store_true", help="send SIGTERM in the middle of each attack")
    parser.add_argument(
        "--token", action="store_true", help="a server with tokens, of which attackers have one"
    )
    parser.add_argument("--scale", type=float, default=1.0, help="factor of the attacks' sizes")
    parser.add_argument("--checks", nargs="*", choices=tuple(CHECKS), default=tuple(CHECKS))
    parser.add_argument("--descriptors", type=int, help="limit of open files of the server")
    chosen = parser.parse_args()
    from revolute_server.settings import parse_bytes

    most, rows, wrong = parse_bytes(chosen.memory) + SLACK, {}, []
    if chosen.descriptors:
        os.environ["REVOLUTE_TEST_DESCRIPTORS"] = str(chosen.descriptors)
    module = "tests.server.limited_descriptors" if chosen.descriptors else "revolute_server"
    _, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))
    flags: tuple[str, ...] = ("--memory", chosen.memory, "--grace", str(GRACE))
    _Attacker.scale = chosen.scale
    with bare_server() as bare, tempfile.TemporaryDirectory() as folder:
        if chosen.token:
            file = Path(folder, "tokens")
            _Attacker.token = write_tokens(file, {"attacker": "admin"})["attacker"]
            flags = (*flags, "--tokens", str(file))
        for name in chosen.attacks:
            with running_server(*flags, module=module) as server:
                with Watch(server, bare) as found:
                    ATTACKS[name](server, chosen.seconds)
                    time.sleep(0.5)
                rows[name] = found.row()
                if chosen.stop:
                    rows[name]["stop_s"] = seconds = stopped(server, name, chosen.seconds)
                    if seconds > GRACE + 1.0:
                        wrong.append(f"{name}: the end took {seconds:.1f} s")
                print(name, rows[name], *found.failures[:2], flush=True)
                if not chosen.stop and server.process.poll() is not None:
                    wrong.append(f"{name}: the server ended")
                if found.failures:
                    wrong.append(f"{name}: {len(found.failures)} questions for health failed")
                if found.peak > most:
                    wrong.append(f"{name}: {found.peak / MIB:.0f} MiB")
        for name in chosen.checks:
            wrong += CHECKS[name](flags, _Attacker.token)
            print(name, "checked", flush=True)
    summary = f"{len(rows)} attacks, at most {max([0, *(row['peak_mib'] for row in rows.values())])} MiB"
    return verdict.finish(chosen.out, summary, {"attacks": rows}, wrong)


if __name__ == "__main__":
    sys.exit(main())

"""Attacks a server from outside, one way after the other: is it well, and how much memory does it take?

    python -m benchmarks.service.hostile [--attacks NAME …] [--memory 256MiB] [--out hostile.json]

Health is asked over both transports on new connections. At the same times a bare server of the same kind that
nobody attacks is asked, so that a machine with much to do can be told from a server that does not answer.
Memory is that of the server and of the processes that compile its models, without what files share.
"""

from __future__ import annotations

import contextlib
import dataclasses
import io
import itertools
import json
import os
import resource
import socket
import subprocess
import sys
import threading
import time
import zipfile
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import grpc
import httpx
import numpy as np

from tests.server.conftest import CART
from tests.server.http2 import END_HEADERS, HEADERS, PING, RST_STREAM, Http2, call_fields, fields, frame
from tests.server.processes import ServerProcess, running_server
from tests.server.wire import GrpcWire

from . import verdict

MIB = 1024**2
SLACK = 150 * MIB
"""Bytes beyond `--memory` that the processes may take."""

GRACE = 3.0
"""Seconds from SIGTERM to the end at the latest."""

_PAUSE = 0.02
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


def attack(function: Attack) -> Attack:
    """List an attack."""
    ATTACKS[function.__name__] = function
    return function


@dataclasses.dataclass
class Found:
    """What an attack did.

    Attributes:
        http_ms: times of /livez.
        grpc_ms: times of gRPC's health.
        bare_ms: times of gRPC's health of the bare server.
        peak: most bytes of the server and its processes.
        failures: questions for health without an answer.
    """

    http_ms: list[float] = dataclasses.field(default_factory=list)
    grpc_ms: list[float] = dataclasses.field(default_factory=list)
    bare_ms: list[float] = dataclasses.field(default_factory=list)
    peak: int = 0
    failures: list[str] = dataclasses.field(default_factory=list)

    def row(self) -> dict[str, Any]:
        """Return the medians and maxima."""
        row: dict[str, Any] = {"peak_mib": round(self.peak / MIB), "failures": len(self.failures)}
        for name in ("http_ms", "grpc_ms", "bare_ms"):
            values = getattr(self, name) or [float("nan")]
            row[name] = [round(float(np.median(values)), 1), round(max(values), 1)]
        return row


class Watch:
    """Asks a server for its health, and measures its memory, while the block runs."""

    def __init__(self, server: ServerProcess, bare: str) -> None:
        self.found = Found()
        self._server = server
        self._bare = bare
        self._end = threading.Event()
        self._threads = [threading.Thread(target=work) for work in (self._ask, self._weigh)]

    def __enter__(self) -> Found:
        for thread in self._threads:
            thread.start()
        return self.found

    def __exit__(self, *_exception: object) -> None:
        self._end.set()
        for thread in self._threads:
            thread.join()

    def _ask(self) -> None:
        while not self._end.wait(_PAUSE):
            for name, question in (
                ("http_ms", self._livez),
                ("grpc_ms", lambda: _health(self._server.grpc_target)),
                ("bare_ms", lambda: _health(self._bare)),
            ):
                began = time.perf_counter()
                try:
                    question()
                    getattr(self.found, name).append(1e3 * (time.perf_counter() - began))
                except Exception as error:
                    self.found.failures.append(f"{name}: {error!r}"[:200])

    def _livez(self) -> None:
        with _http(self._server) as client:
            client.sendall(b"GET /livez HTTP/1.1\r\nhost: localhost\r\nconnection: close\r\n\r\n")
            if not client.recv(4096).startswith(b"HTTP/1.1 200"):
                raise RuntimeError("not well")

    def _weigh(self) -> None:
        while not self._end.wait(_PAUSE):
            self.found.peak = max(self.found.peak, memory(self._server.process.pid))


def _health(target: str) -> None:
    with grpc.insecure_channel(target, (("grpc.use_local_subchannel_pool", 1),)) as channel:
        check: Any = channel.unary_unary("/grpc.health.v1.Health/Check")
        check(b"", timeout=10.0)


def memory(process: int) -> int:
    """Return the bytes of a process and its descendants that they do not share with files."""
    total = 0
    for path in (f"/proc/{process}", *(f"/proc/{child}" for child in _descendants(process))):
        with contextlib.suppress(OSError, ValueError, IndexError):
            words = Path(path, "statm").read_text().split()
            total += 4096 * (int(words[1]) - int(words[2]))
    return total


def _descendants(process: int) -> list[int]:
    found: list[int] = []
    with contextlib.suppress(OSError):
        for task in os.listdir(f"/proc/{process}/task"):
            for child in Path(f"/proc/{process}/task/{task}/children").read_text().split():
                found += [int(child), *_descendants(int(child))]
    return found


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
        wire = GrpcWire(server.grpc_target)
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
    _register(server, f"<mujoco><worldbody>{body * 6000}</worldbody></mujoco>", 2, 6 * seconds)


@attack
def many_attributes(server: ServerProcess, seconds: float) -> None:
    """An element of 40,000 attributes."""
    names = " ".join(f'a{number}="1"' for number in range(40_000))
    _register(server, f"<mujoco><worldbody><body {names}/></worldbody></mujoco>", 2, 6 * seconds)


@attack
def long_chain(server: ServerProcess, seconds: float) -> None:
    """A chain of 5000 links."""
    link = '<body pos="0 0 .1"><joint type="hinge"/><geom size=".01"/>'
    _register(
        server,
        f"<mujoco><worldbody>{link * 5000}{'</body>' * 5000}</worldbody></mujoco>",
        2,
        6 * seconds,
    )


@attack
def long_names(server: ServerProcess, seconds: float) -> None:
    """Names of 3.9 MB, and such that change the direction of text or ring a bell."""
    for name in ("x" * 3_900_000, "a\u202eb\x07\x1b[2J", "\u2066" * 1000):
        with contextlib.suppress(Exception):
            httpx.post(server.http + "/v1/models", json={"text": CART, "name": name}, timeout=seconds)
        with contextlib.suppress(Exception):
            wire = GrpcWire(server.grpc_target)
            wire.call("RegisterModel", {"text": CART, "name": name}, timeout=seconds)


@attack
def empty_fields(server: ServerProcess, seconds: float) -> None:
    """Messages of nothing but empty fields: 950,000 in 1.9 MB, and twice that."""
    for size in (950_000, 1_900_000):
        content = b"\x1a\x00" * size
        with grpc.insecure_channel(server.grpc_target) as channel:
            for path in (
                "ModelService/RegisterModel",
                "ServerService/GetServerInfo",
                "ModelService/ListModels",
            ):
                call: Any = channel.unary_unary(f"/revolute.v1.{path}")
                with contextlib.suppress(grpc.RpcError):
                    call(content, timeout=seconds)


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
            for _ in range(megabytes):
                client.sendall(block)

    _together(1, lambda _: send(b"GET / HTTP/1.1\r\nhost: a\r\nx: ", 88))
    _together(1, lambda _: send(b"GET /", 66))
    _together(20, lambda _: send(b"GET / HTTP/1.1\r\nhost: a\r\nx: ", 30))


@attack
def structure_of_json(server: ServerProcess, seconds: float) -> None:
    """Four million brackets, and an object of 700,000 keys."""
    keys = json.dumps({str(number): 0 for number in range(700_000)})
    for content in (b"[" * 4_000_000, b"[" * 2_000_000 + b"]" * 2_000_000, keys.encode()):
        _together(
            2,
            lambda _, body=content: httpx.post(  # type: ignore[misc]
                server.http + "/v1/trajectories",
                content=body,
                headers={"content-type": "application/json"},
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
        for number in range(60_000):
            file.writestr(f"a{number}.npy", array.getvalue())
    with zipfile.ZipFile(bomb, "w", zipfile.ZIP_DEFLATED) as file:
        file.writestr("qpos.npy", bytes(256 * MIB))
    for content in (many.getvalue(), bomb.getvalue()):
        _together(
            2,
            lambda _, body=content: httpx.post(  # type: ignore[misc]
                server.http + "/v1/trajectories",
                content=body,
                headers={"content-type": "application/x-npz"},
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
            for number in range(60):
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
        clients = [stack.enter_context(Http2(server.grpc_target)) for _ in range(8)]
        until, stream = time.monotonic() + seconds, 1
        while time.monotonic() < until:
            for client in clients:
                with contextlib.suppress(OSError):
                    client.call(next(paths), stream)
                    client.message(bytes(2 * MIB - 4096), 2 * MIB - 1, stream, end=False)
            stream += 2


@attack
def silent_http2(server: ServerProcess, seconds: float) -> None:
    """Connections of HTTP/2 that call nothing, ping, and come again."""
    with contextlib.ExitStack() as stack:
        until, clients = time.monotonic() + seconds, []
        while time.monotonic() < until:
            for _ in range(60):
                with contextlib.suppress(OSError):
                    clients.append(stack.enter_context(Http2(server.grpc_target)))
            for client in clients[-500:]:
                with contextlib.suppress(OSError):
                    client.send(frame(PING, 0, 0, bytes(8)))
            time.sleep(0.3)


@attack
def floods(server: ServerProcess, seconds: float) -> None:
    """Streams that are opened and reset at once, and heads without an end."""

    def reset(_: int) -> None:
        with Http2(server.grpc_target) as client:
            head = fields(call_fields("/revolute.v1.ModelService/ListModels"))
            until, stream = time.monotonic() + seconds, 1
            while time.monotonic() < until:
                client.send(
                    b"".join(
                        frame(HEADERS, END_HEADERS, number, head) + frame(RST_STREAM, 0, number, bytes(4))
                        for number in range(stream, stream + 200, 2)
                    )
                )
                stream += 200
                client.is_open()

    def continued(_: int) -> None:
        with Http2(server.grpc_target) as client:
            client.send(frame(HEADERS, 0, 1, fields(call_fields("/a"))))
            until = time.monotonic() + seconds
            while time.monotonic() < until:
                client.send(frame(9, 0, 1, fields({"x": "y" * 15_000})))

    _together(2, reset)
    _together(2, continued)


def _large_session(server: ServerProcess, batch: int) -> str:
    wire = GrpcWire(server.grpc_target)
    model = wire.call("RegisterModel", {"text": CART})["model_id"]
    found = wire.call("CreateSession", {"model_id": model, "batch": batch})["session_id"]
    wire.close()
    return str(found)


@attack
def slow_readers(server: ServerProcess, seconds: float) -> None:
    """Clients of both transports that ask for large answers and read nothing."""
    session = _large_session(server, 60_000)
    with contextlib.ExitStack() as stack:
        for _ in range(40):
            with contextlib.suppress(OSError):
                client = stack.enter_context(_http(server))
                client.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
                client.sendall(
                    f"GET /v1/sessions/{session}/state HTTP/1.1\r\nhost: localhost\r\n"
                    "accept: application/x-npz\r\n\r\n".encode()
                )
            with contextlib.suppress(OSError):
                http2 = stack.enter_context(Http2(server.grpc_target, window=0))
                for stream in range(1, 20, 2):
                    http2.call("/revolute.v1.SessionService/GetState", stream)
                    http2.message(b"\x0a" + bytes([len(session)]) + session.encode(), stream=stream)
        time.sleep(seconds)


@attack
def clients_that_leave(server: ServerProcess, seconds: float) -> None:
    """Clients that leave in the middle of a body or of an answer."""
    session = _large_session(server, 60_000)
    ask = f"GET /v1/sessions/{session}/state HTTP/1.1\r\nhost: localhost\r\naccept: application/x-npz\r\n\r\n"
    until = time.monotonic() + seconds
    while time.monotonic() < until:
        with contextlib.suppress(OSError), _http(server) as client:
            client.sendall(
                b"POST /v1/models HTTP/1.1\r\nhost: localhost\r\ncontent-length: 9999999\r\n\r\n{" * 1
            )
            client.sendall(b" " * 5000)
        with contextlib.suppress(OSError), _http(server) as client:
            client.sendall(ask.encode())
            client.recv(100)
        with contextlib.suppress(OSError), Http2(server.grpc_target) as http2:
            http2.call("/revolute.v1.SessionService/Step")
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
    parser.add_argument("--descriptors", type=int, help="limit of open files of the server")
    chosen = parser.parse_args()
    from revolute_server.settings import parse_bytes

    most, rows, wrong = parse_bytes(chosen.memory) + SLACK, {}, []
    if chosen.descriptors:
        os.environ["REVOLUTE_TEST_DESCRIPTORS"] = str(chosen.descriptors)
    module = "tests.server.limited_descriptors" if chosen.descriptors else "revolute_server"
    _, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))
    with bare_server() as bare:
        for name in chosen.attacks:
            flags = ("--memory", chosen.memory, "--grace", str(GRACE))
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
    summary = f"{len(rows)} attacks, at most {max(row['peak_mib'] for row in rows.values())} MiB"
    return verdict.finish(chosen.out, summary, {"attacks": rows}, wrong)


if __name__ == "__main__":
    sys.exit(main())

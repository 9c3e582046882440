"""What must hold beside the attacks: with a store that hangs, with other callers, and without threads."""

from __future__ import annotations

import contextlib
import resource
import shutil
import signal
import subprocess
import tempfile
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import grpc
import httpx
import numpy as np

from revolute.contract.errors import NotFoundError
from testbed.cart import CART
from testbed.server_process import ServerProcess, allow_no_more_threads, running_server
from testbed.token_files import write_tokens
from testbed.wire import GrpcWire, HttpWire

READY_SECONDS, CALL_SECONDS = 2.0, 10.0
"""Seconds until a server knows that its store hangs, and until a call that needs the store fails."""

Flags = tuple[str, ...]
Check = Callable[[Flags, str | None], list[str]]
"""Starts a server with some flags, calls it with a token, and returns what is wrong."""

CHECKS: dict[str, Check] = {}


def check(function: Check) -> Check:
    """List a check."""
    CHECKS[function.__name__] = function
    return function


@contextlib.contextmanager
def _redis() -> Iterator[tuple[str, subprocess.Popen[bytes]]]:
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder, "redis.sock")
        flags = ("--port", "0", "--unixsocket", str(path), "--save", "")
        process = subprocess.Popen(["redis-server", *flags], stdout=subprocess.DEVNULL)
        try:
            until = time.monotonic() + 30.0
            while not path.exists() and time.monotonic() < until:
                time.sleep(0.02)
            yield f"unix://{path}?db=0", process
        finally:
            process.send_signal(signal.SIGCONT)
            process.kill()
            process.wait()


def _is_ready(server: ServerProcess) -> bool:
    return httpx.get(f"{server.http}/readyz", timeout=10.0).status_code == 200


def _wait_for(holds: Callable[[], bool], seconds: float) -> float:
    began = time.monotonic()
    while not holds() and time.monotonic() - began < seconds:
        time.sleep(0.02)
    return time.monotonic() - began


@check
def hanging_redis(flags: Flags, token: str | None) -> list[str]:
    """A Redis server hangs: not ready within seconds, calls end as UNAVAILABLE, and all goes on later."""
    if shutil.which("redis-server") is None:
        return ["hanging_redis: redis-server is not installed"]
    wrong: list[str] = []
    with _redis() as (address, redis), running_server(*flags, "--store", address) as server:
        wire, http = GrpcWire(server.grpc_target, token), HttpWire(server.http, npz=False, token=token)
        model = wire.call("RegisterModel", {"text": CART})["model_id"]
        session = wire.call("CreateSession", {"model_id": model, "batch": 1})["session_id"]
        redis.send_signal(signal.SIGSTOP)
        if (taken := _wait_for(lambda: not _is_ready(server), CALL_SECONDS)) > READY_SECONDS:
            wrong.append(f"hanging_redis: not ready only after {taken:.1f} s")
        ways: tuple[Any, ...] = (wire, http)
        for way in ways:
            for verb, document in (
                ("GetState", {"session_id": session}),
                ("CreateSession", {"model_id": model, "batch": 1}),
            ):
                began = time.monotonic()
                _, code = way.error(verb, document)
                taken = time.monotonic() - began
                if code not in ("UNAVAILABLE", "503") or taken > CALL_SECONDS:
                    wrong.append(f"hanging_redis: {verb} over {way.name}: {code} after {taken:.1f} s")
        redis.send_signal(signal.SIGCONT)
        _wait_for(lambda: _is_ready(server), CALL_SECONDS)
        wire.call("GetState", {"session_id": session})
        wire.close()
        http.close()
    return wrong


@check
def owners(flags: Flags, _token: str | None) -> list[str]:
    """Sessions of one token: others neither list nor see, fork, keep alive or delete them."""
    wrong: list[str] = []
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder, "tokens")
        tokens = write_tokens(file, {"ann": "run", "ben": "run"})
        with running_server(*_without_tokens(flags), "--tokens", str(file)) as server:
            own = GrpcWire(server.grpc_target, tokens["ann"])
            model = own.call("RegisterModel", {"text": CART})["model_id"]
            session = own.call("CreateSession", {"model_id": model, "batch": 1})["session_id"]
            ways: tuple[Any, ...] = (
                GrpcWire(server.grpc_target, tokens["ben"]),
                HttpWire(server.http, npz=False, token=tokens["ben"]),
            )
            for way in ways:
                if way.call("ListSessions", {})["sessions"]:
                    wrong.append(f"owners: another token lists a session over {way.name}")
                for verb in ("GetSession", "GetState", "ForkSession", "KeepAlive", "Reset", "DeleteSession"):
                    error, _ = way.error(verb, {"session_id": session})
                    if not isinstance(error, NotFoundError):
                        wrong.append(f"owners: {verb} over {way.name}: {error}")
                way.close()
            if [entry["session_id"] for entry in own.call("ListSessions", {})["sessions"]] != [session]:
                wrong.append("owners: another token deleted a session, or made one")
            own.close()
    return wrong


@check
def lack_of_threads(flags: Flags, token: str | None) -> list[str]:
    """No more threads start: calls are answered or refused, and afterwards all workers are free."""
    wrong: list[str] = []
    with running_server(*flags, "--workers", "3", "--threads", "4") as server:
        wire = GrpcWire(server.grpc_target, token)
        model = wire.call("RegisterModel", {"text": CART})["model_id"]
        process = server.process.pid
        before = [resource.prlimit(process, kind) for kind in (resource.RLIMIT_AS, resource.RLIMIT_NPROC)]
        allow_no_more_threads(server)
        # root has no limit on processes, but on memory
        resource.prlimit(process, resource.RLIMIT_NPROC, (1, before[1][1]))
        document: dict[str, Any] = {
            "model_id": model,
            "qpos": np.zeros((64, 1)),
            "qvel": np.zeros((64, 1)),
            "ctrl": np.ones((64, 200, 1)),
        }

        def roll(number: int) -> str:
            own = GrpcWire(server.grpc_target, token)
            try:
                verb = "Rollout" if number % 4 else "RegisterModel"
                own.call(verb, document if number % 4 else {"text": f"{CART}<!--{number}-->"})
                return "OK"
            except grpc.RpcError as error:
                return str(error.code().name)
            finally:
                own.close()

        with ThreadPoolExecutor(6) as clients:
            for code in clients.map(roll, range(24)):
                if code not in ("OK", "RESOURCE_EXHAUSTED"):
                    wrong.append(f"lack_of_threads: a call ended as {code}")
        for kind, limits in zip((resource.RLIMIT_AS, resource.RLIMIT_NPROC), before, strict=True):
            resource.prlimit(process, kind, limits)
        if roll(1) != "OK" or roll(4) != "OK":
            wrong.append("lack_of_threads: calls are refused after it")
        if (_wait_for(lambda: _busy(server, token) == 0.0, CALL_SECONDS)) >= CALL_SECONDS:
            wrong.append("lack_of_threads: a worker is not free again")
        if "Traceback" in server.log.read_text():
            wrong.append("lack_of_threads: a traceback in the log")
        wire.close()
    return wrong


def _busy(server: ServerProcess, token: str | None) -> float:
    headers = {"authorization": f"Bearer {token}"} if token else {}
    text = httpx.get(f"{server.http}/metrics", headers=headers, timeout=30.0).text
    lines = [line.split() for line in text.splitlines() if line.startswith("revolute_workers_busy ")]
    return float(lines[0][1])


def _without_tokens(flags: Flags) -> Flags:
    if "--tokens" not in flags:
        return flags
    place = flags.index("--tokens")
    return (*flags[:place], *flags[place + 2 :])

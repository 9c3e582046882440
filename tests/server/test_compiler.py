"""Compilation in processes of their own: stopped, limited, counted, and no crash of it ends the server."""

from __future__ import annotations

import contextlib
import os
import signal
import subprocess
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import grpc
import httpx
import pytest

from revolute.contract.errors import LimitError, ModelError
from testbed.cart import CART
from testbed.server_process import ServerProcess, running_server
from testbed.wire import GrpcWire, HttpWire

MIB = 1024**2
PATIENCE = 20.0
"""Seconds after which something that should happen within one has not happened."""

HEALTH_SECONDS = 0.25
"""Health while models compile. Busy cores are shared with other tests, so this measures no latency."""


def large(count: int = 220) -> str:
    """Return a short text of which MuJoCo makes 400 MB, in a second or two."""
    rows, columns = (f'<replicate count="{count}" offset="{offset}">' for offset in ("1 0 0", "0 1 0"))
    grid = f'{rows}{columns}<geom size=".1"/></replicate></replicate>'
    return f"<mujoco><worldbody><body><freejoint/>{grid}</body></worldbody></mujoco>"


def endless(count: int = 99_000) -> str:
    """Return a model that takes a minute to read and 130 MB: each name is compared with all others."""
    sites = "".join(f'<site name="s{i}"/>' for i in range(count))
    body = f'<body><freejoint/><geom size="1"/>{sites}</body>'
    return f"<mujoco><worldbody>{body}</worldbody></mujoco>"


def workers(server: ServerProcess) -> list[int]:
    """Return the processes that compile models."""
    return [child for helper in _children(server.process.pid) for child in _children(helper)]


def _children(process: int) -> list[int]:
    found = subprocess.run(["ps", "--ppid", str(process), "-o", "pid="], capture_output=True, check=False)
    return [int(word) for word in found.stdout.split()]


def wait_for(condition: Callable[[], object], seconds: float = PATIENCE) -> None:
    until = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < until, "it did not happen"
        time.sleep(0.02)


def resident(process: int) -> int:
    with contextlib.suppress(OSError):
        return 4096 * int(Path(f"/proc/{process}/statm").read_text().split()[1])
    return 0


@contextlib.contextmanager
def compiling(
    server: ServerProcess, text: str, count: int, timeout: float
) -> Iterator[list[grpc.StatusCode]]:
    """Have models compiled while the block runs; yields how the calls end."""
    ends: list[grpc.StatusCode] = []

    def register(number: int) -> None:
        wire = GrpcWire(server.grpc_target)
        try:
            wire.call("RegisterModel", {"text": text, "name": str(number)}, timeout=timeout)
            ends.append(grpc.StatusCode.OK)
        except grpc.RpcError as error:
            ends.append(error.code())
        finally:
            wire.close()

    threads = [threading.Thread(target=register, args=(number,)) for number in range(count)]
    for thread in threads:
        thread.start()
    try:
        yield ends
    finally:
        for thread in threads:
            thread.join(60.0)


@pytest.fixture(scope="module")
def small() -> Iterator[ServerProcess]:
    with running_server("--workers", "2", "--threads", "1", "--memory", "256MiB", "--grace", "2") as server:
        yield server


@pytest.fixture
def wire(small: ServerProcess) -> Iterator[GrpcWire]:
    wire = GrpcWire(small.grpc_target)
    yield wire
    wire.close()


def test_models_that_compile_for_long_hold_no_worker_and_end_with_their_deadline() -> None:
    # both models together stay far below the limit on memory, however far they get
    with running_server("--workers", "2", "--threads", "1", "--memory", "1GiB") as server:
        wire = GrpcWire(server.grpc_target)
        with compiling(server, endless(), 2, 8.0) as ends:
            wait_for(lambda: len(workers(server)) >= 2)
            waits = []
            while not ends:
                started = time.monotonic()
                assert httpx.get(server.http + "/livez", timeout=10.0).status_code == 200
                waits.append(time.monotonic() - started)
                assert wire.call("RegisterModel", {"text": CART}, timeout=10.0)["nv"] == 1
                time.sleep(0.02)
            assert sorted(waits)[len(waits) // 2] < HEALTH_SECONDS, waits
        assert ends == [grpc.StatusCode.DEADLINE_EXCEEDED] * 2
        wait_for(lambda: server.metric("revolute_compilers_busy") == 0)
        # one that waits for the next model may be left
        wait_for(lambda: len(workers(server)) <= 2 and not any(map(_busy, workers(server))))
        wire.close()


def _busy(process: int) -> bool:
    """Tell whether a process computes."""
    with contextlib.suppress(OSError):
        return Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()[0] == "R"
    return False


def test_a_client_that_leaves_ends_its_compilation(small: ServerProcess) -> None:
    with pytest.raises(httpx.ReadTimeout):
        httpx.post(small.http + "/v1/models", json={"text": endless(), "name": "left"}, timeout=1.0)
    wait_for(lambda: small.metric("revolute_compilers_busy") == 0)


def test_what_a_compilation_takes_is_bounded_and_counted(small: ServerProcess) -> None:
    peak, counted, before = 0, 0.0, resident(small.process.pid)
    with compiling(small, large(), 3, 60.0) as ends:
        while len(ends) < 3:
            peak = max(peak, sum(map(resident, (small.process.pid, *workers(small)))))
            counted = max(counted, small.metric("revolute_memory_bytes"))
            time.sleep(0.01)
    assert ends == [grpc.StatusCode.RESOURCE_EXHAUSTED] * 3
    assert counted > 64 * MIB
    # each worker shows 60 MB before it begins, most of them shared
    assert peak - before < (256 + 50 + 3 * 60) * MIB
    wait_for(lambda: small.metric("revolute_memory_bytes") < 16 * MIB)


def test_a_crash_of_the_compiler_is_an_error_of_one_model(small: ServerProcess, wire: GrpcWire) -> None:
    with compiling(small, endless(), 1, 30.0) as ends:
        wait_for(lambda: any(map(_busy, workers(small))))
        time.sleep(0.3)
        for process in workers(small):
            if _busy(process):
                os.kill(process, signal.SIGSEGV)
        wait_for(lambda: ends)
    assert ends == [grpc.StatusCode.INVALID_ARGUMENT]
    assert wire.call("RegisterModel", {"text": CART})["nv"] == 1


def test_the_helper_is_started_anew_when_it_has_ended(small: ServerProcess, wire: GrpcWire) -> None:
    (helper,) = _children(small.process.pid)
    os.kill(helper, signal.SIGKILL)
    wait_for(lambda: helper not in _children(small.process.pid))
    assert wire.call("RegisterModel", {"text": CART, "options": {"timestep": 0.003}})["timestep"] == 0.003
    assert _children(small.process.pid) != [helper]


@pytest.mark.parametrize("way", ["grpc", "json"])
def test_errors_are_those_of_the_engine(small: ServerProcess, wire: GrpcWire, way: str) -> None:
    caller = wire if way == "grpc" else HttpWire(small.http, npz=False)
    text = '<mujoco><worldbody><body name="b"><joint name="knee" axis="0 0 0"/></body></worldbody></mujoco>'
    error, _ = caller.error("RegisterModel", {"text": text, "name": "leg.xml"})
    assert isinstance(error, ModelError)
    assert "leg.xml" in error.message and "knee" in error.message


def test_a_compilation_that_takes_too_long_names_the_setting() -> None:
    with running_server("--compile-time", "0.5") as server:
        wire = GrpcWire(server.grpc_target)
        error, _ = wire.error("RegisterModel", {"text": endless()})
        assert isinstance(error, LimitError) and "--compile-time 0.5" in error.message
        assert wire.call("RegisterModel", {"text": CART})["nv"] == 1


def test_a_compilation_that_takes_too_much_memory_names_the_setting() -> None:
    with running_server("--compile-memory", "64MiB") as server:
        wire = GrpcWire(server.grpc_target)
        error, _ = wire.error("RegisterModel", {"text": large()})
        assert isinstance(error, LimitError) and "--compile-memory 64MiB" in error.message
        assert wire.call("RegisterModel", {"text": CART})["nv"] == 1


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGKILL])
def test_no_worker_outlives_the_server(number: int) -> None:
    with running_server("--grace", "0.5") as server, compiling(server, endless(), 2, 30.0):
        wait_for(lambda: len(workers(server)) >= 2 and all(map(_busy, workers(server))))
        left = [*workers(server), *_children(server.process.pid)]
        started = time.monotonic()
        assert server.stop(number) == (0 if number == signal.SIGTERM else -number)
        assert time.monotonic() - started < 3.0
        wait_for(lambda: not any(Path(f"/proc/{process}").exists() for process in left))

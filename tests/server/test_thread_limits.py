"""Where the system starts no more threads or processes, the server says so, and loses no place."""

from __future__ import annotations

import asyncio
import resource
import subprocess
import sys
import threading
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import numpy as np
import pytest

from revolute.contract.errors import LimitError
from revolute_server.compute.pool import EnginePool
from revolute_server.observe.incidents import public_error
from testbed.cart import CART
from testbed.server_process import allow_no_more_threads, running_server
from testbed.wire import GrpcWire

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="elsewhere threads are bounded in other ways")


def test_a_server_that_may_start_no_more_threads_goes_on() -> None:
    with running_server("--workers", "3", "--threads", "4") as server:
        wire = GrpcWire(server.grpc_target)
        cart = wire.call("RegisterModel", {"text": CART})["model_id"]
        allow_no_more_threads(server)
        document: dict[str, Any] = {
            "model_id": cart,
            "qpos": np.zeros((64, 1)),
            "qvel": np.zeros((64, 1)),
            "ctrl": np.ones((64, 200, 1)),
        }

        def roll(_number: int) -> Any:
            own = GrpcWire(server.grpc_target)
            try:
                return own.call("Rollout", document, timeout=60.0)["status"]
            finally:
                own.close()

        with ThreadPoolExecutor(6) as clients:
            for status in clients.map(roll, range(24)):
                np.testing.assert_array_equal(status, 0)
        assert server.metric("revolute_workers_busy") == 0
        assert "Traceback" not in server.log.read_text()


def test_a_start_without_threads_is_one_line() -> None:
    limited = (
        "import resource, sys; import revolute_server.app; from revolute_server.cli import main; "
        "import threading; start = threading.Thread.start\n"
        "def refuse(thread):\n"
        "    if 'engine' in thread.name: raise RuntimeError(\"can't start new thread\")\n"
        "    start(thread)\n"
        "threading.Thread.start = refuse; sys.exit(main())"
    )
    command = [sys.executable, "-c", limited, "--grpc-port", "0", "--http-port", "0", "--store", "memory:"]
    ended = subprocess.run(command, capture_output=True, text=True, timeout=60, check=False)
    assert ended.returncode == 2
    assert ended.stderr.startswith("revolute serve: threads: expected ") and ended.stderr.count("\n") == 1


def test_a_batch_that_no_thread_takes_gives_its_place_back(monkeypatch: pytest.MonkeyPatch) -> None:
    async def scenario() -> None:
        pool = EnginePool(1, 2)
        submit = ThreadPoolExecutor.submit

        def refuse(*_: Any) -> Any:
            raise RuntimeError("can't start new thread")

        monkeypatch.setattr(ThreadPoolExecutor, "submit", refuse)
        with pytest.raises(RuntimeError) as refused:
            await asyncio.wait_for(pool.run(lambda _token: None), 5.0)
        assert isinstance(public_error(refused.value, "Step"), LimitError)
        assert pool.busy == 0 and pool.waiting + pool.running == 0
        monkeypatch.setattr(ThreadPoolExecutor, "submit", submit)
        assert await asyncio.wait_for(pool.run(lambda _token: "room"), 5.0) == "room"
        pool.close()

    asyncio.run(scenario())


def test_a_pool_without_threads_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    started: list[threading.Thread] = []
    start = threading.Thread.start

    def refuse(thread: threading.Thread) -> None:
        if len(started) == 2:
            raise RuntimeError("can't start new thread")
        started.append(thread)
        start(thread)

    monkeypatch.setattr(threading.Thread, "start", refuse)
    with pytest.raises(LimitError, match="threads: expected 4 threads"):
        EnginePool(4, 2)
    for thread in started:
        thread.join(5.0)
        assert not thread.is_alive()


def test_a_model_without_a_process_to_compile_it_is_refused() -> None:
    with running_server("--workers", "1", "--threads", "1") as server:
        wire = GrpcWire(server.grpc_target)
        wire.call("GetServerInfo", {})
        _, most = resource.prlimit(server.process.pid, resource.RLIMIT_NOFILE)
        resource.prlimit(server.process.pid, resource.RLIMIT_NOFILE, (3, most))
        error, _ = wire.error("RegisterModel", {"text": CART})
        assert isinstance(error, LimitError) and error.message.startswith("compilers: expected a process")
        resource.prlimit(server.process.pid, resource.RLIMIT_NOFILE, (1024, most))
        assert wire.call("RegisterModel", {"text": CART})["nv"] == 1

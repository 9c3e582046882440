"""Case E02: clients die in the middle of a stream; all workers come back."""

from __future__ import annotations

import signal
import subprocess
import sys
import time
from collections.abc import Callable

import numpy as np
import pytest

import revolute
from testbed.case_files import case_file, expected
from testbed.server_process import ServerProcess, running_server

WORKERS = 2
CLIENT = """
import signal, sys, time
import numpy as np
import revolute

signal.signal(signal.SIGINT, signal.default_int_handler)  # a runner in the background may ignore it
simulator = revolute.connect(sys.argv[1])
model = simulator.load_model(sys.argv[2])
session = simulator.session(model)
if sys.argv[3] == "stream":
    stream = simulator.stream_rollout(model, [0.0], [0.0], np.ones((5_000_000, 1)))
    next(stream)
    for segment in stream:
        pass
else:
    session.step(np.ones(1), 1)
    session.step(np.ones(1), 10**9)
print("over", flush=True)
"""


def counted(server: ServerProcess) -> dict[str, float]:
    """Return what the server says of its workers and memory."""
    names = ("workers_busy", "queue_length", "trajectories", "memory_bytes")
    return {name: server.metric(f"revolute_{name}") for name in names}


def wait_until(condition: Callable[[], bool], seconds: float) -> bool:
    deadline = time.monotonic() + seconds
    while time.monotonic() < deadline:
        if condition():
            return True
        time.sleep(0.05)
    return False


@pytest.mark.parametrize("scheme", ["grpc", "http"])
def test_dead_clients_give_their_workers_back(scheme: str) -> None:
    model_file, numbers = case_file("E02", "cart.xml"), expected("E02")
    with running_server("--workers", str(WORKERS)) as server:
        address = getattr(server, scheme)
        before = counted(server)
        clients = []
        for place in range(3 * WORKERS):
            kind = "stream" if place % 2 else "step"
            command = [sys.executable, "-c", CLIENT, address, str(model_file), kind]
            clients.append(subprocess.Popen(command, stdout=subprocess.PIPE, text=True))
        assert wait_until(lambda: counted(server)["workers_busy"] == WORKERS, 60)
        time.sleep(0.5)
        for place, client in enumerate(clients):
            client.send_signal(signal.SIGKILL if place % 3 else signal.SIGINT)
        for client in clients:
            output, _ = client.communicate(timeout=30)
            assert "over" not in output

        began = time.monotonic()
        with revolute.connect(address) as simulator:
            model = simulator.load_model(model_file)
            with simulator.session(model) as session:
                state = session.step(np.ones(1), 1000)
        assert time.monotonic() - began < 30
        np.testing.assert_allclose(state.qvel, [[numbers["v"]]], rtol=1e-12)
        np.testing.assert_allclose(state.qpos, [[numbers["x"]]], rtol=1e-12)

        def idle() -> bool:
            now = counted(server)
            return all(now[name] == 0 for name in ("workers_busy", "queue_length", "trajectories"))

        assert wait_until(idle, 30)
        # the model, as MuJoCo and the engine hold it, and the dead clients' sessions, a few numbers each
        assert counted(server)["memory_bytes"] - before["memory_bytes"] < 40_000

        def at_rest() -> bool:
            used = server.cpu_seconds()
            time.sleep(0.5)
            return server.cpu_seconds() - used < 0.025

        assert wait_until(at_rest, 30)

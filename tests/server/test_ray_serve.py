"""The server on Ray Serve: replicas share one store, and one that is killed loses nothing."""

from __future__ import annotations

import contextlib
import os
import signal
import socket
import time
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest

import revolute
from revolute.contract.errors import ArgumentError

pytest.importorskip("ray")

from ray import serve


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


@pytest.fixture(scope="module")
def addresses(ray_cluster: None, redis_address: str) -> Iterator[dict[str, str]]:
    port, grpc_port = free_port(), free_port()
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("REVOLUTE_STORE", redis_address)
        from revolute_server.ray import Replica

        serve.start(http_options={"host": "127.0.0.1", "port": port})
        variables = {"STORE": redis_address, "THREADS": "1", "GRPC_PORT": str(grpc_port)}
        environment = {"env_vars": {f"REVOLUTE_{name}": value for name, value in variables.items()}}
        serve.run(Replica.options(ray_actor_options={"runtime_env": environment}).bind())
        yield {"http": f"http://127.0.0.1:{port}", "grpc": f"grpc://127.0.0.1:{grpc_port}"}
        serve.shutdown()


def parent(process: int) -> int:
    """Return the process number of a process's parent, 0 where there is none."""
    try:
        return int(Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()[1])
    except OSError:
        return 0


def is_ours(process: int) -> bool:
    """Tell whether this process started another one, directly or through its children."""
    while process not in (0, os.getpid()):
        process = parent(process)
    return process != 0


def replicas() -> set[int]:
    """Return the process numbers of this cluster's replicas; Ray names their processes.

    Other test processes on this machine may have clusters of their own.
    """
    found = set()
    for path in Path("/proc").glob("[0-9]*/cmdline"):
        with contextlib.suppress(OSError):
            if path.read_bytes().startswith(b"ray::ServeReplica") and is_ours(int(path.parent.name)):
                found.add(int(path.parent.name))
    return found


@pytest.mark.parametrize("transport", ["http", "grpc"])
@pytest.mark.slow
def test_a_killed_replica_loses_nothing(
    addresses: dict[str, str], transport: str, in_process: revolute.Simulator
) -> None:
    with revolute.connect(addresses[transport], retries=30) as simulator:
        model = simulator.load_model("cartpole")
        start = model.qpos0, model.qvel0 + 1.0, np.zeros((50, model.nu))
        trajectory, expected = simulator.rollout(model, *start), in_process.rollout(model, *start)
        bar = np.ones_like(trajectory.qpos)
        session = simulator.session(model, 2)
        counts = [session.step([0.1]).step_count]
        before = replicas()
        assert len(before) == 2
        for process in before:
            os.kill(process, signal.SIGKILL)
            gradient = trajectory.backward(bar)
            np.testing.assert_array_equal(gradient.qpos, expected.backward(bar).qpos)
            counts.append(session.step([0.1]).step_count)
            # the other one goes only when this one is back, as with failures of single nodes
            deadline = time.monotonic() + 60
            while len(replicas() - {process}) < 2 and time.monotonic() < deadline:
                time.sleep(0.2)
        assert counts == [1, 2, 3] and not replicas() & before


def test_a_store_that_replicas_do_not_share_is_an_error(
    ray_cluster: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    from revolute_server.ray import create_replica

    monkeypatch.setenv("REVOLUTE_STORE", "memory:")
    with pytest.raises(ArgumentError, match="REVOLUTE_STORE=redis"):
        create_replica()

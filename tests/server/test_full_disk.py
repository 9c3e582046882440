"""A disk without a byte left: what needs room is refused, everything else goes on, and nothing is lost."""

from __future__ import annotations

import contextlib
import subprocess
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest

import revolute
from testbed.cart import CART
from testbed.server_process import ServerProcess, running_server


@pytest.fixture
def disk(tmp_path: Path) -> Iterator[Path]:
    """Return a file system of 4 MiB."""
    mount = ["mount", "-t", "tmpfs", "-o", "size=4m", "tmpfs", str(tmp_path)]
    try:
        subprocess.run(mount, check=True, capture_output=True)
    except (OSError, subprocess.CalledProcessError):
        pytest.skip("needs the right to mount a tmpfs")
    yield tmp_path
    subprocess.run(["umount", "--lazy", str(tmp_path)], check=True)


def rollout(simulator: revolute.Simulator, model: revolute.Model, steps: int) -> str:
    return simulator.rollout(model, [0.0], [0.0], np.ones((steps, 1))).detach()


def fill(path: Path) -> None:
    """Leave no byte free."""
    with contextlib.suppress(OSError), path.open("wb", buffering=0) as file:
        while True:
            file.write(bytes(4096))


def use(server: ServerProcess, disk: Path) -> list[str]:
    """Fill the disk under a server, and empty it; return what it has acknowledged."""
    with revolute.connect(server.grpc, retries=0) as simulator:
        model = simulator.load_model(CART)
        session = simulator.session(model, 1)
        kept = [rollout(simulator, model, steps) for steps in (10, 3000)]
        doomed = [rollout(simulator, model, steps) for steps in (10, 3000)]
        fill(disk / "filler")
        with contextlib.suppress(revolute.LimitError):
            while True:
                doomed.append(rollout(simulator, model, 10))

        for steps in (10, 20_000):
            with pytest.raises(revolute.LimitError, match=r"store: expected room .* a full disk") as caught:
                rollout(simulator, model, steps)
            assert caught.value.retry_after is None
        count = session.state().step_count
        with pytest.raises(revolute.LimitError, match="full disk"):
            for _ in range(1000):
                count = session.step([1.0]).step_count
        assert session.state().step_count == count
        check(simulator, model, kept)
        with revolute.connect(server.grpc, retries=0) as newcomer:
            check(newcomer, newcomer.load_model(CART), kept)
            with pytest.raises(revolute.LimitError, match="full disk"):
                newcomer.load_model("pendulum1")
        for trajectory in doomed:
            simulator.trajectory(model, trajectory).delete()

        (disk / "filler").unlink()
        kept.append(rollout(simulator, model, 20_000))
        assert session.step([1.0]).step_count == count + 1
        return kept


def check(simulator: revolute.Simulator, model: revolute.Model, kept: list[str]) -> None:
    """Check that trajectories are whole: d x_N / d u_k = h^2 (N - k)."""
    for identifier in kept:
        trajectory = simulator.trajectory(model, identifier)
        qpos_bar = np.zeros_like(trajectory.qpos)
        qpos_bar[-1] = 1.0
        steps = len(qpos_bar) - 1
        ctrl_bar = trajectory.backward(qpos_bar, wrt=["ctrl"]).ctrl[:, 0]
        np.testing.assert_allclose(ctrl_bar, 1e-6 * np.arange(steps, 0, -1), rtol=1e-9)
        trajectory.detach()


@pytest.mark.parametrize("durability", ["process", "disk"])
def test_a_full_disk_refuses_reads_deletes_and_recovers(disk: Path, durability: str) -> None:
    flags = ("--store", f"sqlite:///{disk}/store.db", "--durability", durability)
    with running_server(*flags) as server:
        kept = use(server, disk)
        server.process.kill()
    with running_server(*flags) as server, revolute.connect(server.grpc) as simulator:
        check(simulator, simulator.load_model(CART), kept)

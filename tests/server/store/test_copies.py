"""`revolute backup` and `restore`: a store that is in use is copied whole, to one of another kind."""

from __future__ import annotations

import sqlite3
import subprocess
import sys
import threading
from pathlib import Path

import numpy as np
import pytest

import revolute
from testbed.server_process import running_server


def command(*arguments: object) -> subprocess.CompletedProcess[str]:
    """Run the command line."""
    return subprocess.run(
        [sys.executable, "-m", "revolute", *map(str, arguments)], capture_output=True, text=True, timeout=120
    )


def copied(*arguments: object) -> str:
    """Run a copy that must succeed, and return what it printed."""
    done = command(*arguments)
    assert done.returncode == 0, done.stderr
    return done.stdout


def test_a_store_in_use_is_copied_and_served_from_another_kind(tmp_path: Path, redis_address: str) -> None:
    import redis

    redis.Redis.from_url(redis_address).flushall()
    store, file = f"sqlite:///{tmp_path}/store.db", tmp_path / "backup.db"
    with running_server("--store", store) as server, revolute.connect(server.grpc) as simulator:
        model = simulator.load_model("laikago")
        ctrl = np.zeros((200, model.nu))
        kept = simulator.rollout(model, model.keyframes["home"], model.qvel0, ctrl)
        bar = np.ones_like(kept.qpos)
        expected, trajectory_id = kept.backward(bar).qpos, kept.detach()
        session, other = simulator.session(model, 3), simulator.session(model, 1)
        other.step(np.zeros(model.nu), 7)
        over = threading.Event()

        def use() -> None:
            while not over.is_set():
                session.step(np.zeros(model.nu))

        user = threading.Thread(target=use)
        user.start()
        try:
            said = copied("backup", file, "--store", store)
        finally:
            over.set()
            user.join()
        assert "1 of kind model, 2 of kind session, 1 of kind trajectory" in said
    assert "1 of kind trajectory" in copied("restore", file, "--store", redis_address)
    with running_server("--store", redis_address) as server, revolute.connect(server.grpc) as simulator:
        model = simulator.load_model("laikago")
        again = simulator.trajectory(model, trajectory_id)
        np.testing.assert_array_equal(again.backward(bar).qpos, expected)
        assert simulator.open_session(model, other.id).state().step_count == 7
        reopened = simulator.open_session(model, session.id)
        assert reopened.step(np.zeros(model.nu)).step_count >= 1


def test_a_damaged_record_is_left_out_by_name(tmp_path: Path) -> None:
    store, file = f"sqlite:///{tmp_path}/store.db", tmp_path / "backup.db"
    with running_server("--store", store) as server, revolute.connect(server.grpc) as simulator:
        model = simulator.load_model("cartpole")
        for _ in range(2):
            simulator.rollout(model, model.qpos0, model.qvel0, np.zeros((5, 1))).detach()
    with sqlite3.connect(tmp_path / "store.db") as connection:
        (key,) = connection.execute("SELECT key FROM records WHERE kind = 'trajectory'").fetchone()
        connection.execute("UPDATE records SET payload = zeroblob(size), file = NULL WHERE key = ?", [key])
    done = command("backup", file, "--store", store)
    assert done.returncode == 1 and "1 of kind trajectory" in done.stdout
    assert key in done.stderr and "1 damaged records are not copied" in done.stderr


@pytest.mark.parametrize(
    ("arguments", "text"),
    [
        (("backup", "{here}/there.db", "--store", "sqlite:///{here}/x.db"), "a path where nothing is"),
        (
            ("restore", "{here}/absent.db", "--store", "sqlite:///{here}/x.db"),
            "a file that `revolute",
        ),
        (("backup", "{here}/new.db", "--store", "sqlite:///{here}/no.db"), "a store that servers have used"),
        (("backup", "{here}/new.db", "--store", "memory:"), "a store outside of a process"),
        (("restore", "{here}/full.db", "--store", "sqlite:///{here}/full.db"), "an empty store"),
    ],
)
def test_mistakes_are_one_line(tmp_path: Path, arguments: tuple[str, ...], text: str) -> None:
    (tmp_path / "there.db").touch()
    full = ("--store", f"sqlite:///{tmp_path}/full.db")
    with running_server(*full) as server, revolute.connect(server.grpc) as simulator:
        simulator.load_model("cartpole")
    done = command(*(argument.format(here=tmp_path) for argument in arguments))
    assert done.returncode == 2 and text in done.stderr and done.stderr.count("\n") == 1

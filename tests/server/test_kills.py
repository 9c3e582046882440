"""What was acknowledged survives kill -9 in the middle of work, time and again, with the same gradient."""

from __future__ import annotations

import threading
import time
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import revolute
from revolute.errors import RevoluteError
from revolute_engine import Engine, load_model

from .conftest import CART
from .processes import running_server

Kept = dict[str, tuple[np.ndarray, np.ndarray]]


class Worker(threading.Thread):
    """Rolls out and notes what was acknowledged, until the server dies."""

    def __init__(self, address: str, seed: int) -> None:
        super().__init__(daemon=True)
        self.kept: Kept = {}
        self.session: tuple[str, int, np.ndarray] | None = None
        self._address = address
        self._dice = np.random.default_rng(seed)

    def run(self) -> None:
        try:
            with revolute.connect(self._address, retries=0) as simulator:
                model = simulator.load_model(CART)
                session = simulator.session(model, 2)
                while True:
                    ctrl = self._dice.normal(size=(2, int(self._dice.integers(1, 900)), 1))
                    trajectory = simulator.rollout(model, np.zeros(1), np.zeros(1), ctrl)
                    self.kept[trajectory.detach()] = ctrl, np.array(trajectory.qpos)
                    state = session.step(ctrl[:, 0])
                    self.session = session.id, state.step_count, state.qpos
        except RevoluteError:
            return


def kill_often(store: Path, kills: int, workers: int = 2, *, seconds: float = 0.35) -> dict[str, Any]:
    """Start a server, kill it under load, start it again on the same store; count what is lost or altered.

    Args:
        store: file of the store.
        kills: how often.
        workers: clients that work at a time.
        seconds: of work between start and kill, at the most.
    """
    dice = np.random.default_rng(kills)
    model, engine = load_model(CART), Engine(threads=1)
    kept: Kept = {}
    sessions: dict[str, tuple[int, np.ndarray]] = {}
    lost, slowest = [], 0.0
    for number in range(kills + 1):
        began = time.monotonic()
        with running_server("--store", f"sqlite:///{store}", "--threads", "1", "--workers", "2") as server:
            with revolute.connect(server.grpc) as simulator:
                handle = simulator.load_model(CART)
                if number:
                    slowest = max(slowest, time.monotonic() - began)
                # all at the end, some of them each time
                checked = list(kept) if number == kills else list(kept)[-20:]
                for key in checked:
                    lost += [] if _is_whole(simulator, handle, key, *kept[key], model, engine) else [key]
                for session_id, (count, qpos) in sessions.items():
                    state = simulator.open_session(handle, session_id).state()
                    # the step after the last acknowledged one may have happened
                    lost += [] if state.step_count in (count, count + 1) else [session_id]
                    if state.step_count == count:
                        np.testing.assert_array_equal(state.qpos, qpos)
                    simulator.open_session(handle, session_id).close()
            sessions.clear()
            if number == kills:
                break
            crew = [Worker(server.grpc, 1000 * number + index) for index in range(workers)]
            for worker in crew:
                worker.start()
            time.sleep(float(dice.uniform(0.3, 1.0)) * seconds)
            server.process.kill()
            server.process.wait()
            for worker in crew:
                worker.join(60)
                kept.update(worker.kept)
                if worker.session:
                    session_id, count, qpos = worker.session
                    sessions[session_id] = count, qpos
    return {"acknowledged": len(kept), "lost": lost, "slowest_start": slowest}


def _is_whole(
    simulator: revolute.Simulator,
    handle: revolute.ModelHandle,
    key: str,
    ctrl: np.ndarray,
    qpos: np.ndarray,
    model: Any,
    engine: Engine,
) -> bool:
    """Tell whether a trajectory is as it was acknowledged, and its gradient that of the engine here."""
    try:
        trajectory = simulator.trajectory(handle, key)
    except RevoluteError:
        return False
    bar = np.ones_like(qpos)
    found = trajectory.backward(bar)
    expected = engine.backward(model, engine.rollout(model, np.zeros(1), np.zeros(1), ctrl), bar)
    return (
        trajectory.qpos.tobytes() == qpos.tobytes()
        and trajectory.ctrl.tobytes() == ctrl.tobytes()
        and all(found[name].tobytes() == expected[name].tobytes() for name in ("qpos", "qvel", "ctrl"))
    )


@pytest.mark.slow
def test_nothing_acknowledged_is_lost_or_altered(tmp_path: Path) -> None:
    """Twenty kills, as many as CI has time for; benchmarks/service/kills.py has a thousand."""
    found = kill_often(tmp_path / "store.db", kills=20)
    assert found["lost"] == []
    assert found["acknowledged"] > 10

"""Kill -9 under load, time and again: what of the acknowledged is lost or altered, how soon it serves again.

    python -m benchmarks.service.kills [--kills 1000] [--seed 0] [--seconds 7200] [--out kills.json]

Clients roll out and step without a pause and note what is acknowledged; the server dies at a random moment
and starts again on the same store. After each start what was acknowledged last is read back, with its
gradient; every 50 kills all that is kept is read back and then deleted.
"""

from __future__ import annotations

import dataclasses
import math
import random
import statistics
import sys
import tempfile
import threading
import time
from collections.abc import Iterable, Sequence
from pathlib import Path

import numpy as np

import revolute
from revolute.contract.errors import NotFoundError, RevoluteError, UnavailableError
from revolute_engine import Engine, load_model
from testbed.cart import CART
from testbed.server_process import running_server

from . import verdict

MODEL, ENGINE = load_model(CART), Engine(threads=1)

MOST_STEPS = 900
"""Steps of the longest rollout: some payloads lie in the database, the larger ones in files."""

WORK_SECONDS = 0.25
"""Longest time between the first acknowledged trajectory and the kill."""

PATIENCE = 60.0
"""Seconds for a client's first answer, and for its end."""

ALL_EVERY = 50
"""Kills after which all that is kept is read back and deleted."""

LATEST = 20
"""Trajectories that are read back after each start: those that were acknowledged last."""

GOAL_SECONDS = 2.0
"""Serving again."""


@dataclasses.dataclass
class Kept:
    """A trajectory as it was acknowledged: controls [2, steps, 1] and configurations [2, steps + 1, 1]."""

    ctrl: np.ndarray
    qpos: np.ndarray


@dataclasses.dataclass
class Stepped:
    """A session as its last step left it."""

    id: str
    step_count: int
    qpos: np.ndarray


@dataclasses.dataclass
class Report:
    """What a run found.

    Attributes:
        kills: how many.
        acknowledged: trajectories that clients had an answer for.
        sessions: sessions that were stepped when the server died.
        lost: ids of trajectories and sessions that are gone or other than acknowledged.
        failed: what clients met but the end of the server.
        idle: clients that had got no answer from the server yet when it was killed.
        serving_again: seconds from the start of each server to its first answer about a model.
    """

    kills: int = 0
    acknowledged: int = 0
    sessions: int = 0
    lost: list[str] = dataclasses.field(default_factory=list)
    failed: list[str] = dataclasses.field(default_factory=list)
    idle: int = 0
    serving_again: list[float] = dataclasses.field(default_factory=list)

    @property
    def wrong(self) -> list[str]:
        """What must not be, in words."""
        found = [f"{len(self.lost)} lost or altered"] if self.lost else []
        return [*found, *sorted(set(self.failed))]

    @property
    def summary(self) -> str:
        """The figures in one line."""
        times = sorted(self.serving_again) or [float("nan")]
        late = sum(seconds > GOAL_SECONDS for seconds in times)
        return (
            f"{self.kills} kills -9 under load: {self.acknowledged} acknowledged trajectories and "
            f"{self.sessions} sessions, {len(self.lost)} lost or altered; serving again "
            f"after {statistics.median(times):.2f} s (median), {times[-1]:.2f} s (longest), "
            f"{late} times after more than {GOAL_SECONDS:g} s"
        )


class _Worker(threading.Thread):
    """Rolls out, steps, and notes what was acknowledged, until the server dies."""

    def __init__(self, address: str, seed: Sequence[int]) -> None:
        super().__init__(daemon=True)
        self.kept: dict[str, Kept] = {}
        self.session: Stepped | None = None
        self.failed = ""
        self.at_work = threading.Event()
        self._address = address
        self._dice = np.random.default_rng(seed)

    def run(self) -> None:
        try:
            with revolute.connect(self._address, retries=0) as simulator:
                model = simulator.load_model(CART)
                session = simulator.session(model, 2)
                while True:
                    ctrl = self._dice.normal(size=(2, int(self._dice.integers(1, MOST_STEPS)), 1))
                    trajectory = simulator.rollout(model, np.zeros(1), np.zeros(1), ctrl)
                    self.kept[trajectory.detach()] = Kept(ctrl, np.array(trajectory.qpos))
                    self.at_work.set()
                    state = session.step(ctrl[:, 0])
                    self.session = Stepped(session.id, state.step_count, state.qpos)
        except UnavailableError:
            return
        except Exception as error:
            self.failed = f"a client met {error!r}"


class _Reader:
    """Reads back what was acknowledged, from a server that has just started."""

    def __init__(self, simulator: revolute.Simulator, handle: revolute.ModelHandle, report: Report) -> None:
        self._simulator, self._handle, self._report = simulator, handle, report

    def trajectories(self, kept: dict[str, Kept], *, gradients: bool, delete: bool = False) -> None:
        """Compare trajectories, and their gradients with those of the engine here."""
        for key, known in kept.items():
            if not self._is_whole(key, known, gradients):
                self._report.lost.append(key)
            elif delete:
                self._simulator.trajectory(self._handle, key).delete()

    def sessions(self, known: Iterable[Stepped]) -> None:
        """Compare sessions, and close them."""
        for one in known:
            self._report.sessions += 1
            try:
                session = self._simulator.open_session(self._handle, one.id)
                state = session.state()
                session.close()
            except NotFoundError:
                self._report.lost.append(one.id)
                continue
            # the step after the last acknowledged one may have happened
            same = state.step_count == one.step_count and state.qpos.tobytes() == one.qpos.tobytes()
            if not same and state.step_count != one.step_count + 1:
                self._report.lost.append(one.id)

    def _is_whole(self, key: str, known: Kept, gradients: bool) -> bool:
        try:
            found = self._simulator.trajectory(self._handle, key)
            whole = found.ctrl.tobytes() == known.ctrl.tobytes()
            whole = whole and found.qpos.tobytes() == known.qpos.tobytes()
            return whole and (not gradients or _same_gradient(found, known))
        except RevoluteError:
            return False


def _same_gradient(found: revolute.Trajectory, known: Kept) -> bool:
    bar = np.ones_like(known.qpos)
    answered = found.backward(bar)
    rollout = ENGINE.rollout(MODEL, np.zeros(1), np.zeros(1), known.ctrl)
    expected = ENGINE.backward(MODEL, rollout, bar)
    return all(answered[name].tobytes() == expected[name].tobytes() for name in ("qpos", "qvel", "ctrl"))


def kill_often(
    store: Path,
    kills: int,
    seed: int = 0,
    *,
    clients: int = 2,
    all_every: int = ALL_EVERY,
    seconds: float = math.inf,
) -> Report:
    """Start a server, kill it under load, start it again on the same store; count what is lost or altered.

    Args:
        store: file of the store.
        kills: how often.
        seed: of the moments and of what clients ask.
        clients: that work at a time.
        all_every: kills after which all that is kept is read back and deleted.
        seconds: time after which no server is killed.
    """
    dice, report, end = random.Random(seed), Report(), time.monotonic() + seconds
    kept: dict[str, Kept] = {}
    sessions: list[Stepped] = []
    for number in range(kills + 1):
        began = time.monotonic()
        with (
            running_server("--store", f"sqlite:///{store}", "--threads", "1", "--workers", "2") as server,
            revolute.connect(server.grpc) as simulator,
        ):
            handle = simulator.load_model(CART)
            if number:
                report.serving_again.append(time.monotonic() - began)
            last = number == kills or began > end
            crew = [_Worker(server.grpc, (seed, number, place)) for place in range(clients)]
            reader = _Reader(simulator, handle, report)
            reader.sessions(sessions)
            reader.trajectories(dict(list(kept.items())[-LATEST:]), gradients=True)
            if last or number % all_every == 0:
                reader.trajectories(kept, gradients=False, delete=True)
                kept.clear()
            if last:
                break
            for worker in crew:
                worker.start()
            crew[0].at_work.wait(PATIENCE)
            time.sleep(WORK_SECONDS * dice.random())
            server.process.kill()
            server.process.wait()
            for worker in crew:
                worker.join(PATIENCE)
        for worker in crew:
            kept.update(worker.kept)
        sessions = [worker.session for worker in crew if worker.session]
        _note(report, crew)
    return report


def _note(report: Report, crew: list[_Worker]) -> None:
    """Count what the clients of a server that is dead have met."""
    report.kills += 1
    report.acknowledged += sum(len(worker.kept) for worker in crew)
    report.idle += sum(not worker.kept for worker in crew)
    report.failed += [worker.failed for worker in crew if worker.failed]
    report.failed += ["a client did not notice the end" for worker in crew if worker.is_alive()]
    if report.kills % ALL_EVERY == 0:
        print(report.summary, file=sys.stderr, flush=True)


def main() -> int:
    """Kill, count, and say what was found."""
    parser = verdict.parser(__doc__)
    parser.add_argument("--kills", type=int, default=1000)
    parser.add_argument("--seed", type=int, default=0)
    chosen = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        store = Path(folder, "store.db")
        report = kill_often(store, chosen.kills, chosen.seed, seconds=chosen.seconds)
    return verdict.finish(chosen.out, report.summary, dataclasses.asdict(report), report.wrong)


if __name__ == "__main__":
    sys.exit(main())

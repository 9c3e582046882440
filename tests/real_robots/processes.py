"""Runs the measurements of many robots, each in a process of its own, and keeps what they found.

A robot's figures lie in one JSON file below a folder that is named after the engine, so that a run that was
stopped goes on where it was, and no page mixes the figures of two engines.
"""

from __future__ import annotations

import json
import os
import re
import resource
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterable
from concurrent.futures import ThreadPoolExecutor, as_completed
from dataclasses import dataclass
from pathlib import Path

from testbed.robot_catalogue import Robot

from .measurement import Figures, engine_digest

WAITING = 20
"""A process may take this many times its processor time by the clock, for machines that do other work."""

_ONE_THREAD = {"OMP_NUM_THREADS": "1", "OPENBLAS_NUM_THREADS": "1"}


@dataclass(frozen=True)
class Limits:
    """What a process may take.

    Attributes:
        seconds: processor time.
        gigabytes: memory in use.
    """

    seconds: float
    gigabytes: float


class EngineChangedError(RuntimeError):
    """The engine was rebuilt while robots were measured."""


class Runs:
    """The measurements of one engine on disk, made as they are asked for.

    Args:
        folder: where figures of all engines are kept.
        limits: of each process.
        jobs: processes at a time.
    """

    def __init__(self, folder: Path, limits: Limits, jobs: int) -> None:
        self.engine = engine_digest()
        self.limits, self.jobs = limits, jobs
        self._folder = folder / self.engine
        self._folder.mkdir(parents=True, exist_ok=True)

    def figures(self, robot: Robot) -> Figures:
        """Return what is known of a robot."""
        path = self._path(robot)
        return dict(json.loads(path.read_text(encoding="utf-8"))) if path.is_file() else {}

    def measure(
        self, part: str, robots: Iterable[Robot], progress: Callable[[Robot, Figures, float], None]
    ) -> None:
        """Measure a part of those robots that lack it, or were cut off by tighter limits than today's."""
        todo = [robot for robot in robots if not self._is_done(robot, part)]
        with ThreadPoolExecutor(self.jobs) as pool:
            running = {pool.submit(self._run, robot, part): robot for robot in todo}
            try:
                for done in as_completed(running):
                    progress(running[done], *done.result())
            finally:
                pool.shutdown(cancel_futures=True)

    def _is_done(self, robot: Robot, part: str) -> bool:
        figures = self.figures(robot)
        cut = figures.get("cut", {}).get(part)
        return part in figures.get("done", []) or (
            cut is not None
            and cut["seconds"] >= self.limits.seconds
            and cut["gigabytes"] >= self.limits.gigabytes
        )

    def _run(self, robot: Robot, part: str) -> tuple[Figures, float]:
        """Measure a part of one robot and keep it; returns what is known now and the seconds it took."""
        started = time.monotonic()
        found, end = self._process(robot, part)
        figures = self.figures(robot)
        for line in found:
            if line.pop("engine") != self.engine:
                raise EngineChangedError("the engine was rebuilt during the run; start again")
            figures.update(line)
        if end:
            figures.setdefault("cut", {})[part] = {"by": end, **vars(self.limits)}
        else:
            figures.setdefault("done", []).append(part)
            figures.get("cut", {}).pop(part, None)
        self._path(robot).write_text(json.dumps(figures, indent=1), encoding="utf-8")
        return figures, time.monotonic() - started

    def _process(self, robot: Robot, part: str) -> tuple[list[Figures], str]:
        """Return the lines a process printed, and what cut it off: "", "time" or "memory"."""
        seconds = str(self.limits.seconds)
        command = [sys.executable, "-m", "tests.real_robots.measurement", robot.name, part, seconds]
        pipes = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE}
        environment = {**os.environ, **_ONE_THREAD}
        with subprocess.Popen(command, text=True, env=environment, **pipes) as process:
            end, deadline = "", time.monotonic() + WAITING * self.limits.seconds
            while True:
                try:
                    out, error = process.communicate(timeout=0.2)
                    break
                except subprocess.TimeoutExpired:
                    if _resident(process.pid) > self.limits.gigabytes * 2**30:
                        end = "memory"
                    elif time.monotonic() > deadline:
                        end = "time"
                    if end:
                        process.kill()
        lines = [json.loads(line) for line in out.splitlines() if line.startswith('{"engine"')]
        return lines, end or _end(robot, process.returncode, error)

    def _path(self, robot: Robot) -> Path:
        return self._folder / f"{re.sub(r'[^a-zA-Z0-9_.-]', '_', robot.name)}.json"


def _resident(pid: int) -> int:
    """Return the bytes that a process has in memory; reserved ones do not count, the engine reserves much."""
    try:
        return int(Path(f"/proc/{pid}/statm").read_text().split()[1]) * resource.getpagesize()
    except FileNotFoundError:  # it has just ended
        return 0


def _end(robot: Robot, status: int, error: str) -> str:
    """Return what a process's exit status means."""
    if status == 0:
        return ""
    if status in (-signal.SIGXCPU, -signal.SIGKILL):
        return "time"
    raise RuntimeError(f"{robot.name}: measuring it failed with status {status}: {error[-2000:]}")

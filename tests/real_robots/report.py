"""Writes benchmarks/results/robots.md: every robot, its distance from MuJoCo and Pinocchio, its gradients.

    python -m tests.real_robots.report benchmarks/results/robots.md [--jobs 2] [--seconds 600] [--gigabytes 4]

Each robot is measured in processes of its own, at most `--jobs` at a time: first all of them without
contacts, then on the ground, those with many pairs of meshes last. What was found is kept below build/robots,
by engine: a run that is stopped goes on where it was when it is started again, and a changed engine starts
anew. A robot that exceeded a limit is tried again only with a wider one.
"""

from __future__ import annotations

import argparse
import subprocess
import sys
import time
from collections.abc import Callable
from importlib import metadata
from pathlib import Path

import mujoco

from revolute_engine import native
from testbed.robot_catalogue import Robot, installed

from .measurement import Figures
from .page import Run, page
from .processes import Limits, Runs


def main(arguments: list[str]) -> None:
    """Measure what is not yet measured, and write the page."""
    options = _options(arguments)
    robots = installed()
    runs = Runs(options.cache, Limits(options.seconds, options.gigabytes), options.jobs)
    print(f"engine {runs.engine}, {len(robots)} robots", flush=True)
    if not options.as_it_is:
        runs.measure("alone", robots, _progress("alone", len(robots)))
        on_ground = sorted((robot for robot in robots if runs.figures(robot).get("pairs")), key=_cost(runs))
        runs.measure("ground", on_ground, _progress("ground", len(on_ground)))
    run = Run(_engine(runs.engine), _packages(robots), runs.limits)
    text = page(run, [(robot, runs.figures(robot)) for robot in robots])
    options.page.write_text(text, encoding="utf-8")


def _options(arguments: list[str]) -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        prog="python -m tests.real_robots.report",
        description="Measure robots and write benchmarks/results/robots.md.",
    )
    parser.add_argument("page", type=Path, help="the page to write")
    parser.add_argument("--jobs", type=int, default=2, help="robots at a time (default: 2)")
    parser.add_argument("--seconds", type=float, default=600, help="processor time per robot and part")
    parser.add_argument("--gigabytes", type=float, default=4, help="memory per robot")
    parser.add_argument("--cache", type=Path, default=Path("build/robots"), help="where figures are kept")
    parser.add_argument("--as-it-is", action="store_true", help="write the page of what is measured by now")
    return parser.parse_args(arguments)


def _cost(runs: Runs) -> Callable[[Robot], tuple[int, int]]:
    """Return what orders robots by how long their contacts take."""

    def cost(robot: Robot) -> tuple[int, int]:
        figures = runs.figures(robot)
        return figures["hull_pairs"], figures["pairs"]

    return cost


def _progress(part: str, count: int) -> Callable[[Robot, Figures, float], None]:
    """Return what prints a line for each robot that is through."""
    started, done = time.monotonic(), 0

    def progress(robot: Robot, figures: Figures, seconds: float) -> None:
        nonlocal done
        done += 1
        cut = figures.get("cut", {}).get(part)
        how = f"cut off by {cut['by']}" if cut else "refused" if "refused" in figures else "measured"
        elapsed = time.monotonic() - started
        place = f"[{part} {done} of {count}, {elapsed:.0f} s]"
        print(f"{place} {robot.name}: {how} in {seconds:.1f} s", flush=True)

    return progress


def _engine(digest: str) -> str:
    """Return which engine was measured."""
    version = metadata.version("revolute-server")
    commit = subprocess.run(
        ["git", "log", "-1", "--format=%h", "--", "engine"], capture_output=True, text=True, check=False
    ).stdout.strip()
    where = f", the engine of commit {commit}" if commit else ""
    return f"Engine: revolute-server {version}{where}, instruction set {native.isa} (code {digest})."


def _packages(robots: list[Robot]) -> str:
    names = sorted({robot.package for robot in robots})
    versions = [f"{name} {metadata.version(name)}" for name in names]
    return f"Packages: {', '.join(versions)}; MuJoCo {mujoco.__version__}."


if __name__ == "__main__":
    main(sys.argv[1:])

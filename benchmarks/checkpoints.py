"""Memory and time of a gradient under the checkpoint policies, after figure 3 of Qiao et al. (ICML 2021).

The scene has ten standing Laikagos, 5000 steps, and the gradient by all controls. It measures `interval=k`
and `slots=s` for several k and s, then `slots=32` for several lengths of the trajectory, where memory must
stay constant, and several cotangents at once, which share the replayed steps. Memory is the peak of
benchmarks/memory.py minus the gradient.
"""

from __future__ import annotations

import argparse
import ctypes
import statistics
import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from revolute.contract.checkpoints import Checkpoints
from revolute.contract.loss import Loss, Term

from .laikago import Scene
from .measure import interleaved, machine
from .memory import with_peak
from .script import ROOT, Effort, add_effort, effort, write_report
from .table import Row, Table

STEPS = 5000
ROBOTS = 10
INTERVALS = (2, 5, 10, 20, 71, 200, 1000)
SLOTS = (6, 8, 16, 32, 64, 256, 1024)
LENGTHS = (1_000, 10_000, 100_000, 1_000_000)
COTANGENTS = (1, 2, 4, 8, 16)
LOSS = Loss([Term("qpos", index=[0, 1, 2])])
POLICY_COLUMNS = {
    "policy": "policy",
    "states": "states",
    "state_mb": "states, MB",
    "beyond_mb": "peak beyond the gradient, MB",
    "replayed": "replayed per step",
    "us": "µs per step",
    "ratio": "time, × every",
}
LENGTH_COLUMNS = {
    "steps": "steps",
    "policy": "policy",
    "states": "states",
    "beyond_mb": "peak beyond the gradient, MB",
    "replayed": "replayed per step",
    "us": "µs per step",
}
COTANGENT_COLUMNS = {
    "cotangents": "K",
    "us": "µs per step",
    "ratio": "time, × K = 1",
    "each": "µs per gradient",
}


def gradient(scene: Scene, policy: str) -> Callable[[], Any]:
    """Return a call of the loss's gradient by all controls."""
    ctrl, qvel = scene.controls()[0], np.zeros(scene.model.nv)

    def call() -> Any:
        return scene.engine.value_and_gradient(
            scene.model, scene.start, qvel, ctrl, LOSS, wrt=["ctrl"], checkpoints=policy
        )[1]

    return call


def costs(calls: Mapping[str, Callable[[], Any]], steps: int, rounds: int) -> list[Row]:
    """Return states, megabytes, peak beyond the gradient, replayed steps and median time of each call.

    The calls take turns, on one thread, and times are processor times.
    """
    seconds: dict[str, list[float]] = {name: [] for name in calls}
    rows: dict[str, Row] = {}
    for _ in range(rounds):
        for name, call in calls.items():
            start = time.process_time()
            found, peak = with_peak(call)
            seconds[name].append(time.process_time() - start)
            report = found.report
            rows[name] = {
                "policy": name,
                "states": report.states_stored,
                "state_mb": report.checkpoint_bytes / 1e6,
                "beyond_mb": max(0.0, peak - found.ctrl.nbytes / 1e6),
                "replayed": report.replayed_steps / steps,
            }
    for name, row in rows.items():
        row["us"] = statistics.median(seconds[name]) / steps * 1e6
    return list(rows.values())


def policies(work: Effort) -> Table:
    """Return memory and time over interval and slots."""
    steps = work.steps(STEPS)
    scene = Scene(steps, robots=2 if work.quick else ROBOTS)
    names = [
        "every",
        *(f"interval={k}" for k in work.some(INTERVALS)),
        *(f"slots={s}" for s in work.some(SLOTS)),
    ]
    calls = {name: gradient(scene, name) for name in names}
    table = Table(
        "checkpoints",
        f"{scene.start.size // 19} Laikagos in one scene, {steps} steps, value and gradient by all controls, "
        f"one thread; processor time, medians of {work.repeats} rounds.",
        POLICY_COLUMNS,
    )
    calls["every"]()
    rows = costs(calls, steps, work.repeats)
    table.rows = [{**row, "ratio": float(row["us"] or 0) / float(rows[0]["us"] or 1)} for row in rows]
    return table


def lengths(work: Effort) -> Table:
    """Return memory and time over the length of the trajectory."""
    table = Table(
        "checkpoint-lengths",
        "One Laikago without contacts, value and gradient by all controls, one call each.",
        LENGTH_COLUMNS,
    )
    for steps in (100, 200) if work.quick else LENGTHS:
        scene = Scene(steps, contact=False)
        calls = {policy: gradient(scene, policy) for policy in ("every", "slots=32")}
        table.rows += [{"steps": steps, **row} for row in costs(calls, steps, 1)]
    return table


def cotangents(work: Effort) -> Table:
    """Return the time of K cotangents of one trajectory of one robot."""
    steps = work.steps(500)
    scene = Scene(steps)
    trajectory = scene.forward(1)()
    random = np.random.default_rng(0)
    calls: dict[str, Callable[[], Any]] = {}
    for count in COTANGENTS:
        bars = random.normal(size=(count, 1, 1, scene.model.nq))
        calls[str(count)] = lambda bars=bars: scene.engine.backward(  # type: ignore[misc]
            scene.model, trajectory, bars, times=[-1]
        )
    timings = interleaved(calls, work.repeats)
    table = Table(
        "cotangents",
        f"K cotangents of one trajectory of one standing Laikago, {steps} steps, one thread, backward; "
        f"medians of {work.repeats} interleaved rounds.",
        COTANGENT_COLUMNS,
    )
    for count in COTANGENTS:
        us = timings[str(count)].per(steps)["median_us"]
        ratio = timings[str(count)].median / timings["1"].median
        table.rows.append({"cotangents": count, "us": us, "ratio": ratio, "each": us / count})
    return table


def _give_pages_back() -> None:
    """Have glibc return large arrays when they are freed, so that each call's peak is its own."""
    mallopt = getattr(ctypes.CDLL(None), "mallopt", None)
    if mallopt:
        mallopt(-3, 65536)  # M_MMAP_THRESHOLD


def draw(table: Table, path: Path) -> None:
    """Draw memory and time over the policies' counts."""
    import matplotlib

    matplotlib.use("Agg")
    from matplotlib import pyplot

    figure, axes = pyplot.subplots(1, 2, figsize=(10, 4), layout="constrained")
    every = table.rows[0]
    for policy, mark in (("interval", "o-"), ("slots", "s-")):
        rows = [row for row in table.rows if str(row["policy"]).startswith(policy)]
        counts = [Checkpoints.parse(row["policy"]).count for row in rows]
        for axis, name in zip(axes, ("state_mb", "us"), strict=True):
            axis.loglog(counts, [row[name] for row in rows], mark, label=policy, markersize=4)
    for axis, name, title in zip(
        axes, ("state_mb", "us"), ("states held, MB", "value and gradient, µs per step"), strict=True
    ):
        axis.axhline(float(every[name] or 0), color="grey", linestyle="--", label="every")
        axis.set(xlabel="interval k, slots s", title=title)
        axis.grid(visible=True, which="both", alpha=0.2)
        axis.legend()
    figure.suptitle(table.caption, fontsize=8)
    path.parent.mkdir(parents=True, exist_ok=True)
    figure.savefig(path, dpi=110)
    pyplot.close(figure)


def main(arguments: Sequence[str] | None = None) -> None:
    """Measure, print, and write JSON and the picture."""
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks.checkpoints",
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    add_effort(parser)
    parser.add_argument("--out", type=Path, default=ROOT / "build" / "checkpoints.json", help="JSON to write")
    parser.add_argument("--picture", type=Path, help="PNG to draw; needs matplotlib, of the extra demo")
    given = parser.parse_args(arguments)
    _give_pages_back()
    work, host = effort(given), machine()
    tables: list[Table] = []
    for measure in (policies, cotangents, lengths):
        tables.append(measure(work))
        print(tables[-1].markdown(), flush=True)
        write_report(given.out, host, tables)
        if given.picture:
            draw(tables[0], given.picture)


if __name__ == "__main__":
    main()

"""Many Laikagos at once: time per environment step over batch size and threads, beside mujoco.rollout."""

from __future__ import annotations

import time

from ..laikago import Scene
from ..measure import interleaved
from ..script import Effort, script
from ..table import Row, Table

STEPS = 200
BATCHES = (1, 2, 4, 8, 16, 64, 256, 1024)
THREADS = (1, 2)
COLUMNS = {
    "batch": "batch",
    "threads": "threads",
    "forward_us": "forward µs",
    "backward_us": "backward µs",
    "mujoco_us": "mujoco.rollout µs",
}


def measure(effort: Effort) -> list[Table]:
    """Return the table over batch size and threads."""
    steps = effort.steps(STEPS)
    table = Table(
        "batch",
        f"Standing Laikago, {steps} steps; microseconds per step of one environment, medians: processor time "
        "of one thread, wall-clock time of two.",
        COLUMNS,
    )
    for batch in effort.some(BATCHES):
        repeats = max(3, min(effort.repeats, 4 * effort.repeats // batch))
        for threads in THREADS:
            clock = time.process_time if threads == 1 else time.perf_counter
            scene = Scene(steps, threads=threads)
            calls = {"forward_us": scene.forward(batch), "backward_us": scene.backward(batch)}
            if threads == 1 and batch <= 64:
                calls["mujoco_us"] = scene.mujoco_forward(batch)
            row: Row = {"batch": batch, "threads": threads}
            for name, timing in interleaved(calls, repeats, clock).items():
                row[name] = timing.per(steps * batch)["median_us"]
            table.rows.append(row)
    return [table]


if __name__ == "__main__":
    script("benchmarks.ours.batch", __doc__, measure)

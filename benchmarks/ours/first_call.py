"""From nothing to the first gradient: a cold process imports, loads the robot, rolls out and differentiates.

Nothing is compiled at run time, so that the first call costs what the second does. Times are
processor time within the process, after the interpreter has started.
"""

from __future__ import annotations

import json
import statistics
import subprocess
import sys

from ..script import ROOT, Effort, script
from ..table import Table

PROGRAM = """
import json, time
ticks = {"start": time.process_time()}
import numpy as np
ticks["import numpy"] = time.process_time()
import mujoco
ticks["import mujoco (reads model files)"] = time.process_time()
import revolute
simulator = revolute.connect()
ticks["import revolute and its engine"] = time.process_time()
model = simulator.load_model("laikago")
ticks["load the model"] = time.process_time()
ctrl = np.tile(model.qpos0[7:], (10, 1))
trajectory = simulator.rollout(model, model.qpos0, model.qvel0, ctrl)
ticks["first rollout, 10 steps"] = time.process_time()
trajectory.backward(np.ones(trajectory.qpos.shape))
ticks["first gradient"] = time.process_time()
trajectory.backward(np.ones(trajectory.qpos.shape))
ticks["second gradient"] = time.process_time()
names = list(ticks)
print(json.dumps({b: 1e3 * (ticks[b] - ticks[a]) for a, b in zip(names, names[1:])}))
"""
COLUMNS = {"what": "what", "median_ms": "processor time, median ms"}


def measure(effort: Effort) -> list[Table]:
    """Return the table of a cold start."""
    runs = []
    for _ in range(effort.repeats):
        done = subprocess.run(
            [sys.executable, "-c", PROGRAM], cwd=ROOT, capture_output=True, text=True, timeout=120, check=True
        )
        runs.append(json.loads(done.stdout))
    table = Table(
        "first_call", f"A cold process, built-in Laikago; medians of {len(runs)} processes.", COLUMNS
    )
    for what in runs[0]:
        table.rows.append({"what": what, "median_ms": statistics.median(run[what] for run in runs)})
    work = ("load the model", "first rollout, 10 steps", "first gradient")
    total = statistics.median(sum(run[what] for what in work) for run in runs)
    table.rows.append({"what": "load and first calls together", "median_ms": total})
    return [table]


if __name__ == "__main__":
    script("benchmarks.ours.first_call", __doc__, measure)

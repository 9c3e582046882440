"""Memory of a gradient of one standing Laikago: over policies, lengths and calls.

Each row is a process of its own, through the public API: `value_and_gradient` with a loss on the final
position, and `rollout` followed by `backward` with that loss's cotangent, gradient by start and all controls.
Peaks are those of benchmarks/memory.py. *Outputs* are the bytes of the arrays that the caller holds in the
end: the gradient, and of a trajectory its states; a trajectory's copy of the controls is not among them,
since the caller has his own. *Beyond* is the rest of the peak: checkpoints, workspaces, threads. The first
call of a process is apart; of the later ones the largest is shown, so that growth from call to call would be
seen.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Callable
from typing import Any

import numpy as np

import revolute

from ..laikago import START, SWEEPS, TIMESTEP, controls
from ..memory import SMALL_PAGES, with_peak
from ..script import Effort, script
from ..table import Row, Table

STEPS = (1_000, 5_000, 10_000, 100_000, 1_000_000)
POLICIES = ("every", "interval=70", "slots=32")
CALLS = 20
STEPS_IN_ALL = 200_000
"""Of the calls of one row together; a longer trajectory is differentiated once."""
COLUMNS = {
    "what": "call",
    "steps": "steps",
    "policy": "checkpoints",
    "inputs_mb": "inputs MB",
    "outputs_mb": "outputs MB",
    "first_mb": "peak MB, first call",
    "later_mb": "peak MB, later calls",
    "first_beyond_mb": "beyond outputs, first",
    "later_beyond_mb": "beyond outputs, later",
}
WORDS = {"value_and_gradient": "value_and_gradient", "backward": "rollout, backward"}


def measure(effort: Effort) -> list[Table]:
    """Return the table of memory."""
    table = Table(
        "memory", "One standing Laikago, one thread, a process per row; megabytes (1e6 bytes).", COLUMNS
    )
    lengths = (20, 50) if effort.quick else STEPS
    table.rows = [
        _in_its_own_process(call, policy, steps)
        for call in WORDS
        for steps in lengths
        for policy in POLICIES
        if policy != "interval=70" or steps == lengths[1]
    ]
    return [table]


def _in_its_own_process(call: str, policy: str, steps: int) -> Row:
    command = [sys.executable, "-m", "benchmarks.ours.memory", "--row", call, policy, str(steps)]
    environment = os.environ | SMALL_PAGES
    done = subprocess.run(command, capture_output=True, text=True, check=True, env=environment)
    row: Row = json.loads(done.stdout)
    return row


def row(call: str, policy: str, steps: int) -> Row:
    """Measure one row in this process.

    Args:
        call: a key of WORDS.
        policy: the checkpoints.
        steps: length of the trajectory.
    """
    simulator = revolute.connect(threads=1)
    model = simulator.load_model("laikago", timestep=TIMESTEP, contact_model="hard", iterations=SWEEPS)
    ctrl = controls(steps)
    inputs = START, np.zeros(model.nv), ctrl
    bar = np.zeros((1, model.nq))
    bar[0, :3] = 1.0
    loss = revolute.Term("qpos", index=[0, 1, 2])

    def value_and_gradient() -> Any:
        return simulator.value_and_gradient(model, *inputs, loss, checkpoints=policy)[1]

    def backward() -> Any:
        trajectory = simulator.rollout(model, *inputs, checkpoints=policy)
        return trajectory, trajectory.backward(bar, times=[-1])

    peaks, outputs = _peaks({"value_and_gradient": value_and_gradient, "backward": backward}[call], steps)
    later = max(peaks[1:], default=None)
    return {
        "what": WORDS[call],
        "steps": steps,
        "policy": policy,
        "inputs_mb": sum(array.nbytes for array in inputs) / 1e6,
        "outputs_mb": outputs,
        "first_mb": peaks[0],
        "later_mb": later,
        "first_beyond_mb": peaks[0] - outputs,
        "later_beyond_mb": None if later is None else later - outputs,
    }


def _peaks(call: Callable[[], Any], steps: int) -> tuple[list[float], float]:
    """Return the peak of each call, and the megabytes of what one returns."""
    peaks, outputs = [], 0.0
    for _ in range(1 + min(CALLS, STEPS_IN_ALL // steps)):
        found, peak = with_peak(call)
        peaks.append(peak)
        outputs = _held(found)
        if isinstance(found, tuple):
            found[0].delete()
        del found
    return peaks, outputs


def _held(found: Any) -> float:
    """Return the megabytes of a gradient's arrays, and of the states of a trajectory that holds them."""
    trajectory, gradient = found if isinstance(found, tuple) else (None, found)
    arrays = list(gradient.values())
    if trajectory is not None and trajectory.checkpoints.policy == "every":
        arrays += [trajectory.qpos, trajectory.qvel]
    return sum(array.nbytes for array in arrays) / 1e6


if __name__ == "__main__":
    if sys.argv[1:2] == ["--row"]:
        print(json.dumps(row(sys.argv[2], sys.argv[3], int(sys.argv[4]))))
    else:
        script("benchmarks.ours.memory", __doc__, measure)

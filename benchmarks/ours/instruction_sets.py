"""The same work by each instruction set that is built, each in a process of its own (REVOLUTE_ISA)."""

from __future__ import annotations

import json
import os
import subprocess
import sys

from revolute_engine import native

from ..laikago import Scene
from ..measure import interleaved
from ..script import ROOT, Effort, script
from ..table import Row, Table

STEPS, BATCH = 200, 64
COLUMNS = {
    "isa": "instruction set",
    "lanes": "lanes",
    "forward_us": "one, forward µs",
    "backward_us": "one, backward µs",
    "batch_forward_us": f"batch of {BATCH}, forward µs",
    "batch_backward_us": f"batch of {BATCH}, backward µs",
    "note": "note",
}


def measure(effort: Effort) -> list[Table]:
    """Return the table over instruction sets."""
    steps = effort.steps(STEPS)
    table = Table(
        "instruction_sets",
        f"Standing Laikago, {steps} steps, one thread; processor microseconds per step of one "
        "environment, medians.",
        COLUMNS,
    )
    for isa in native.available_levels():
        command = [
            sys.executable,
            "-m",
            "benchmarks.ours.instruction_sets",
            "--here",
            str(steps),
            str(effort.repeats),
        ]
        done = subprocess.run(
            command,
            cwd=ROOT,
            env={**os.environ, "REVOLUTE_ISA": isa},
            capture_output=True,
            text=True,
            timeout=300,
            check=False,
        )
        row: Row = {"isa": isa}
        row |= json.loads(done.stdout) if done.returncode == 0 else {"note": _reason(done.stderr)}
        table.rows.append(row)
    return [table]


def _reason(stderr: str) -> str:
    """Return the last line of a traceback without the exception's class."""
    return stderr.strip().splitlines()[-1].partition(": ")[2]


def _here(steps: int, repeats: int) -> Row:
    """Measure with the instruction set of this process."""
    scene = Scene(steps)
    calls = {
        "forward_us": scene.forward(1),
        "backward_us": scene.backward(1),
        "batch_forward_us": scene.forward(BATCH),
        "batch_backward_us": scene.backward(BATCH),
    }
    timings = interleaved(calls, repeats)
    row: Row = {"lanes": native.lanes}
    for name, timing in timings.items():
        row[name] = timing.per(steps * (BATCH if "batch" in name else 1))["median_us"]
    return row


if __name__ == "__main__":
    if sys.argv[1:2] == ["--here"]:
        print(json.dumps(_here(int(sys.argv[2]), int(sys.argv[3]))))
    else:
        script("benchmarks.ours.instruction_sets", __doc__, measure)

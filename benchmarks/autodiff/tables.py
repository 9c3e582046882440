"""The seed paper's Tables 1 to 3 with today's tools: time and memory of gradients over 50 to 5000 steps.

`robot` is the engine's own step, one source, on the scalars of CppAD, ADOL-C, Ceres Jets and a tree without
sharing, beside the engine's hand-written adjoint; their gradients must agree. `simplified` is the toy step of
simplified.py, for tools that cannot run an engine. Time and memory of each run are bounded: what does not
survive is a row that says so.
"""

from __future__ import annotations

import argparse
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from ..bounded import run_bounded
from ..script import ROOT, Effort, add_effort, effort, write_report
from ..table import Row, Table
from . import simplified
from .build import MISSING, build
from .one import run_robot

STEPS = (50, 100, 500, 1000, 5000)
TREE_STEPS = (1, 2, 3, 4, 5, 6, 7, 8)
SECONDS, GIGABYTES = 40, 12  # of each run
LIBRARIES = {
    "cppad": "CppAD, tape",
    "adolc": "ADOL-C, tape",
    "jet": "Ceres Jets, step Jacobians",
    "tree": "tree without sharing",
}
SCRIPTS = {"jax_scan": "JAX, jit and scan", "jax_eager": "JAX, eager", "torch": "PyTorch, scalar tensors"}
COLUMNS = {
    "tool": "tool",
    "steps": "steps",
    "forward_us": "forward µs",
    "backward_us": "backward µs",
    "memory_mb": "memory MB",
    "gradient_error": "gradient's difference",
    "note": "note",
}


def measure(effort: Effort) -> list[Table]:
    """Build what can be built and return both tables."""
    built = build()
    missing: list[Row] = [
        {"tool": LIBRARIES[name], "note": MISSING[name]} for name in LIBRARIES if name not in built
    ]
    lengths = (5, 10) if effort.quick else STEPS
    robot = Table(
        "autodiff_robot",
        "The engine's step, standing Laikago: gradient by start and all controls; processor time per step "
        "in microseconds, peak memory of the run. *Difference* is the largest from the adjoint's gradient, "
        "relative to its largest entry, over start positions, start velocities and controls apart.",
        COLUMNS,
    )
    robot.rows += _runs("revolute", "revolute, adjoint", "robot", lengths)
    for name in built:
        robot.rows += _runs(name, LIBRARIES[name], "robot", (1,) if name == "tree" else lengths)
    toy = Table(
        "autodiff_simplified",
        "The toy step, 37 times a + 1/b: gradient by the start; processor time per step in microseconds, "
        "peak memory of the run. *Difference* is from the reverse written by hand.",
        COLUMNS,
    )
    for name in built:
        short = TREE_STEPS[: 3 if effort.quick else None]
        toy.rows += _runs(name, LIBRARIES[name], "simplified", short if name == "tree" else lengths)
    for name, label in SCRIPTS.items():
        toy.rows += _runs(name, label, "simplified", lengths)
    return [Table(t.name, t.caption, t.columns, t.rows + missing) for t in (robot, toy)]


def _runs(tool: str, label: str, program: str, lengths: Sequence[int]) -> list[Row]:
    """Return one row per length; after the first that does not survive the longer ones are not tried."""
    rows: list[Row] = []
    for steps in lengths:
        result = _run(tool, program, steps)
        rows.append({"tool": label, "steps": steps, **result})
        if "note" in result:
            rows += [{"tool": label, "steps": more, "note": "not tried"} for more in lengths if more > steps]
            break
    return rows


def _run(tool: str, program: str, steps: int) -> Row:
    """Return the figures of one process, or a note why there are none."""
    with tempfile.TemporaryDirectory() as folder:  # ADOL-C writes its tapes into the working directory
        out = Path(folder) / "result.npz"
        arguments = [tool, program, str(steps), str(GIGABYTES), str(out)]
        command = [sys.executable, "-m", "benchmarks.autodiff.one", *arguments]
        ended = run_bounded(command, Path(folder), _environment(), SECONDS)
        if ended.stopped:
            return {"note": f"out of time, {SECONDS} s"}
        if ended.returncode != 0:
            return {"note": _reason(ended.stderr)}
        result = dict(np.load(out))
    row: Row = {
        "forward_us": 1e6 * float(result["forward_seconds"]) / steps,
        "backward_us": 1e6 * float(result["backward_seconds"]) / steps,
        "memory_mb": float(result["memory_mb"]),
    }
    if tool != "revolute":
        row["gradient_error"] = gradient_difference(program, steps, result["gradient"])
    return row


def gradient_difference(program: str, steps: int, gradient: np.ndarray) -> float:
    """Return the largest difference from the reference, relative to the largest entry of its part."""
    if program == "simplified":
        return _largest(gradient, simplified.by_hand(steps))
    reference = run_robot("revolute", steps)["gradient"]
    parts = [slice(0, 19), slice(19, 37), slice(37, None)]  # start positions, start velocities, controls
    return max(_largest(gradient[part], reference[part]) for part in parts)


def _largest(found: np.ndarray, reference: np.ndarray) -> float:
    return float(np.abs(found - reference).max() / np.abs(reference).max())


def _environment() -> dict[str, str]:
    from ..peers.environment import clean_environment

    return {**clean_environment(), "PYTHONPATH": str(ROOT)}


def _reason(errors: str) -> str:
    """Return why a run ended, in a few words."""
    if any(word in errors for word in ("bad_alloc", "MemoryError", "Cannot allocate", "out of memory")):
        return f"out of memory, {GIGABYTES:g} GB"
    lines = [line for line in errors.splitlines() if line.strip()]
    return (lines or [f"ended without a message, perhaps out of memory ({GIGABYTES:g} GB)"])[-1][:160]


def main() -> None:
    """Measure, print, and write where asked."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.autodiff.tables", description=__doc__)
    add_effort(parser)
    parser.add_argument("--out", type=Path, help="also write the tables there, as JSON")
    arguments: Any = parser.parse_args()
    tables = measure(effort(arguments))
    print("\n".join(table.markdown() for table in tables))
    if arguments.out:
        from ..measure import machine

        write_report(arguments.out, machine(), tables)


if __name__ == "__main__":
    main()

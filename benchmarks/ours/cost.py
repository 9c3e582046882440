"""Cost of the gradient over the length of the trajectory: a small factor, linear in the steps."""

from __future__ import annotations

from ..measure import interleaved
from ..script import Effort, script
from ..table import Row, Table
from .chain import chain_calls

LINKS = 10
LENGTHS = (1000, 4000, 16000)
COLUMNS = {
    "steps": "steps",
    "forward_ms": "forward ms",
    "backward_ms": "backward ms",
    "factor": "backward ÷ forward",
    "gradient_factor": "(forward + backward) ÷ forward",
}


def measure(effort: Effort) -> list[Table]:
    """Return the table over the number of steps."""
    table = Table(
        "cost",
        f"Chain of {LINKS} motors, gradient by start and all controls, one thread; processor time, "
        "medians of one run.",
        COLUMNS,
    )
    for length in effort.some(LENGTHS):
        steps = effort.steps(length)
        calls = {name: call for name, call in chain_calls(LINKS, steps).items() if name.startswith("mujoco")}
        timings = interleaved(calls, effort.repeats)
        forward, backward = timings["mujoco forward"].median, timings["mujoco backward"].median
        row: Row = {"steps": steps, "forward_ms": 1e3 * forward, "backward_ms": 1e3 * backward}
        row |= {"factor": backward / forward, "gradient_factor": 1 + backward / forward}
        table.rows.append(row)
    return [table]


if __name__ == "__main__":
    script("benchmarks.ours.cost", __doc__, measure)

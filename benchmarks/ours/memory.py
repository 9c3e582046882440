"""Memory of a gradient over 5000 steps, and whether it grows with the number of backward calls.

Peaks are those of the process above what it had before the call, so they include the results: the states,
and the gradient by 60,000 controls, 0.48 MB.
"""

from __future__ import annotations

from ..laikago import Scene
from ..memory import resident, return_free_memory, with_peak
from ..script import Effort, script
from ..table import Table

STEPS, CALLS = 5000, 20
COLUMNS = {"what": "what", "memory_mb": "MB"}


def measure(effort: Effort) -> list[Table]:
    """Return the table of memory."""
    steps = effort.steps(STEPS)
    Scene(10).backward(1)()  # what is set up once is not counted
    scene = Scene(steps)
    table = Table(
        "memory", f"One standing Laikago, {steps} steps, one thread; megabytes (1e6 bytes).", COLUMNS
    )
    call = scene.forward(1)
    rollout, forward = with_peak(call)
    states = (rollout.qpos.nbytes + rollout.qvel.nbytes) / 1e6
    backward = scene.backward(1)
    _, gradient = with_peak(backward)
    return_free_memory()
    before = resident()
    for _ in range(CALLS):
        backward()
    return_free_memory()
    table.rows += [
        {"what": "states of the trajectory", "memory_mb": states},
        {"what": "peak of the rollout, states included", "memory_mb": forward},
        {"what": "peak of the backward pass, gradient included", "memory_mb": gradient},
        {"what": f"growth over {CALLS} more backward passes", "memory_mb": max(0.0, resident() - before)},
    ]
    return [table]


if __name__ == "__main__":
    script("benchmarks.ours.memory", __doc__, measure)

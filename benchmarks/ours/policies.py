"""Checkpoint policies: states kept, steps replayed, memory and time of a gradient over 5000 steps.

All gradients are the same bits. Peaks, those of benchmarks/memory.py, are of rollout and backward pass
together: they include the gradient by 60,000 controls, 0.48 MB, and the rollout's copy of the controls, as
much again.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from ..laikago import Scene
from ..measure import interleaved
from ..memory import with_peak
from ..script import Effort, script
from ..table import Table

STEPS = 5000
POLICIES = ("every", "interval=10", "interval=70", "interval=500", "slots=32", "slots=8")
COLUMNS = {
    "policy": "checkpoints",
    "states": "states kept",
    "kilobytes": "kB kept",
    "replayed": "steps replayed ÷ steps",
    "memory_mb": "peak MB",
    "forward_us": "forward µs",
    "backward_us": "backward µs",
}


def measure(effort: Effort) -> list[Table]:
    """Return the table over policies."""
    steps = effort.steps(STEPS)
    table = Table(
        "policies",
        f"One standing Laikago, {steps} steps, one thread; processor microseconds per step, medians "
        "of one run.",
        COLUMNS,
    )
    Scene(10).backward(1)()  # what is set up once is not counted
    policies = effort.some(POLICIES)
    scenes = {policy: Scene(steps, checkpoints=policy) for policy in policies}
    calls: dict[str, Callable[[], Any]] = {}
    for policy, scene in scenes.items():
        calls |= {f"{policy} forward": scene.forward(1), f"{policy} backward": scene.backward(1)}
    timings = interleaved(calls, min(effort.repeats, 5))
    for policy, scene in scenes.items():
        forward = scene.forward(1)
        gradient, peak = with_peak(lambda: scene.gradient(forward()))  # noqa: B023
        table.rows.append(
            {
                "policy": policy,
                "states": gradient.report.states_stored,
                "kilobytes": gradient.report.checkpoint_bytes / 1e3,
                "replayed": gradient.report.replayed_steps / steps,
                "memory_mb": peak,
                "forward_us": timings[f"{policy} forward"].per(steps)["median_us"],
                "backward_us": timings[f"{policy} backward"].per(steps)["median_us"],
            }
        )
    return [table]


if __name__ == "__main__":
    script("benchmarks.ours.policies", __doc__, measure)

"""One to ten Laikagos in one scene: is the cost linear in their number?  MuJoCo's step stands beside it."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from ..laikago import Scene
from ..measure import interleaved
from ..script import Effort, script
from ..table import Row, Table

STEPS = 200
ROBOTS = (1, 2, 3, 5, 7, 10)
COLUMNS = {
    "robots": "robots",
    "dofs": "DoF",
    "forward_us": "forward µs",
    "backward_us": "backward µs",
    "forward_ratio": "forward, × one",
    "backward_ratio": "backward, × one",
    "mujoco_us": "MuJoCo mj_step µs",
}


def measure(effort: Effort) -> list[Table]:
    """Return the table over the number of robots."""
    steps = effort.steps(STEPS)
    table = Table(
        "robots",
        f"Laikagos standing 2 m apart in one scene, {steps} steps, one thread; "
        "processor microseconds per step of the whole scene, medians of one run.",
        COLUMNS,
    )
    scenes = {robots: Scene(steps, robots=robots) for robots in effort.some(ROBOTS)}
    calls: dict[str, Callable[[], Any]] = {}
    for robots, scene in scenes.items():
        calls |= {f"{robots} forward_us": scene.forward(1), f"{robots} backward_us": scene.backward(1)}
        calls[f"{robots} mujoco_us"] = scene.mujoco_forward()
    timings = interleaved(calls, effort.repeats)
    for robots, scene in scenes.items():
        row: Row = {"robots": robots, "dofs": scene.model.nv}
        for name in ("forward_us", "backward_us", "mujoco_us"):
            row[name] = timings[f"{robots} {name}"].per(steps)["median_us"]
        for name in ("forward", "backward"):
            row[f"{name}_ratio"] = timings[f"{robots} {name}_us"].median / timings[f"1 {name}_us"].median
        table.rows.append(row)
    return [table]


if __name__ == "__main__":
    script("benchmarks.ours.robots", __doc__, measure)

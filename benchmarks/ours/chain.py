"""Chains of 1 to 300 hinges without contacts: is the time per link constant?"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

import revolute_engine

from ..measure import interleaved
from ..script import Effort, script
from ..table import Row, Table

LENGTHS = (1, 10, 100, 300)
STEPS = 100
COLUMNS = {
    "links": "links",
    "forward_us": "forward µs",
    "backward_us": "backward µs",
    "forward_per_link_ns": "forward ns per link",
    "backward_per_link_ns": "backward ns per link",
}


def chain_xml(links: int) -> str:
    """Return MJCF of a hanging chain whose hinges turn about x and y in turn."""
    bodies, ends = [], []
    for i in range(links):
        axis = "0 1 0" if i % 2 == 0 else "1 0 0"
        place = "0 0 2" if i == 0 else "0 0 -0.2"
        bodies.append(
            f'<body pos="{place}"><joint name="j{i}" type="hinge" axis="{axis}" damping="0.05"/>'
            '<inertial pos="0 0 -0.1" mass="0.3" diaginertia="0.001 0.001 0.0002"/>'
        )
        ends.append("</body>")
    motors = "".join(f'<motor joint="j{i}"/>' for i in range(links))
    return (
        '<mujoco><option timestep="0.0005"/><worldbody>'
        + "".join(bodies + ends)
        + f"</worldbody><actuator>{motors}</actuator></mujoco>"
    )


def chain_calls(links: int, steps: int) -> dict[str, Callable[[], Any]]:
    """Return calls of a rollout of the chain and of its gradient, from a small random deflection."""
    model = revolute_engine.load_model(chain_xml(links))
    engine = revolute_engine.Engine(threads=1)
    random = np.random.default_rng(1)
    qpos, qvel = 0.01 * random.normal(size=links), np.zeros(links)
    ctrl = 0.01 * random.normal(size=(1, steps, links))
    rollout = engine.rollout(model, qpos, qvel, ctrl)
    assert not rollout.status.any()
    qpos_bar = np.ones((1, 1, links))
    return {
        "forward_us": lambda: engine.rollout(model, qpos, qvel, ctrl),
        "backward_us": lambda: engine.backward(model, rollout, qpos_bar, times=[-1]),
    }


def measure(effort: Effort) -> list[Table]:
    """Return the table over the number of links."""
    steps = effort.steps(STEPS)
    table = Table(
        "chain",
        f"Hanging chain, every hinge with a motor, no contacts, {steps} steps, one thread; "
        "processor microseconds per step, medians of one run.",
        COLUMNS,
    )
    lengths = effort.some(LENGTHS)
    calls = {}
    for links in lengths:
        for name, call in chain_calls(links, steps).items():
            calls[f"{links} {name}"] = call
    timings = interleaved(calls, effort.repeats)
    for links in lengths:
        row: Row = {"links": links}
        for name in ("forward", "backward"):
            microseconds = timings[f"{links} {name}_us"].per(steps)["median_us"]
            row |= {f"{name}_us": microseconds, f"{name}_per_link_ns": 1e3 * microseconds / links}
        table.rows.append(row)
    return [table]


if __name__ == "__main__":
    script("benchmarks.ours.chain", __doc__, measure)

"""Chains of 1 to 300 hinges without contacts: O(n) with "hard", dense matrices with "mujoco"."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

import mujoco
import numpy as np
from mujoco import rollout as mujoco_rollout

import revolute_engine

from ..measure import interleaved
from ..script import Effort, script
from ..table import Row, Table

LENGTHS = (1, 10, 100, 300)
STEPS = 100
COLUMNS = {
    "links": "links",
    "mujoco forward": '"mujoco", forward µs',
    "mujoco backward": "backward µs",
    "hard forward": '"hard", forward µs',
    "hard backward": "backward µs",
    "mj_step": "mj_step µs",
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
    """Return rollouts of the chain and their gradients with both contact models, and MuJoCo's steps."""
    engine, random = revolute_engine.Engine(threads=1), np.random.default_rng(1)
    start = 0.01 * random.normal(size=links), np.zeros(links)
    ctrl = 0.01 * random.normal(size=(1, steps, links))
    calls: dict[str, Callable[[], Any]] = {}
    for law in ("mujoco", "hard"):
        model = revolute_engine.load_model(chain_xml(links), contact_model=law)
        rollout = engine.rollout(model, *start, ctrl)
        assert not rollout.status.any()
        bar = np.ones((1, 1, links))
        calls[f"{law} forward"] = partial(engine.rollout, model, *start, ctrl)
        calls[f"{law} backward"] = partial(engine.backward, model, rollout, bar, times=[-1])
    theirs = mujoco.MjModel.from_xml_string(chain_xml(links))
    data = mujoco.MjData(theirs)
    initial = np.concatenate([[0.0], *start])[None]
    calls["mj_step"] = partial(mujoco_rollout.rollout, theirs, data, initial, ctrl)
    return calls


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
    calls = {f"{links} {name}": call for links in lengths for name, call in chain_calls(links, steps).items()}
    timings = interleaved(calls, effort.repeats)
    for links in lengths:
        row: Row = {"links": links}
        for name in list(COLUMNS)[1:]:
            row[name] = timings[f"{links} {name}"].per(steps)["median_us"]
        table.rows.append(row)
    return [table]


if __name__ == "__main__":
    script("benchmarks.ours.chain", __doc__, measure)

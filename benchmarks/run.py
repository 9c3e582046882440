"""`make bench`: time per Laikago step, forward and backward, one thread, against mj_step in the same run.

Writes build/bench.json and build/bench.md (`--out` elsewhere). Nothing here is asserted: figures
belong to the machine that they were taken on.
"""

from __future__ import annotations

import argparse
import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from .laikago import SWEEPS, TIMESTEP, Scene
from .measure import interleaved, machine

TRANSITIONS = 20
STEPS = 1000
BATCHES = (64, 1024)


def measure(repeats: int, steps: int, batches: Sequence[int]) -> dict[str, Any]:
    """Run every measurement.

    Args:
        repeats: timed rounds of each call with a single robot; larger batches get fewer.
        steps: length of every rollout.
        batches: numbers of environments to roll out at once.

    Returns:
        Timings in microseconds per step of one environment, by what was measured.
    """
    results: dict[str, Any] = {}
    for scene, name in ((Scene(steps), "standing"), (Scene(steps, contact=False), "no contacts")):
        calls = {
            f"{name}, forward": scene.forward(1),
            f"{name}, backward": scene.backward(1),
            f"{name}, MuJoCo mj_step": scene.mujoco_forward(),
        }
        timings = interleaved(calls, repeats)
        results |= {call: timing.per(steps) for call, timing in timings.items()}
    scene = Scene(steps)
    differences = "standing, MuJoCo mjd_transitionFD (one-sided)"
    timings = interleaved({differences: scene.mujoco_transition(TRANSITIONS)}, repeats)
    results[differences] = timings[differences].per(TRANSITIONS)
    for batch in batches:
        calls = {
            f"standing, batch of {batch}, forward": scene.forward(batch),
            f"standing, batch of {batch}, backward": scene.backward(batch),
        }
        timings = interleaved(calls, max(3, 4 * repeats // batch))
        results |= {call: timing.per(steps * batch) for call, timing in timings.items()}
    return results


def table(host: dict[str, Any], results: dict[str, Any], steps: int) -> str:
    """Return the results as Markdown."""
    lines = [
        f"Laikago, 18 DoF, 4 contacts, h = {TIMESTEP * 1e3:g} ms, {SWEEPS} sweeps, {steps} steps, "
        "one thread; microseconds per step of one environment.",
        "",
        f"{host['processor']}, {host['system']}, instruction set {host['instruction_set']} "
        f"({host['lanes']} lanes), MuJoCo {host['mujoco']}, Python {host['python']}; "
        f"load {host['load_before']:.1f} on {host['cores']} cores.",
        "",
        "| what | median µs | fastest | slowest |",
        "|---|---|---|---|",
    ]
    lines += [
        f"| {what} | {row['median_us']:.2f} | {row['fastest_us']:.2f} | {row['slowest_us']:.2f} |"
        for what, row in results.items()
    ]
    return "\n".join(lines) + "\n"


def main() -> None:
    """Measure, print the table and write both files."""
    parser = argparse.ArgumentParser(prog="make bench", description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--repeats", type=int, default=31, help="timed rounds of each single-robot call")
    parser.add_argument("--steps", type=int, default=STEPS, help="length of every rollout")
    parser.add_argument("--batches", type=int, nargs="*", default=BATCHES, help="environments per batch")
    parser.add_argument("--out", type=Path, default=Path("build/bench.json"), help="JSON; .md beside it")
    arguments = parser.parse_args()
    host = machine()
    results = measure(arguments.repeats, arguments.steps, arguments.batches)
    text = table(host, results, arguments.steps)
    arguments.out.parent.mkdir(parents=True, exist_ok=True)
    document = {"machine": host, "steps": arguments.steps, "results": results}
    arguments.out.write_text(json.dumps(document, indent=2) + "\n", "utf-8")
    arguments.out.with_suffix(".md").write_text(text, "utf-8")
    print(text)


if __name__ == "__main__":
    main()

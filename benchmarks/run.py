"""`make bench`: time per Laikago step, forward and backward, one thread, against mj_step in the same run.

Writes build/bench.json and build/bench.md (`--out` elsewhere). Nothing here is asserted: figures
belong to the machine that they were taken on.
"""

from __future__ import annotations

import argparse
import json
from pathlib import Path
from typing import Any

from .laikago import STEPS, SWEEPS, TIMESTEP, Scene
from .measure import interleaved, machine

TRANSITIONS = 20
BATCHES = (64, 1024)
ROWS = {
    "standing/forward": "standing, forward",
    "standing/backward": "standing, backward",
    "standing/mj_step": "standing, MuJoCo mj_step",
    "standing/mjd_transitionFD": "standing, MuJoCo mjd_transitionFD (one-sided)",
    "free/forward": "no contacts, forward",
    "free/backward": "no contacts, backward",
    "free/mj_step": "no contacts, MuJoCo mj_step",
    "batch64/forward": "standing, batch of 64, forward",
    "batch64/backward": "standing, batch of 64, backward",
    "batch1024/forward": "standing, batch of 1024, forward",
    "batch1024/backward": "standing, batch of 1024, backward",
}


def measure(repeats: int) -> dict[str, Any]:
    """Run every measurement and return the results by name, in microseconds per environment step."""
    results: dict[str, Any] = {}
    for name, contact in (("standing", True), ("free", False)):
        scene = Scene(contact)
        calls = {
            "forward": scene.forward(1),
            "backward": scene.backward(1),
            "mj_step": scene.mujoco_forward(),
        }
        for call, timing in interleaved(calls, repeats).items():
            results[f"{name}/{call}"] = timing.per(STEPS)
    scene = Scene()
    transition = interleaved({"fd": scene.mujoco_transition(TRANSITIONS)}, repeats)["fd"]
    results["standing/mjd_transitionFD"] = transition.per(TRANSITIONS)
    for batch in BATCHES:
        calls = {"forward": scene.forward(batch), "backward": scene.backward(batch)}
        for call, timing in interleaved(calls, max(3, repeats * 4 // batch)).items():
            results[f"batch{batch}/{call}"] = timing.per(STEPS * batch)
    return results


def table(machine_info: dict[str, Any], results: dict[str, Any]) -> str:
    """Return the results as Markdown."""
    host = machine_info
    lines = [
        f"Laikago, 18 DoF, 4 contacts, h = {TIMESTEP * 1e3:g} ms, {SWEEPS} sweeps, {STEPS} steps, "
        "one thread; microseconds per environment step.",
        "",
        f"{host['processor']}, {host['system']}, instruction set {host['instruction_set']} "
        f"({host['lanes']} lanes), MuJoCo {host['mujoco']}, Python {host['python']}; "
        f"load {host['load_before']:.1f} on {host['cores']} cores.",
        "",
        "| what | median µs | fastest | slowest |",
        "|---|---|---|---|",
    ]
    for key, label in ROWS.items():
        row = results[key]
        lines.append(
            f"| {label} | {row['median_us']:.2f} | {row['fastest_us']:.2f} | {row['slowest_us']:.2f} |"
        )
    return "\n".join(lines) + "\n"


def main() -> None:
    """Measure, print the table and write both files."""
    parser = argparse.ArgumentParser(prog="make bench", description=__doc__.splitlines()[0])
    parser.add_argument("--repeats", type=int, default=31, help="timed rounds of each single-robot call")
    parser.add_argument("--out", type=Path, default=Path("build/bench.json"))
    arguments = parser.parse_args()
    info = machine()
    results = measure(arguments.repeats)
    text = table(info, results)
    arguments.out.parent.mkdir(parents=True, exist_ok=True)
    arguments.out.write_text(json.dumps({"machine": info, "results": results}, indent=2) + "\n", "utf-8")
    arguments.out.with_suffix(".md").write_text(text, "utf-8")
    print(text)


if __name__ == "__main__":
    main()

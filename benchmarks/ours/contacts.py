"""Cost of a step over the number of contacts, beside MuJoCo: spheres apart, and a cube of loose ones."""

from __future__ import annotations

from pathlib import Path

import mujoco
import numpy as np

import revolute_engine

from ..measure import interleaved
from ..script import Effort, script
from ..table import Row, Table

CASES = Path(__file__).resolve().parents[2] / "tests" / "cases"
FILES = {
    **{f"{count} apart": f"D07/spheres_{count}.xml" for count in (8, 64, 256)},
    **{f"cube of {count}": f"T05/spheres_{count}.xml" for count in (27, 64, 125)},
    **{f"cube of {count}, floor only": f"T05/spheres_{count}_nopairs.xml" for count in (27, 64, 125)},
}
STEPS = 150
COLUMNS = {
    "scene": "spheres",
    "mujoco_us": "µs per step",
    "mujoco_ratio": "÷ `mj_step`",
    "hard_us": '"hard", µs',
    "hard_ratio": '"hard" ÷ `mj_step`',
}


def measure(effort: Effort) -> list[Table]:
    """Return the table over the scenes."""
    table = Table(
        "contacts",
        f"{STEPS} steps from the start of the scene, one thread; processor time, medians of one run.",
        COLUMNS,
    )
    for scene in effort.some(tuple(FILES)):
        table.rows.append(_row(scene, CASES / FILES[scene], effort))
    return [table]


def _row(scene: str, path: Path, effort: Effort) -> Row:
    steps, engine = effort.steps(STEPS), revolute_engine.Engine(threads=1)
    models = {
        name: revolute_engine.load_model(path, contact_model=name, warn=False) for name in ("mujoco", "hard")
    }
    theirs = mujoco.MjModel.from_xml_path(str(path))
    data = mujoco.MjData(theirs)

    def mj_step() -> None:
        mujoco.mj_resetData(theirs, data)
        mujoco.mj_step(theirs, data, steps)

    def ours(name: str) -> None:
        model = models[name]
        ctrl = np.zeros((steps, 0))
        engine.rollout(model, model.qpos0, model.qvel0, ctrl, states="final", checkpoints="none")

    calls = {"mujoco": lambda: ours("mujoco"), "hard": lambda: ours("hard"), "theirs": mj_step}
    timings = interleaved(calls, effort.repeats)
    row: Row = {"scene": scene}
    for name in models:
        row[f"{name}_us"] = timings[name].median * 1e6 / steps
        row[f"{name}_ratio"] = timings[name].median / timings["theirs"].median
    return row


if __name__ == "__main__":
    script("benchmarks.ours.contacts", __doc__, measure)

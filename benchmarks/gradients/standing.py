"""Laikago standing: error against differences after 1 to 5000 steps, and by the number of sweeps."""

from __future__ import annotations

import numpy as np

from revolute_engine import Engine

from .differences import STATE, STEPS, Comparison, compare, final_state_cotangents
from .scenes import standing

DIRECTIONS = 4
HORIZONS = (1, 5, 10, 50, 100, 200, 500, 1000, 2000, 5000)
BY_STEP = (1, 50, 1000, 5000)
SWEEPS = (1, 2, 5, 10, 50, 200)


def errors(steps: int, sweeps: int = 50) -> dict[str, Comparison]:
    """Compare along a few random directions of each input.

    Args:
        steps: length of the rollout; the loss is a random linear function of its last state.
        sweeps: of the solver.
    """
    model, start = standing(steps, sweeps)
    bars = final_state_cotangents(model, steps, np.random.default_rng(steps))
    engine = Engine()
    return {name: compare(engine, model, start, name, bars, DIRECTIONS, seed=1) for name in STATE}


def _cell(comparison: Comparison) -> str:
    return f"{comparison.error:.0e} ({comparison.uncertainty:.0e})"


def table() -> str:
    """Return the error by horizon, by size of the difference's step, and by number of sweeps."""
    lines = ["| steps | by `qpos` | by `qvel` | by `ctrl` |", "|---|---|---|---|"]
    for steps in HORIZONS:
        row = errors(steps)
        lines.append(f"| {steps} | " + " | ".join(_cell(row[name]) for name in STATE) + " |")
    lines += [
        "",
        "| steps | " + " | ".join(f"{step:.0e}" for step in STEPS) + " |",
        "|---" * (1 + len(STEPS)) + "|",
    ]
    for steps in BY_STEP:
        cells = [f"{error:.0e}" for error in errors(steps)["qpos"].by_step]
        lines.append(f"| {steps} | " + " | ".join(cells) + " |")
    lines += ["", "| sweeps | by `qpos` | by `qvel` | by `ctrl` |", "|---|---|---|---|"]
    for sweeps in SWEEPS:
        row = errors(50, sweeps)
        lines.append(f"| {sweeps} | " + " | ".join(_cell(row[name]) for name in STATE) + " |")
    return "\n".join(lines)

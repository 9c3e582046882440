"""Laikago standing: error against differences after 1 to 5000 steps, and by the number of sweeps."""

from __future__ import annotations

import numpy as np

from revolute_engine import Engine

from .differences import STATE, STEPS, Comparison, ambient, compare, final_state_cotangents
from .scenes import SWEEPS, standing

DIRECTIONS = 4
HORIZONS = (1, 5, 10, 50, 100, 200, 500, 1000, 2000, 5000)
BY_STEP = ((1, 0.8), (50, 0.8), (1000, 0.8), (50, 100.0), (1000, 100.0))
SWEEP_COUNTS = (1, 2, 5, 10, 50, 200)


def errors(steps: int, sweeps: int = SWEEPS, friction: float | None = None) -> dict[str, Comparison]:
    """Compare gradient and differences along a few random directions of each input.

    Args:
        steps: length of the rollout; the loss is a random linear function of its last state.
        sweeps: number of solver sweeps.
        friction: sliding coefficient; by default the model's.
    """
    model, start = standing(steps, sweeps, friction)
    bars = final_state_cotangents(model, steps, np.random.default_rng(steps))
    engine = Engine()
    return {name: compare(engine, model, start, name, bars, DIRECTIONS, seed=1) for name in STATE}


def dot_product_error(steps: int) -> float:
    """Return the error of ⟨cotangent, pushed tangent⟩ = ⟨pulled cotangent, tangent⟩ over all inputs."""
    model, start = standing(steps)
    random, engine = np.random.default_rng(steps), Engine(threads=1)
    qpos_bar, qvel_bar = final_state_cotangents(model, steps, random)
    rollout = engine.rollout(model, start.qpos, start.qvel, start.ctrl)
    gradient = engine.backward(model, rollout, qpos_bar, qvel_bar)
    by_qpos, by_qvel, by_ctrl = (random.normal(size=size) for size in (model.nv, model.nv, start.ctrl.shape))
    pushed = engine.jvp(model, rollout, qpos_tan=by_qpos, qvel_tan=by_qvel, ctrl_tan=by_ctrl)
    end = ambient(model, rollout.qpos[-1], pushed.qpos[-1])
    forward = float(qpos_bar[-1] @ end + qvel_bar[-1] @ pushed.qvel[-1])
    pulled = gradient.qpos @ ambient(model, start.qpos, by_qpos) + gradient.qvel @ by_qvel
    return abs(forward - float(pulled + np.sum(gradient.ctrl * by_ctrl))) / abs(forward)


def _cell(comparison: Comparison) -> str:
    return f"{comparison.error:.0e} ({comparison.uncertainty:.0e})"


def table() -> str:
    """Return the error by horizon, by size of the difference's step, and by number of sweeps."""
    lines = ["| steps | by `qpos` | by `qvel` | by `ctrl` | dot product |", "|---|---|---|---|---|"]
    for steps in HORIZONS:
        row = errors(steps)
        cells = [*(_cell(row[name]) for name in STATE), f"{dot_product_error(steps):.0e}"]
        lines.append(f"| {steps} | " + " | ".join(cells) + " |")
    lines += [
        "",
        "| steps, friction | " + " | ".join(f"{step:.0e}" for step in STEPS) + " |",
        "|---" * (1 + len(STEPS)) + "|",
    ]
    for steps, friction in BY_STEP:
        cells = [f"{error:.0e}" for error in errors(steps, friction=friction)["qpos"].by_step]
        lines.append(f"| {steps}, {friction:g} | " + " | ".join(cells) + " |")
    lines += ["", "| sweeps | by `qpos` | by `qvel` | by `ctrl` |", "|---|---|---|---|"]
    for sweeps in SWEEP_COUNTS:
        row = errors(50, sweeps)
        lines.append(f"| {sweeps} | " + " | ".join(_cell(row[name]) for name in STATE) + " |")
    return "\n".join(lines)

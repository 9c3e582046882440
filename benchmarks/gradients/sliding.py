"""Sliding friction: a robot that slides, and a block whose derivatives have closed forms."""

from __future__ import annotations

import numpy as np

from revolute_engine import Engine, load_model

from .differences import Array, compare, final_state_cotangents
from .scenes import BLOCK, sliding

ROBOT_STEPS = (1, 10, 100, 300)
BLOCK_STEPS, TIMESTEP, GRAVITY, MASS, FRICTION = 100, 1e-3, 9.81, 2.0, 0.5
FORCES = (0.0, 5.0, 9.8, 9.81, 9.82, 15.0)


def robot_errors(steps: int) -> dict[str, float]:
    """Return the error of a few directions, by each parameter."""
    model, start = sliding(steps)
    bars = final_state_cotangents(model, steps, np.random.default_rng(steps))
    engine = Engine()
    return {name: compare(engine, model, start, name, bars, 4, seed=2).error for name in start.params}


def block(force: float, friction: float = FRICTION) -> tuple[float, float, float, float]:
    """Return the final speed of the block from rest, and its derivatives by force, friction and mass.

    Args:
        force: constant force along x in N.
        friction: coefficient of block and floor; their derivatives are added.
    """
    model, engine = load_model(BLOCK, contact_model="hard"), Engine(threads=1)
    params = {"geom_friction": np.full((model.ngeom, 3), friction), "body_mass": model.body_mass}
    rollout = engine.rollout(model, np.zeros(2), np.zeros(2), np.full((BLOCK_STEPS, 1), force), params=params)
    bar = np.zeros_like(rollout.qvel)
    bar[-1, 0] = 1.0
    gradient = engine.backward(model, rollout, None, bar, wrt=("ctrl", *params))
    by_friction, by_mass = (float(np.sum(gradient[name])) for name in params)
    return float(rollout.qvel[-1, 0]), float(gradient.ctrl.sum()), by_friction, by_mass


def closed_form(force: float) -> Array:
    """Return the closed form for a sliding block."""
    time = BLOCK_STEPS * TIMESTEP
    speed = (force / MASS - FRICTION * GRAVITY) * time
    return np.array([speed, time / MASS, -GRAVITY * time, -force * time / MASS**2])


def table() -> str:
    """Return the errors of the robot, and the block from sticking to sliding."""
    rows = [robot_errors(steps) for steps in ROBOT_STEPS]
    lines = ["| by | " + " | ".join(f"{steps} step{'s' * (steps > 1)}" for steps in ROBOT_STEPS) + " |"]
    lines.append("|---" * (1 + len(ROBOT_STEPS)) + "|")
    lines += [f"| `{name}` | " + " | ".join(f"{row[name]:.0e}" for row in rows) + " |" for name in rows[0]]
    lines += ["", "| force N | final speed m/s | by force | by friction | by mass |", "|---|---|---|---|---|"]
    for force in FORCES:
        lines.append(f"| {force:g} | " + " | ".join(f"{value:.9f}" for value in block(force)) + " |")
    exact = " | ".join(f"{value:.9f}" for value in closed_form(FORCES[-1]))
    lines.append(f"| {FORCES[-1]:g}, closed form | {exact} |")
    return "\n".join(lines)

"""Impacts of two equal balls, and of a ball on a floor, compared with closed forms and wide differences."""

from __future__ import annotations

import numpy as np

from revolute_engine import load_model

from .differences import Array
from .scenes import DROP, TWO_BALLS, final_gradient

SPEED, DISTANCE, TIME = 1.2, 0.5, 1.0
HEIGHT, DROP_TIME, GRAVITY = 0.5, 0.5, 9.81
WINDOWS = (1e-7, 1e-2, 1e-1)


def balls(restitution: float) -> tuple[Array, Array, Array]:
    """Return d (final place of the struck ball) / d (x1, x2, v1, v2): ours, the closed form, event-frozen."""
    model = load_model(TWO_BALLS, contact_model="hard", restitution=restitution)
    steps = round(TIME / model.timestep)
    _, by_qpos, by_qvel = final_gradient(model, np.zeros(2), np.array([SPEED, 0.0]), steps, 1)
    share, impact = (1 + restitution) / 2, DISTANCE / SPEED
    closed = np.array([share, 1 - share, share * TIME, (1 - share) * TIME])
    late = share * (TIME - impact)
    frozen = np.array([0, 1, late, TIME - late])
    return np.concatenate([by_qpos, by_qvel]), closed, frozen


def drop(restitution: float) -> dict[str, float]:
    """Return d (final gap) / d (start gap) of a falling ball: ours, by differences, and in closed form."""
    model = load_model(DROP, contact_model="hard", restitution=restitution)
    steps = round(DROP_TIME / model.timestep)

    def end(height: float) -> float:
        return final_gradient(model, np.array([height]), np.zeros(1), steps, 0)[0]

    _, by_qpos, _ = final_gradient(model, np.array([HEIGHT]), np.zeros(1), steps, 0)
    result = {"ours": float(by_qpos[0])}
    for window in WINDOWS:
        result[f"{window:g} m"] = (end(HEIGHT + window) - end(HEIGHT - window)) / (2 * window)
    speed = np.sqrt(2 * GRAVITY * HEIGHT)
    late = DROP_TIME - speed / GRAVITY
    flying = restitution * (GRAVITY * late / speed - 1) + GRAVITY * late / speed
    result["closed form"] = flying if restitution > 0 else 0.0
    return result


def table() -> str:
    """Return both scenes."""
    lines = ["| restitution | gradient by x1, x2, v1, v2 | closed form | event-frozen |", "|---|---|---|---|"]
    for restitution in (0.0, 0.5, 1.0):
        cells = [", ".join(f"{value:.4f}" for value in row) for row in balls(restitution)]
        lines.append(f"| {restitution:g} | " + " | ".join(cells) + " |")
    rows = {restitution: drop(restitution) for restitution in (0.0, 0.5, 1.0)}
    lines += ["", "| restitution | " + " | ".join(rows[0.0]) + " |", "|---" * (1 + len(rows[0.0])) + "|"]
    for restitution, row in rows.items():
        lines.append(f"| {restitution:g} | " + " | ".join(f"{value:.4f}" for value in row.values()) + " |")
    return "\n".join(lines)

"""Size of a gradient after N steps, with and without feedback.

The loss is the squared distance of the base from the origin. With position actuators, a disturbance of the
standing robot decays. With a recording of the same torques, the robot is an inverted pendulum, and the
disturbance grows.
"""

from __future__ import annotations

import numpy as np

from revolute_engine import Engine, Model

from .differences import STATE, Start, compare
from .scenes import open_loop, settled

HORIZONS = (1, 10, 50, 100, 200, 500, 1000, 2000, 5000)
DRIFT_STEPS = (1, 500, 1000, 1500, 2000, 2500, 3000)
OPEN_LOOP_END = 2000  # later the rounding of the first step has grown to a fall


def norms(model: Model, start: Start) -> dict[str, float]:
    """Return the norm of the gradient by each input."""
    engine = Engine(threads=1)
    rollout = engine.rollout(model, start.qpos, start.qvel, start.ctrl)
    bar = np.zeros_like(rollout.qpos)
    bar[-1, :3] = 2 * rollout.qpos[-1, :3]
    gradient = engine.backward(model, rollout, bar)
    return {name: float(np.linalg.norm(gradient[name])) for name in STATE}


def error(model: Model, start: Start) -> float:
    """Return the error of the directional derivative by the start velocity, along a few random directions."""
    rollout = Engine(threads=1).rollout(model, start.qpos, start.qvel, start.ctrl)
    qpos_bar, qvel_bar = np.zeros_like(rollout.qpos), np.zeros_like(rollout.qvel)
    qpos_bar[-1, :3] = 2 * rollout.qpos[-1, :3]
    return compare(Engine(), model, start, "qvel", (qpos_bar, qvel_bar), 4, seed=3).error


def drift() -> dict[int, tuple[float, float]]:
    """Return for each step the distance between replayed and recorded trajectory, and the height of the base.

    They differ only by rounding.
    """
    rollouts = []
    for scene in (settled, open_loop):
        model, start = scene(DRIFT_STEPS[-1])
        rollouts.append(Engine(threads=1).rollout(model, start.qpos, start.qvel, start.ctrl).qpos)
    return {
        step: (float(np.abs(rollouts[1][step] - rollouts[0][step]).max()), float(rollouts[1][step, 2]))
        for step in DRIFT_STEPS
    }


def table() -> str:
    """Return the norms by horizon with and without feedback, and the growth of rounding without feedback."""
    lines = [
        "| steps | feedback: `qpos` | `qvel` | `ctrl` | error "
        "| open loop: `qpos` | `qvel` | `ctrl` | error |",
        "|---|---|---|---|---|---|---|---|---|",
    ]
    for steps in HORIZONS:
        cells = []
        for scene in (settled, open_loop):
            if scene is open_loop and steps > OPEN_LOOP_END:
                cells += ["-"] * 4
                continue
            model, start = scene(steps)
            cells += [f"{norm:.2g}" for norm in norms(model, start).values()]
            cells.append(f"{error(model, start):.0e}")
        lines.append(f"| {steps} | " + " | ".join(cells) + " |")
    lines += ["", "| step | distance of the trajectories | height of the base m |", "|---|---|---|"]
    lines += [f"| {step} | {far:.0e} | {height:.3f} |" for step, (far, height) in drift().items()]
    return "\n".join(lines)

"""How far a derivative holds: errors against differences of growing width, with either contact model."""

from __future__ import annotations

from importlib import metadata
from pathlib import Path

import mujoco
import numpy as np

from benchmarks.laikago import START, controls
from revolute.contract.load_options import ContactModel
from revolute_engine import Engine, Model, load_model

from .differences import Array, ambient, final_state_cotangents

WIDTHS = (1e-6, 1e-5, 1e-4, 1e-3, 1e-2)
SETTLING = {"laikago": 300, "ant": 300, "gripper": 500, "humanoid": 0}
"""Steps before the start: the humanoid is in free fall."""
STEPS = (1, 50, 500)
GRIPPER = Path(__file__).resolve().parents[2] / "tests" / "cases" / "F07" / "grip_box.xml"


def _source(name: str) -> str | Path:
    """Return a built-in model's name, or a file: the gripper's, and Gymnasium's humanoid."""
    if name == "gripper":
        return GRIPPER
    if name == "humanoid":
        return Path(
            str(metadata.distribution("gymnasium").locate_file("gymnasium/envs/mujoco/assets/humanoid.xml"))
        )
    return name


def _controls(name: str, model: Model, count: int) -> Array:
    """Return controls [count, nu]: held pose or grip, random for the ant, none for the humanoid."""
    if name == "laikago":
        return controls(count)
    if name == "gripper":
        return np.tile([0.5, 0.0, 8.0, 8.0], (count, 1)) * np.array([0.0, 1, 1, 1])
    return (0.3 if name == "ant" else 0.0) * np.random.default_rng(1).normal(size=(count, model.nu))


def _start(name: str, model: Model, steps: int) -> tuple[Array, Array, Array]:
    """Return a state after some settling, and controls."""
    settling = SETTLING[name]
    ctrl = _controls(name, model, settling + steps)
    qpos = START.copy() if name == "laikago" else model.qpos0
    settled = Engine(threads=1).rollout(model, qpos, np.zeros(model.nv), ctrl[:settling])
    return settled.qpos[-1].copy(), settled.qvel[-1].copy(), ctrl[settling:]


def errors(name: str, steps: int, contact_model: ContactModel) -> list[float]:
    """Return the relative error of the derivative by qpos along one direction, for each width."""
    model, engine = load_model(_source(name), contact_model=contact_model, warn=False), Engine(threads=1)
    qpos, qvel, ctrl = _start(name, model, steps)
    random = np.random.default_rng(steps)
    bars, direction = final_state_cotangents(model, steps, random), random.normal(size=model.nv)
    rollout = engine.rollout(model, qpos, qvel, ctrl)
    exact = float(engine.backward(model, rollout, *bars).qpos @ ambient(model, qpos, direction))

    def loss(by: float) -> float:
        start = qpos.copy()
        mujoco.mj_integratePos(model.mujoco_model, start, direction, by)
        end = engine.rollout(model, start, qvel, ctrl, states="final", checkpoints="none")
        return float(bars[0][-1] @ end.final_qpos + bars[1][-1] @ end.final_qvel)

    return [abs((loss(w) - loss(-w)) / (2 * w) - exact) / abs(exact) for w in WIDTHS]


def table() -> str:
    """Return the errors of both contact models."""
    lines = ["| scene, steps | contact model | " + " | ".join(f"{width:.0e}" for width in WIDTHS) + " |"]
    lines.append("|---" * (2 + len(WIDTHS)) + "|")
    for name in SETTLING:
        for steps in STEPS:
            for contact_model in ("mujoco", "hard"):
                cells = [f"{error:.0e}" for error in errors(name, steps, contact_model)]
                lines.append(f"| {name}, {steps} | {contact_model} | " + " | ".join(cells) + " |")
    return "\n".join(lines)

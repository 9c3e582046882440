"""Steps and trajectories of a robot in revolute and in MuJoCo, and how far apart they are."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import lru_cache
from typing import Any

import mujoco
import numpy as np

from revolute_engine import Engine, Model, native
from testbed.robot_catalogue import FREE_OF_CONSTRAINTS, Robot
from testbed.robot_starts import moderate_range

from .mujoco_reference import Array, States, reference_model, step, trajectory

SAMPLES = 20
"""Random states from which one step is compared."""

STEPS = 1000
"""Length of the long trajectory."""

NUDGE = 1e-10
"""Perturbation whose growth in MuJoCo tells a sensitive trajectory from a wrong one."""


@dataclass(frozen=True)
class StepFigures:
    """Largest error of one step.

    Attributes:
        state: of qpos and qvel, each relative to its largest entry.
        acceleration: of the change of qvel, relative to its largest entry.
    """

    state: float
    acceleration: float


@dataclass(frozen=True)
class TrajectoryFigures:
    """How a long trajectory compares.

    Attributes:
        error: largest difference of qpos and of qvel, each relative to the largest entry ever.
        growth: by how much MuJoCo's own trajectory amplifies a small change of the start velocity.
    """

    error: float
    growth: float


def unconstrained(robot: Robot, integrator: str = "euler", **options: Any) -> Model:
    """Load the robot without contacts, limits, dry friction and equality constraints."""
    return _without_equalities(robot.load(**FREE_OF_CONSTRAINTS, **options), integrator)


def _without_equalities(model: Model, integrator: str) -> Model:
    arrays = {**model.arrays, "integrator": int(integrator == "implicitfast")}
    arrays.update({name: values[:0] for name, values in arrays.items() if name.startswith("eq_")})
    return replace(model, arrays=arrays, native=native.Model(arrays))


@lru_cache(maxsize=1)
def _loaded(robot: Robot) -> tuple[Model, mujoco.MjModel, bool]:
    model = robot.load(**FREE_OF_CONSTRAINTS)
    return model, *reference_model(robot, model.mujoco_model)


def smooth_models(robot: Robot, integrator: str) -> tuple[Model, mujoco.MjModel]:
    """Return the robot with every constraint off, in revolute (for an integrator) and in MuJoCo."""
    model, reference, _ = _loaded(robot)
    assert (model.nq, model.nv, model.nu) == (reference.nq, reference.nv, reference.nu)
    return _without_equalities(model, integrator), reference


def mujoco_compiles(robot: Robot) -> bool:
    """Whether MuJoCo takes the file as it is, a URDF without its shapes."""
    return _loaded(robot)[2]


def random_states(
    model: mujoco.MjModel, qpos0: Array, count: int, seed: int, spread: float, speed: float
) -> States:
    """Return states scattered about a configuration."""
    random = np.random.default_rng(seed)
    qpos = np.tile(qpos0, (count, 1))
    for row in qpos:
        mujoco.mj_integratePos(model, row, spread * random.normal(size=model.nv), 1.0)
        mujoco.mj_normalizeQuat(model, row)
    return States(qpos, speed * random.normal(size=(count, model.nv)))


def compare_steps(robot: Robot, integrator: str, seed: int = 1) -> StepFigures:
    """Compare one step from random states with random controls."""
    model, reference = smooth_models(robot, integrator)
    start = random_states(reference, model.qpos0, SAMPLES, seed, spread=0.5, speed=1.0)
    low, high = moderate_range(model).T
    ctrl = np.random.default_rng(seed + 1).uniform(low, high, size=(SAMPLES, model.nu))
    ours = Engine(threads=1).rollout(model, start.qpos, start.qvel, ctrl[:, None, :])
    theirs = step(reference, start, ctrl, integrator)
    speeds, gain = ours.qvel[:, 1, : model.nv], theirs.qvel - start.qvel  # without activations
    return StepFigures(
        state=max(_largest(ours.qpos[:, 1], theirs.qpos), _largest(speeds, theirs.qvel)),
        acceleration=_largest(speeds - start.qvel, gain),
    )


def compare_trajectories(robot: Robot, integrator: str, seed: int = 2) -> TrajectoryFigures:
    """Compare a long trajectory from a slow start with small oscillating controls."""
    model, reference = smooth_models(robot, integrator)
    start = random_states(reference, model.qpos0, 1, seed, spread=0.1, speed=0.1)
    qpos, qvel = start.qpos[0], start.qvel[0]
    random = np.random.default_rng(seed + 1)
    low, high = moderate_range(model).T
    phase = np.arange(STEPS)[:, None] * model.timestep + random.uniform(size=model.nu)
    ctrl = (low + high) / 2 + 0.05 * (high - low) * np.sin(2 * np.pi * phase)
    ours = Engine(threads=1).rollout(model, qpos, qvel, ctrl)
    theirs = trajectory(reference, qpos, qvel, ctrl, integrator)
    nudged = trajectory(reference, qpos, qvel + NUDGE * _unit(random, model.nv), ctrl, integrator)
    largest = max(np.abs(nudged.qpos - theirs.qpos).max(), np.abs(nudged.qvel - theirs.qvel).max())
    errors = (_relative(ours.qpos, theirs.qpos), _relative(ours.qvel[:, : model.nv], theirs.qvel))
    return TrajectoryFigures(error=max(errors), growth=float(largest) / NUDGE)


def _unit(random: np.random.Generator, size: int) -> Array:
    direction = random.normal(size=size)
    return direction / np.linalg.norm(direction)


def _largest(ours: Array, theirs: Array) -> float:
    """Return the largest relative difference of rows; nan when a number is not finite."""
    return max(_relative(one, other) for one, other in zip(ours, theirs, strict=True))


def _relative(ours: Array, theirs: Array) -> float:
    scale = np.abs(theirs).max()
    return float(np.abs(ours - theirs).max() / (scale if scale > 0 else 1.0))

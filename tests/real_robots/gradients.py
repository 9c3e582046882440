"""Directional derivatives of a robot's trajectory: pulled back, pushed forward, and by central differences.

The loss is a random linear function of three states of the trajectory. For each input one random direction is
taken; the differences of all step sizes run as one batch. The difference that counts is the one that agrees
best with those of both neighbouring step sizes: the plateau between truncation and rounding errors. In
contact that plateau can begin as low as 1e-9, where the nearest switching point no longer lies between.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np

from revolute_engine import Engine, Model
from testbed.robot_starts import Start, moderate_controls
from tests.tangents import ambient, moved

from .mujoco_reference import Array
from .smooth_dynamics import random_states

STEP_SIZES = np.logspace(-2, -11, 19)
INPUTS = ("qpos", "qvel", "ctrl")
SMALL = 1e-6
"""Gradients below this are zeros with rounding errors: a joint at rest on its limits forgets its start."""

PARAMETERS = (
    "body_mass",
    "body_ipos",
    "body_inertia",
    "dof_damping",
    "dof_armature",
    "gravity",
    "actuator_gear",
)
"""What is differentiated by, besides the inputs."""


@dataclass(frozen=True)
class DirectionalDerivative:
    """One input's derivative along a random direction, four times.

    Attributes:
        pulled: by `backward`.
        pushed: by `jvp`.
        difference: central difference at the plateau.
        spread: distance of the differences of neighbouring step sizes there.
        left, right: one-sided differences at the plateau's step size.
        scale: size of the gradient times that of the direction, by the square root of the number of entries.
    """

    pulled: float
    pushed: float
    difference: float
    spread: float
    left: float
    right: float
    scale: float

    @property
    def error(self) -> float:
        """Difference between analytic and numerical derivative, relative to the gradient."""
        return abs(self.pulled - self.difference) / self.scale if self.scale > 0 else 0.0

    @property
    def mismatch(self) -> float:
        """Difference between the two analytic derivatives, relative to the gradient."""
        return abs(self.pulled - self.pushed) / self.scale if self.scale > 0 else 0.0

    @property
    def noise(self) -> float:
        """How well the differences agree among themselves, relative to the gradient."""
        return self.spread / self.scale if self.scale > 0 else 0.0

    @property
    def kink(self) -> float:
        """How much the one-sided differences disagree, relative to the gradient."""
        return abs(self.left - self.right) / self.scale if self.scale > 0 else 0.0


def derivatives(
    model: Model, start: Start, names: Iterable[str] = (*INPUTS, *PARAMETERS), seed: int = 5
) -> dict[str, DirectionalDerivative]:
    """Differentiate the trajectory from a start by each input that the model has."""
    random = np.random.default_rng(seed)
    engine = Engine(threads=1)
    base = {name: _parameter(model, name) for name in names if name not in INPUTS}
    rollout = engine.rollout(model, start.qpos, start.qvel, start.ctrl, params=base)
    assert rollout.status == 0, f"diverged at step {rollout.diverged_step}"
    steps = len(start.ctrl)
    qpos_bar, qvel_bar = np.zeros_like(rollout.qpos), np.zeros_like(rollout.qvel)
    for step in {steps // 3, 2 * steps // 3, steps}:
        qpos_bar[step], qvel_bar[step] = random.normal(size=model.nq), random.normal(size=model.nqvel)
    found = {}
    for name in names:
        value = base.get(name, getattr(start, name) if name in INPUTS else None)
        if value is None or value.size == 0:
            continue
        direction = _direction(random, name, model, value)
        gradient = engine.backward(model, rollout, qpos_bar, qvel_bar, wrt=[name])[name]
        rate = ambient(model, start.qpos, direction) if name == "qpos" else direction
        if name in INPUTS:
            pushed = engine.jvp(model, rollout, **{f"{name}_tan": direction})
        else:
            pushed = engine.jvp(model, rollout, params_tan={name: direction})
        pushed_qpos = ambient(model, rollout.qpos, pushed.qpos)
        values = _losses(engine, model, start, base, name, direction, qpos_bar, qvel_bar)
        plateau = _plateau(*values)
        size = np.linalg.norm(gradient) * np.linalg.norm(rate) / np.sqrt(max(np.count_nonzero(direction), 1))
        found[name] = DirectionalDerivative(
            pulled=float((gradient * rate).sum()),
            pushed=float((pushed_qpos * qpos_bar).sum() + (pushed.qvel * qvel_bar).sum()),
            scale=max(float(size), SMALL),
            **plateau,
        )
    return found


def _parameter(model: Model, name: str) -> Array:
    """Return a parameter's value; zeros that may not become negative are lifted."""
    value = np.array(model.arrays["act_gear" if name == "actuator_gear" else name], dtype=float)
    if name in ("dof_damping", "dof_armature", "dof_frictionloss"):
        return np.where(value > 0, value, 0.01)
    return value


def _direction(random: np.random.Generator, name: str, model: Model, value: Array) -> Array:
    """Return a random direction; of parameters in proportion to their entries, so that signs stay."""
    if name in ("qpos", "qvel"):
        return random.normal(size=model.nv if name == "qpos" else model.nqvel)
    if name in ("ctrl", "gravity", "body_ipos"):
        scale = {"ctrl": 1.0, "gravity": 1.0, "body_ipos": 0.01}[name]
        return scale * random.normal(size=value.shape)
    return value * random.uniform(-1, 1, size=value.shape)


def _losses(
    engine: Engine,
    model: Model,
    start: Start,
    base: dict[str, Array],
    name: str,
    direction: Array,
    qpos_bar: Array,
    qvel_bar: Array,
) -> tuple[Array, Array, float]:
    """Return the loss a step size further, a step size back, and in the middle."""
    offsets = np.concatenate([STEP_SIZES, -STEP_SIZES, [0.0]])
    batch = len(offsets)
    tiled = {key: np.repeat(getattr(start, key)[None], batch, axis=0) for key in INPUTS}
    params = dict(base)
    if name == "qpos":
        tiled["qpos"] = np.stack([moved(model, start.qpos, direction, by) for by in offsets])
    else:
        value = params.get(name, tiled[name][0] if name in INPUTS else None)
        shifted = value + offsets.reshape(-1, *np.ones(np.ndim(value), int)) * direction
        if name in INPUTS:
            tiled[name] = shifted
        else:
            params[name] = shifted
    ends = engine.rollout(model, tiled["qpos"], tiled["qvel"], tiled["ctrl"], params=params)
    losses = np.einsum("btq,tq->b", ends.qpos, qpos_bar) + np.einsum("btv,tv->b", ends.qvel, qvel_bar)
    count = len(STEP_SIZES)
    return losses[:count], losses[count:-1], float(losses[-1])


def _plateau(further: Array, back: Array, middle: float) -> dict[str, float]:
    """Return the central difference where neighbouring step sizes agree best, and its company."""
    central = (further - back) / (2 * STEP_SIZES)
    gaps = np.abs(np.diff(central))
    # small steps may agree by chance on a few rounding errors
    rounding = np.finfo(float).eps * abs(middle) / STEP_SIZES
    spreads = np.maximum(gaps[:-1], gaps[1:]) + rounding[1:-1]
    best = int(np.nanargmin(spreads)) + 1
    size = STEP_SIZES[best]
    return {
        "difference": float(central[best]),
        "spread": float(spreads[best - 1]),
        "left": float((middle - back[best]) / size),
        "right": float((further[best] - middle) / size),
    }


def free_start(model: Model, seed: int = 7, steps: int = 50) -> Start:
    """Return a start near the reference pose with random controls well inside their ranges."""
    states = random_states(model.mujoco_model, model.qpos0, 1, seed, spread=0.1, speed=0.1)
    qvel = np.zeros(model.nqvel)  # activations behind the velocities
    qvel[: model.nv] = states.qvel[0]
    return Start(states.qpos[0], qvel, moderate_controls(model, np.random.default_rng(seed), steps, 0.2))

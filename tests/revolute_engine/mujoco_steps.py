"""Checks of one step of the engine and of its derivatives, beside MuJoCo's step."""

from __future__ import annotations

from collections.abc import Iterable

import mujoco
import numpy as np
import numpy.typing as npt

from revolute_engine import Engine, Gradient, Model, Rollout
from revolute_engine.parameters import default_parameter

Floats = npt.NDArray[np.float64]
State = tuple[Floats, Floats, Floats]
"""qpos, qvel with activations behind the velocities, ctrl."""

JACOBIAN = 1e-9
"""Of the Jacobian's product, relative to its largest entry: the same derivatives in another order."""


def mujoco_step(model: mujoco.MjModel, qpos: Floats, qvel: Floats, ctrl: Floats) -> tuple[Floats, Floats]:
    """Return the state after one step of MuJoCo."""
    data = mujoco.MjData(model)
    data.qpos[:], data.ctrl[:] = qpos, ctrl
    data.qvel[:], data.act[:] = qvel[: model.nv], qvel[model.nv :]
    mujoco.mj_step(model, data)
    return data.qpos.copy(), np.concatenate([data.qvel, data.act])


def tangent(model: mujoco.MjModel, qpos: Floats, qpos_bar: Floats) -> Floats:
    """Return a cotangent of qpos by the tangent of the configuration."""
    out, step = np.zeros(model.nv), 1e-6
    for k in range(model.nv):
        ends = []
        for sign in (1, -1):
            moved, unit = qpos.copy(), np.zeros(model.nv)
            unit[k] = 1
            mujoco.mj_integratePos(model, moved, unit, sign * step)
            ends.append(moved)
        out[k] = qpos_bar @ (ends[0] - ends[1]) / (2 * step)
    return out


def check_step(theirs: mujoco.MjModel, ours: Model, state: State, tolerance: float) -> Rollout:
    """Check a step; the error of accelerations is relative to the largest. Return the rollout."""
    qpos, qvel, ctrl = state
    next_qpos, next_qvel = mujoco_step(theirs, *state)
    found = Engine(threads=1).rollout(ours, qpos, qvel, ctrl[None])
    wanted, got = ((end - qvel) / theirs.opt.timestep for end in (next_qvel, found.qvel[1]))
    assert np.abs(got - wanted).max() <= tolerance * np.abs(wanted).max()
    assert np.abs(found.qpos[1] - next_qpos).max() <= tolerance
    return found


def check_gradient_of_step(
    theirs: mujoco.MjModel, ours: Model, state: State, tolerance: float, **sizes: float
) -> Gradient:
    """Check the gradient of a random loss of a step against central differences of MuJoCo's step.

    Args:
        theirs: MuJoCo's model.
        ours: the engine's.
        state: the state before the step, away from kinks.
        tolerance: largest error of a directional derivative, relative to it.
        sizes: size of the differences by input, 1e-5 by default.
    """
    random, at = np.random.default_rng(5), dict(zip(("qpos", "qvel", "ctrl"), state, strict=True))
    bars = random.normal(size=theirs.nq) / theirs.opt.timestep, random.normal(size=ours.nqvel)
    engine = Engine(threads=1)
    found = engine.rollout(ours, at["qpos"], at["qvel"], at["ctrl"][None])
    qpos_bar, qvel_bar = (np.stack([np.zeros_like(bar), bar]) for bar in bars)
    gradient = engine.backward(ours, found, qpos_bar, qvel_bar, wrt=["qpos", "qvel", "ctrl"])
    exact = {
        "qpos": tangent(theirs, at["qpos"], gradient.qpos),
        "qvel": gradient.qvel,
        "ctrl": gradient.ctrl[0],
    }

    def loss(moved: str, direction: Floats, step: float) -> float:
        there = {name: value.copy() for name, value in at.items()}
        if moved == "qpos":
            mujoco.mj_integratePos(theirs, there["qpos"], direction, step)
        else:
            there[moved] += step * direction
        next_qpos, next_qvel = mujoco_step(theirs, *there.values())
        return float(bars[0] @ next_qpos + bars[1] @ next_qvel)

    for moved, bar in exact.items():
        direction, step = random.normal(size=bar.shape), sizes.get(moved, 1e-5)
        near, far = (loss(moved, direction, n * step) - loss(moved, direction, -n * step) for n in (1, 2))
        wanted = (8 * near - far) / (12 * step)
        scale = max(abs(wanted), 1e-2 * float(np.linalg.norm(bar) * np.linalg.norm(direction)))
        assert abs(bar @ direction - wanted) <= tolerance * scale, moved
    return gradient


def check_jacobian(model: Model, state: State) -> None:
    """Check the Jacobian of a step against forward derivatives of the step."""
    (qpos, qvel, ctrl), engine, random = state, Engine(threads=1), np.random.default_rng(3)
    dq, dv = random.normal(size=(2, model.nv))
    du = random.normal(size=model.nu)
    pushed = engine.jvp(
        model, engine.rollout(model, qpos, qvel, ctrl[None]), qpos_tan=dq, qvel_tan=dv, ctrl_tan=du[None]
    )
    jacobian = engine.jacobian(model, qpos, qvel, ctrl)
    wanted = np.concatenate([pushed.qpos[1], pushed.qvel[1]])
    got = jacobian.A @ np.concatenate([dq, dv]) + jacobian.B @ du
    assert np.abs(got - wanted).max() <= JACOBIAN * np.abs(wanted).max()


def check_packs(
    theirs: mujoco.MjModel,
    ours: Model,
    start: tuple[Floats, Floats],
    ctrl: Floats,
    tolerance: float,
    *,
    params: Iterable[str] = (),
    least: float = 1.0,
) -> Gradient:
    """Check that environments do not disturb each other, and that forward and backward derivatives pair.

    The bits of each environment are those that it has alone. The gradient of a random loss of the last
    velocity and the forward derivative along random tangents give the same number.

    Args:
        theirs: MuJoCo's model.
        ours: the engine's.
        start: qpos and qvel of the environments.
        ctrl: their controls, [batch, time, nu].
        tolerance: largest difference of the two numbers, relative to the larger of them and `least`.
        params: parameters that each environment has its own row of.
        least: see `tolerance`.

    Returns:
        The gradient.
    """
    (qpos, qvel), engine, random = start, Engine(threads=1), np.random.default_rng(6)
    batch, steps = ctrl.shape[:2]
    values = {name: np.stack([default_parameter(ours, name)] * batch) for name in params}
    moves = {name: 0.1 * value * random.normal(size=value.shape) for name, value in values.items()}
    qvel_bar = np.zeros((batch, steps + 1, ours.nqvel))
    qvel_bar[:, -1] = random.normal(size=(batch, ours.nqvel))
    tangents = random.normal(size=(batch, theirs.nv)), random.normal(size=qvel.shape)
    ctrl_tan, names = random.normal(size=ctrl.shape), ["qpos", "qvel", "ctrl", *values]
    found = engine.rollout(ours, qpos, qvel, ctrl, params=values)
    gradient = engine.backward(ours, found, qvel_bar=qvel_bar, wrt=names)
    pushed = engine.jvp(
        ours, found, qpos_tan=tangents[0], qvel_tan=tangents[1], ctrl_tan=ctrl_tan, params_tan=moves
    )
    for i in range(batch):
        own = {name: value[i] for name, value in values.items()}
        alone = engine.rollout(ours, qpos[i], qvel[i], ctrl[i], params=own)
        assert np.array_equal(alone.qpos, found.qpos[i]) and np.array_equal(alone.qvel, found.qvel[i])
        pulled = engine.backward(ours, alone, qvel_bar=qvel_bar[i], wrt=names)
        assert all(np.array_equal(pulled[name], gradient[name][i]) for name in names)
        by_inputs = tangent(theirs, qpos[i], gradient.qpos[i]) @ tangents[0][i]
        by_inputs += gradient.qvel[i] @ tangents[1][i] + (gradient.ctrl[i] * ctrl_tan[i]).sum()
        by_inputs += sum((gradient[name][i] * move[i]).sum() for name, move in moves.items())
        by_outputs = qvel_bar[i, -1] @ pushed.qvel[i, -1]
        assert abs(by_inputs - by_outputs) <= tolerance * max(least, abs(by_inputs), abs(by_outputs))
    return gradient

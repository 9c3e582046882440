"""Compares the engine's gradient with central differences of a rollout.

One batch computes differences with several step sizes. The plateau between truncation and rounding errors is
where two consecutive sizes agree best; their distance is the uncertainty.
"""

from __future__ import annotations

from dataclasses import dataclass

import mujoco
import numpy as np
import numpy.typing as npt

from revolute_engine import Engine, Model

Array = npt.NDArray[np.float64]
STEPS = 10.0 ** np.arange(-3, -9, -1)
STATE = ("qpos", "qvel", "ctrl")


@dataclass(frozen=True)
class Start:
    """Start state, controls and replaced parameters of a rollout."""

    qpos: Array
    qvel: Array
    ctrl: Array
    params: dict[str, Array]

    def get(self, name: str) -> Array:
        """Return one input by name."""
        return getattr(self, name) if name in STATE else self.params[name]


@dataclass(frozen=True)
class Comparison:
    """Derivatives along a few directions, from both sides.

    Attributes:
        exact: derivatives from the gradient, [directions].
        central: central differences for each step size, [directions, steps].
        one_sided: forward and backward differences at the plateau, [directions, 2].
        plateau: index of the plateau's step size, [directions].
    """

    exact: Array
    central: Array
    one_sided: Array
    plateau: npt.NDArray[np.intp]

    @property
    def scale(self) -> float:
        """Return the largest derivative; errors are relative to it."""
        return float(np.abs(self.exact).max())

    @property
    def by_step(self) -> Array:
        """Return the largest error for each size of the step."""
        return np.abs(self.central - self.exact[:, None]).max(axis=0) / self.scale

    @property
    def error(self) -> float:
        """Return the largest error at the plateaus."""
        return float(np.abs(self._at(self.plateau) - self.exact).max() / self.scale)

    @property
    def uncertainty(self) -> float:
        """Return the largest difference between the plateau's two steps."""
        return float(np.abs(self._at(self.plateau) - self._at(self.plateau - 1)).max() / self.scale)

    @property
    def sidedness(self) -> float:
        """Return the largest difference between the two one-sided differences."""
        return float(np.abs(self.one_sided[:, 0] - self.one_sided[:, 1]).max() / self.scale)

    def _at(self, step: npt.NDArray[np.intp]) -> Array:
        return np.take_along_axis(self.central, step[:, None], axis=1)[:, 0]


def final_state_cotangents(model: Model, steps: int, random: np.random.Generator) -> tuple[Array, Array]:
    """Return random weights of the last state, qpos_bar [steps + 1, nq] and qvel_bar [steps + 1, nv]."""
    qpos_bar, qvel_bar = np.zeros((steps + 1, model.nq)), np.zeros((steps + 1, model.nv))
    qpos_bar[-1], qvel_bar[-1] = random.normal(size=model.nq), random.normal(size=model.nv)
    return qpos_bar, qvel_bar


def compare(
    engine: Engine,
    model: Model,
    start: Start,
    name: str,
    bars: tuple[Array, Array],
    directions: int,
    seed: int,
) -> Comparison:
    """Compare the gradient by one input with differences along random directions.

    Args:
        engine: where to simulate.
        model: the model.
        start: state, controls and parameters.
        name: the input: qpos, qvel, ctrl or a parameter of `start.params`.
        bars: d loss / d qpos and d qvel; the loss is linear in the states.
        directions: number of random directions.
        seed: seed of the directions.
    """
    random = np.random.default_rng(seed)
    rollout = engine.rollout(model, start.qpos, start.qvel, start.ctrl, params=start.params)
    gradient = engine.backward(model, rollout, *bars, wrt=(name,))[name]
    shape = (model.nv,) if name == "qpos" else start.get(name).shape
    tangents = random.normal(size=(directions, *shape))
    if name not in STATE:
        tangents = tangents * start.get(name)  # parameters change in proportion
    offsets = np.array([sign * step for step in STEPS for sign in (1, -1)])
    ends = _losses(engine, model, start, name, tangents, offsets, bars).reshape(directions, len(STEPS), 2)
    centre = _loss(rollout.qpos[None], rollout.qvel[None], bars)[0]
    rates = [ambient(model, start.qpos, tangent) for tangent in tangents] if name == "qpos" else tangents
    exact = [np.sum(gradient * rate) for rate in rates]
    central = (ends[..., 0] - ends[..., 1]) / (2 * STEPS)
    plateau = np.abs(np.diff(central)).argmin(axis=1) + 1
    at_plateau = np.take_along_axis(ends, plateau[:, None, None], axis=1)[:, 0]
    one_sided = (at_plateau - centre) / (STEPS[plateau][:, None] * [1, -1])
    return Comparison(np.array(exact), central, one_sided, plateau)


def _losses(
    engine: Engine,
    model: Model,
    start: Start,
    name: str,
    tangents: Array,
    offsets: Array,
    bars: tuple[Array, Array],
) -> Array:
    """Return the loss at every offset along every tangent, [tangents * offsets]."""
    count = len(tangents) * len(offsets)
    inputs = {key: np.repeat(start.get(key)[None], count, axis=0) for key in (*STATE, *start.params)}
    row = 0
    for tangent in tangents:
        for offset in offsets:
            if name == "qpos":
                mujoco.mj_integratePos(model.mujoco_model, inputs[name][row], tangent, offset)
            else:
                inputs[name][row] += offset * tangent
            row += 1
    state = {key: inputs.pop(key) for key in STATE}
    moved = engine.rollout(model, state["qpos"], state["qvel"], state["ctrl"], params=inputs)
    return _loss(moved.qpos, moved.qvel, bars)


def _loss(qpos: Array, qvel: Array, bars: tuple[Array, Array]) -> Array:
    """Return the loss of each environment."""
    return np.einsum("btq,tq->b", qpos, bars[0]) + np.einsum("btv,tv->b", qvel, bars[1])


def ambient(model: Model, qpos: Array, tangent: Array) -> Array:
    """Return the rate of qpos along a tangent: of a quaternion q, q (0, d)/2."""
    rate = np.zeros(model.nq)
    for joint in range(model.njnt):
        kind, q, v = (int(model.arrays[name][joint]) for name in ("jnt_type", "jnt_qposadr", "jnt_dofadr"))
        linear = {0: 3, 1: 0}.get(kind, 1)
        rate[q : q + linear] = tangent[v : v + linear]
        if kind <= 1:
            pure = np.r_[0.0, tangent[v + linear : v + linear + 3] / 2]
            mujoco.mju_mulQuat(rate[q + linear : q + linear + 4], qpos[q + linear : q + linear + 4], pure)
    return rate

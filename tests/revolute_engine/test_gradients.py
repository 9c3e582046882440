"""Gradients of whole trajectories against finite differences along random directions.

Differences are central and extrapolated (fourth order), along tangents: a quaternion is turned, not shifted.
The loss is linear in all states with random weights, so that every step's cotangent is seen.
"""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import mujoco
import numpy as np
import pytest

from revolute_engine import Engine, Gradient, Model, load_model
from tests.robots import THREE_TREES, gymnasium_ant, gymnasium_model, laikago_urdf

# smooth motion: rounding of the differences is all that is left
SMOOTH = 1e-8
# contact: the solver's clamps switch within the differences' step now and then
CONTACT = 1e-5

Start = dict[str, np.ndarray]


def _moved(model: Model, start: Start, direction: Start, by: float) -> Start:
    """Move a start along a tangent direction; keys of the direction are moved, all others stay."""
    moved = dict(start)
    for name, tangent in direction.items():
        if name == "qpos":
            moved[name] = np.array(start[name])
            mujoco.mj_integratePos(model.mujoco_model, moved[name], tangent, by)
        else:
            moved[name] = start[name] + by * tangent
    return moved


def _ambient(model: Model, qpos: np.ndarray, tangent: np.ndarray) -> np.ndarray:
    """Return d qpos along a tangent direction, to be multiplied with a gradient by qpos."""
    step = 1e-6
    ends = []
    for by in (step, -step):
        end = np.array(qpos)
        mujoco.mj_integratePos(model.mujoco_model, end, tangent, by)
        ends.append(end)
    return (ends[0] - ends[1]) / (2 * step)


def _check(
    model: Model, start: Start, names: tuple[str, ...], seed: int, step: float = 1e-4
) -> tuple[float, Gradient]:
    """Return the largest relative error over the names in `names`, and the gradient."""
    engine, random = Engine(threads=1), np.random.default_rng(seed)
    params = {name: start[name] for name in start if name not in ("qpos", "qvel", "ctrl")}
    inputs = {name: start[name] for name in ("qpos", "qvel", "ctrl")}
    rollout = engine.rollout(model, **inputs, params=params)
    bars = [random.normal(size=rollout.qpos.shape), random.normal(size=rollout.qvel.shape)]
    # weights of early states would hide the late ones: keep the last few
    for bar in bars:
        bar[: max(0, len(bar) - 3)] *= 0.1
    gradient = engine.backward(model, rollout, *bars, wrt=names)

    def loss(at: Start) -> float:
        moved = engine.rollout(
            model, at["qpos"], at["qvel"], at["ctrl"], params={name: at[name] for name in params}
        )
        return float((bars[0] * moved.qpos).sum() + (bars[1] * moved.qvel).sum())

    errors = []
    for name in names:
        size = model.nv if name == "qpos" else start[name].shape
        # masses change in proportion, so that they stay positive
        direction = random.normal(size=size) * (start[name] if name == "body_mass" else 1.0)
        tangent = _ambient(model, start["qpos"], direction) if name == "qpos" else direction
        exact = float((gradient[name] * tangent).sum())
        difference = _difference(loss, model, start, {name: direction}, step)
        print(f"{model.name} {name}: {exact:.12g} {difference:.12g}")
        errors.append(abs(exact - difference) / abs(difference))
    return max(errors), gradient


def _difference(
    loss: Callable[[Start], float], model: Model, start: Start, direction: Start, step: float
) -> float:
    """Return the derivative of the loss along a direction, to fourth order in the step."""

    def central(by: float) -> float:
        ends = [loss(_moved(model, start, direction, sign * by)) for sign in (1, -1)]
        return (ends[0] - ends[1]) / (2 * by)

    return (4 * central(step / 2) - central(step)) / 3


def _random_start(model: Model, steps: int, seed: int) -> Start:
    random = np.random.default_rng(seed)
    qpos = model.qpos0 + 0.2 * random.normal(size=model.nq)
    mujoco.mj_normalizeQuat(model.mujoco_model, qpos)
    ctrl = random.normal(size=(steps, model.nu))
    return {"qpos": qpos, "qvel": 0.5 * random.normal(size=model.nv), "ctrl": ctrl}


@pytest.mark.parametrize("steps", [1, 2, 40])
@pytest.mark.parametrize("source", ["laikago", "laikago_torque", "ant", "pendulum5", "cartpole"])
def test_smooth_gradients_of_built_in_models(source: str, steps: int) -> None:
    model = load_model(source, contact=False, limits=False, contact_model="hard")
    start = _random_start(model, steps, seed=1)
    if source in ("ant", "pendulum5"):
        start["ctrl"] = np.clip(start["ctrl"], -0.9, 0.9)
    error, _ = _check(
        model, {**start, "body_mass": model.body_mass}, ("qpos", "qvel", "ctrl", "body_mass"), seed=2
    )
    assert error < SMOOTH


@pytest.mark.parametrize(
    "source", [THREE_TREES, gymnasium_ant(), laikago_urdf()], ids=["trees", "ant", "laikago"]
)
def test_smooth_gradients_of_other_models(source: str | Path) -> None:
    model = load_model(source, contact=False, limits=False)
    start = _random_start(model, 30, seed=3)
    start["ctrl"] *= 0.2
    error, _ = _check(
        model, {**start, "body_mass": model.body_mass}, ("qpos", "qvel", "ctrl", "body_mass"), seed=4
    )
    assert error < SMOOTH


def _standing(model: Model, steps: int) -> Start:
    """Return the standing scene: targets of the legs that sway by 0.01 rad."""
    pose = model.keyframes["home"]
    time, joint = np.arange(steps)[:, None], np.arange(model.nu)[None]
    return {
        "qpos": pose,
        "qvel": model.qvel0,
        "ctrl": pose[7:] + 0.01 * np.sin(0.05 * time + joint),
    }


@pytest.fixture(scope="module")
def laikago() -> Model:
    return load_model("laikago", contact_model="hard")


@pytest.mark.parametrize("steps", [1, 10, 50, 200])
def test_standing_gradients(laikago: Model, steps: int) -> None:
    # a longer step changes what is in contact by qpos; by qvel a shorter one drowns in rounding
    for names, step in ((("qpos", "ctrl"), 1e-6), (("qvel",), 1e-5)):
        error, _ = _check(laikago, _standing(laikago, steps), names, seed=5, step=step)
        assert error < CONTACT


def test_standing_gradients_stay_bounded_and_right_for_ten_seconds(laikago: Model) -> None:
    error, gradient = _check(laikago, _standing(laikago, 5000), ("qpos", "qvel", "ctrl"), seed=6, step=1e-6)
    assert error < CONTACT
    assert np.abs(gradient.ctrl).max() < 20


@pytest.mark.parametrize("steps", [1, 10, 100])
def test_gradients_by_friction_and_mass_of_a_sliding_robot(laikago: Model, steps: int) -> None:
    start = _standing(laikago, steps)
    start["qvel"] = np.array(start["qvel"])
    start["qvel"][:2] = 1.0, 0.4
    start["geom_friction"] = np.full((laikago.ngeom, 3), 0.2)
    # distinct coefficients: the larger of two counts
    start["geom_friction"][laikago.geom_names.index("floor")] = 0.3
    start["body_mass"] = laikago.body_mass
    error, gradient = _check(laikago, start, ("geom_friction",), seed=7, step=1e-6)
    assert error < 1e-6
    assert gradient.geom_friction[laikago.geom_names.index("floor"), 0] != 0
    error, _ = _check(laikago, start, ("body_mass",), seed=8, step=1e-6)
    assert error < CONTACT


@pytest.mark.filterwarnings("ignore:.*settotalmass")
@pytest.mark.parametrize("name", ["hopper", "half_cheetah", "walker2d"])
def test_planar_robots_land_although_nothing_moves_them_sideways(name: str) -> None:
    model = load_model(gymnasium_model(name))
    ctrl = np.zeros((60, model.nu))
    # away from joint limits: the zero pose of the hopper lies on them, where the derivative has two sides
    low, high = np.where(model.arrays["jnt_limited"][:, None], model.arrays["jnt_range"], [-1.0, 1.0]).T
    qpos = np.clip(model.qpos0, low + 0.2, high - 0.2)
    qpos[:3] = model.qpos0[:3]
    start = {"qpos": qpos, "qvel": model.qvel0, "ctrl": ctrl}
    error, gradient = _check(model, start, ("qpos", "qvel", "ctrl"), seed=10, step=1e-6)
    assert error < CONTACT
    assert all(np.isfinite(gradient[part]).all() for part in gradient)


def _projected(model: Model, qpos: np.ndarray, gradient: Any) -> float:
    return float(np.dot(qpos[3:7], gradient[3:7]))


def test_gradients_by_a_quaternion_are_tangent(laikago: Model) -> None:
    _, gradient = _check(laikago, _standing(laikago, 10), ("qpos",), seed=9, step=1e-6)
    qpos = laikago.keyframes["home"]
    assert abs(_projected(laikago, qpos, gradient.qpos)) < 1e-12 * np.abs(gradient.qpos).max()

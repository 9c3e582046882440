"""Case D01: any number of checkpoints gives the same gradient.

A trajectory cut into segments, each simulated and differentiated by itself from a stored state, is a
checkpoint scheme made by the user: what it gives must be the gradient of the whole trajectory, bit for
bit. So must the engine's own policies.
"""

import numpy as np
import pytest

from revolute_engine import Engine, Model, load_model
from testbed.case_files import case_file, expected

SEGMENTS = expected("D01")["segments"]
SPHERES = case_file("D06", "spheres_8.xml")


def _controls(steps: int) -> np.ndarray:
    time, joint = np.arange(steps)[:, None], np.arange(10)[None]
    return 0.1 * np.sin(0.05 * time + joint)


def _final_squares(qpos: np.ndarray) -> np.ndarray:
    """Return the cotangent of sum q_N^2 over a trajectory."""
    bar = np.zeros(qpos.shape)
    bar[-1] = 2 * qpos[-1]
    return bar


def _in_segments(
    model: Model, qpos: np.ndarray, qvel: np.ndarray, ctrl: np.ndarray, length: int
) -> np.ndarray:
    """Return the gradient by controls and start state, one segment of `length` steps after the other."""
    engine, states, starts = Engine(threads=1), [(qpos, qvel)], range(0, len(ctrl), length)
    for start in starts:
        segment = engine.rollout(model, *states[-1], ctrl[start : start + length])
        states.append((segment.qpos[-1], segment.qvel[-1]))
    by_qpos, by_qvel = 2 * states[-1][0], np.zeros(model.nv)
    by_ctrl = np.zeros(ctrl.shape)
    for index, start in reversed(list(enumerate(starts))):
        segment = engine.rollout(model, *states[index], ctrl[start : start + length])
        bars = np.zeros(segment.qpos.shape), np.zeros(segment.qvel.shape)
        bars[0][-1], bars[1][-1] = by_qpos, by_qvel
        gradient = engine.backward(model, segment, *bars)
        by_qpos, by_qvel = gradient.qpos, gradient.qvel
        by_ctrl[start : start + length] = gradient.ctrl
    return np.concatenate([by_ctrl.ravel(), by_qpos, by_qvel])


def _whole(model: Model, qpos: np.ndarray, qvel: np.ndarray, ctrl: np.ndarray) -> np.ndarray:
    engine = Engine(threads=1)
    rollout = engine.rollout(model, qpos, qvel, ctrl)
    gradient = engine.backward(model, rollout, _final_squares(rollout.qpos))
    return np.concatenate([gradient.ctrl.ravel(), gradient.qpos, gradient.qvel])


@pytest.mark.parametrize("steps", expected("D01")["N"])
def test_segments_of_a_chain_give_the_same_bits(steps: int) -> None:
    model = load_model(case_file("D01", "ten_link.xml"))
    start = 0.3 * (-1.0) ** np.arange(10), np.zeros(10), _controls(steps)
    whole = _whole(model, *start)
    for length in SEGMENTS:
        assert np.array_equal(_in_segments(model, *start, length), whole), length


POLICIES = (
    *(f"interval={length}" for length in SEGMENTS),
    *(f"slots={count}" for count in (2, 7, 25)),
)


def _by_policy(
    model: Model, start: tuple[np.ndarray, ...], policy: str, bars: tuple[np.ndarray, np.ndarray]
) -> np.ndarray:
    engine = Engine(threads=1)
    rollout = engine.rollout(model, *start, checkpoints=policy)
    gradient = engine.backward(model, rollout, *bars)
    return np.concatenate([gradient.ctrl.ravel(), gradient.qpos, gradient.qvel])


@pytest.mark.parametrize("steps", expected("D01")["N"])
def test_every_policy_gives_the_bits_of_all_states(steps: int) -> None:
    model = load_model(case_file("D01", "ten_link.xml"))
    start = 0.3 * (-1.0) ** np.arange(10), np.zeros(10), _controls(steps)
    states = Engine(threads=1).rollout(model, *start).qpos
    bars = _final_squares(states), np.zeros(states.shape)
    whole = _by_policy(model, start, "every", bars)
    for policy in (*POLICIES, f"slots={steps}"):
        assert np.array_equal(_by_policy(model, start, policy, bars), whole), policy
    # one slot takes T^2 / 2 steps: a fifth of the length shows it
    short = (*start[:2], start[2][: steps // 5])
    bars = bars[0][: steps // 5 + 1] + 1.0, bars[1][: steps // 5 + 1]
    assert np.array_equal(_by_policy(model, short, "slots=1", bars), _by_policy(model, short, "every", bars))


def test_every_policy_gives_the_same_bits_in_resting_contact() -> None:
    model = load_model(SPHERES)
    qvel = np.array(model.qvel0)
    qvel[::6] = np.linspace(-1, 1, 8)
    start = model.qpos0, qvel, np.zeros((299, 0))
    random = np.random.default_rng(0)
    bars = random.normal(size=(300, model.nq)), random.normal(size=(300, model.nv))
    whole = _by_policy(model, start, "every", bars)
    for policy in POLICIES:
        assert np.array_equal(_by_policy(model, start, policy, bars), whole), policy


@pytest.mark.parametrize("length", [1, 7, 100])
def test_segments_in_resting_contact_give_the_same_gradient(length: int) -> None:
    model = load_model(SPHERES)
    qvel = np.array(model.qvel0)
    qvel[::6] = np.linspace(-1, 1, 8)
    start = model.qpos0, qvel, np.zeros((299, 0))
    whole = _whole(model, *start)
    # the cotangent of a quaternion goes through its ambient form at each cut: equal but for rounding
    assert np.abs(_in_segments(model, *start, length) - whole).max() < 1e-12 * np.abs(whole).max()


def test_the_gradient_is_that_of_central_differences() -> None:
    model, engine, random = (
        load_model(case_file("D01", "ten_link.xml")),
        Engine(threads=1),
        np.random.default_rng(1),
    )
    qpos, ctrl, step = 0.3 * (-1.0) ** np.arange(10), _controls(600), 1e-3
    gradient = _whole(model, qpos, np.zeros(10), ctrl)[: ctrl.size]
    entries = random.choice(ctrl.size, 20, replace=False)
    moved = np.repeat(ctrl.reshape(1, -1), 80, axis=0)
    for row, (entry, by) in enumerate(
        (entry, by) for entry in entries for by in (step, -step, step / 2, -step / 2)
    ):
        moved[row, entry] += by
    final = engine.rollout(model, qpos, np.zeros(10), moved.reshape(80, *ctrl.shape)).qpos[:, -1]
    losses = (final**2).sum(axis=1).reshape(20, 4)
    coarse, fine = (losses[:, 0] - losses[:, 1]) / (2 * step), (losses[:, 2] - losses[:, 3]) / step
    difference = (4 * fine - coarse) / 3
    print(np.abs(gradient[entries] - difference).max(), np.abs(gradient).max())
    assert np.abs(gradient[entries] - difference).max() < 1e-6 * np.abs(gradient[entries]).max()

"""Tests of docs/conventions.md that have no better home; the page names a test for each line."""

import numpy as np
import pytest

from revolute_engine import Engine, Model, Rollout, load_model

SLIDER = (
    '<mujoco><option timestep="0.01"/><worldbody><body><joint name="x" type="slide" axis="1 0 0"/>'
    '<inertial pos="0 0 0" mass="2" diaginertia="1 1 1"/></body></worldbody><actuator><motor '
    'joint="x"/></actuator>'
    "</mujoco>"
)
BRICK = (
    '<mujoco><option timestep="0.01"/><worldbody><body><freejoint name="root"/>'
    '<inertial pos="0.1 0 0" mass="2" diaginertia="1 2 2.5"/></body></worldbody></mujoco>'
)


def _roll(
    model: Model, ctrl: np.ndarray, qvel: np.ndarray | None = None, qpos: np.ndarray | None = None
) -> Rollout:
    start = model.qpos0 if qpos is None else qpos
    return Engine(threads=1).rollout(model, start, model.qvel0 if qvel is None else qvel, ctrl)


def test_units_are_si() -> None:
    # 1 N on 2 kg for 0.01 s
    rollout = _roll(load_model(SLIDER), np.ones((1, 1)))
    assert rollout.qvel[1, 0] == pytest.approx(0.005, rel=1e-14)
    assert rollout.qpos[1, 0] == pytest.approx(0.00005, rel=1e-14)


def test_a_control_acts_on_the_next_state() -> None:
    ctrl = np.array([[0.0], [0.0], [1.0], [0.0]])
    assert np.flatnonzero(_roll(load_model(SLIDER), ctrl).qvel[:, 0])[0] == 3


def test_gravity_is_the_files() -> None:
    model = load_model(BRICK.replace('pos="0.1 0 0"', 'pos="0 0 0"'))
    assert _roll(model, np.zeros((1, 0))).qvel[1, :3] == pytest.approx([0, 0, -0.0981], abs=1e-15)
    tilted = load_model(
        BRICK.replace('pos="0.1 0 0"', 'pos="0 0 0"').replace("timestep", 'gravity="1 2 3" timestep')
    )
    assert _roll(tilted, np.zeros((1, 0))).qvel[1, :3] == pytest.approx([0.01, 0.02, 0.03], abs=1e-15)


def test_quaternions_are_directions_up_to_sign() -> None:
    model = load_model(BRICK)
    qpos, qvel = np.array([0, 0, 0, 0.8, 0, 0.6, 0]), np.array([0.1, 0.2, 0.3, 1, 2, 3])
    ends = []
    for factor in (1.0, -1.0, 4.0):
        start = qpos.copy()
        start[3:] *= factor
        ends.append(_roll(model, np.zeros((50, 0)), qvel, start).qpos[-1])
    assert np.allclose(ends[0][3:], -ends[1][3:], atol=1e-14) and np.allclose(
        ends[0][:3], ends[1][:3], atol=1e-14
    )
    assert np.allclose(ends[0], ends[2], atol=1e-14)
    assert abs(np.linalg.norm(ends[0][3:]) - 1) < 1e-14


def test_hinges_count_turns() -> None:
    model = load_model(SLIDER.replace("slide", "hinge"))
    assert _roll(model, np.zeros((1000, 1)), np.array([7.0])).qpos[-1, 0] == pytest.approx(70, rel=1e-12)


def test_a_mass_parameter_leaves_the_rotational_inertia() -> None:
    text = (
        SLIDER.replace("slide", "hinge")
        .replace('pos="0 0 0"', 'pos="0 0 -0.5"')
        .replace("<option", '<option gravity="0 0 0"')
    )
    model = load_model(text)
    rollout = Engine(threads=1).rollout(
        model, [0.0], [0.0], np.ones((1, 1)), params={"body_mass": np.array([0.0, 6.0])}
    )
    # inertia about the axis: 1 about the mass centre plus m r^2
    assert rollout.qvel[1, 0] == pytest.approx(0.01 / (1 + 6 * 0.25), rel=1e-14)


def test_a_cotangent_along_the_quaternion_counts_nothing() -> None:
    model = load_model(BRICK)
    qvel = np.array([0.1, 0.2, 0.3, 1, 2, 3])
    rollout = _roll(model, np.zeros((20, 0)), qvel)
    bar = np.zeros_like(rollout.qpos)
    bar[-1, 3:] = rollout.qpos[-1, 3:]
    gradient = Engine(threads=1).backward(model, rollout, bar)
    assert np.abs(gradient.qpos).max() < 1e-14 and np.abs(gradient.qvel).max() < 1e-14

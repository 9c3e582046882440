"""A loss that is the user's own function, in one call of value_and_gradient on every transport."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import revolute
from testbed.cart import CART

STEPS = 200
POSE = np.tile([0.0, 0.1, -0.8], 4)
START = np.concatenate([[0, 0, 0.458476, 1, 0, 0, 0], POSE])


def test_it_is_rollout_and_backward_bit_for_bit(simulator: revolute.Simulator) -> None:
    model = simulator.load_model("laikago", timestep=2e-3)
    ctrl = POSE + np.random.default_rng(0).normal(0, 0.03, (4, STEPS, 12))
    arguments = model, START, np.zeros(model.nv), ctrl
    seen: list[revolute.States] = []

    def loss(states: revolute.States) -> Any:
        seen.append(states)
        qpos_bar = np.zeros(states.qpos.shape)
        qpos_bar[:, -1, :2] = np.cos(states.qpos[:, -1, :2])
        return np.sin(states.qpos[:, -1, :2]).sum(axis=1), qpos_bar, 0.1 * states.qvel

    value, gradient = simulator.value_and_gradient(*arguments, loss, wrt=("ctrl", "body_mass"))
    with simulator.rollout(*arguments) as trajectory:
        (states,) = seen
        for name in ("qpos", "qvel", "ctrl", "status", "diverged_step"):
            np.testing.assert_array_equal(getattr(states, name), getattr(trajectory, name))
        expected, qpos_bar, qvel_bar = loss(states)
        np.testing.assert_array_equal(value, expected)
        pulled = trajectory.backward(qpos_bar, qvel_bar, wrt=("ctrl", "body_mass"))
    assert list(gradient) == list(pulled)
    for name, array in pulled.items():
        np.testing.assert_array_equal(gradient[name], array)


def test_large_trajectories_and_cotangents(simulator: revolute.Simulator) -> None:
    """1.6 MB of states there and 1.6 MB of cotangents back; the gradient of x_N by u_k is h^2 (N - k)."""
    model = simulator.load_model(CART)
    steps = 100_000

    def loss(states: revolute.States) -> Any:
        bar = np.zeros(states.qpos.shape)
        bar[-1] = 1.0
        return float(states.qpos[-1, 0]), bar, None

    value, gradient = simulator.value_and_gradient(model, [0.0], [0.0], np.ones((steps, 1)), loss)
    np.testing.assert_allclose(value, 1e-6 * steps * (steps + 1) / 2, rtol=1e-9)
    np.testing.assert_allclose(gradient.ctrl[:, 0], 1e-6 * (steps - np.arange(steps)), rtol=1e-9)


def test_what_the_function_raises_reaches_its_caller(simulator: revolute.Simulator) -> None:
    model = simulator.load_model(CART)

    def broken(states: revolute.States) -> Any:
        raise ZeroDivisionError("mine")

    for _ in range(3):
        with pytest.raises(ZeroDivisionError, match="mine"):
            simulator.value_and_gradient(model, [0.0], [0.0], np.ones((5, 1)), broken)
    for wrong in (3.0, (1.0, None), (1.0, None, None, None, None)):
        with pytest.raises(revolute.ArgumentError, match="value, qpos_bar, qvel_bar"):
            simulator.value_and_gradient(model, [0.0], [0.0], np.ones((5, 1)), lambda states, w=wrong: w)
    with pytest.raises(revolute.ArgumentError, match="qpos_bar"):
        simulator.value_and_gradient(
            model, [0.0], [0.0], np.ones((5, 1)), lambda states: (1.0, np.ones(3), None)
        )
    with pytest.raises(revolute.ArgumentError, match="qpos"):
        simulator.value_and_gradient(model, [0.0, 1.0], [0.0], np.ones((5, 1)), broken)

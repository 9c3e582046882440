"""Messages far above gRPC's 4 MiB, both ways, with default settings (case E01)."""

from __future__ import annotations

import numpy as np
import pytest

import revolute

H = 1e-3
CART = """<mujoco model="cart">
  <option timestep="0.001" gravity="0 0 0"/>
  <worldbody><body><joint name="x" type="slide" axis="1 0 0"/>
    <inertial pos="0 0 0" mass="1" diaginertia="0.01 0.01 0.01"/></body></worldbody>
  <actuator><motor joint="x"/></actuator>
</mujoco>"""

RTOL = 1e-9
"""Sums of up to 2 million terms, rounded once each."""


@pytest.mark.parametrize("steps", [100_000, 524_280, 524_288, 2_000_000])
def test_a_push_of_one_newton(simulator: revolute.Simulator, steps: int) -> None:
    model = simulator.load_model(CART)
    with simulator.rollout(model, [0.0], [0.0], np.ones((steps, 1))) as trajectory:
        np.testing.assert_allclose(trajectory.qvel[-1], [steps * H], rtol=RTOL)
        np.testing.assert_allclose(trajectory.qpos[-1], [H * H * steps * (steps + 1) / 2], rtol=RTOL)
        qpos_bar = np.zeros_like(trajectory.qpos)
        qpos_bar[-1] = 1.0
        gradient = trajectory.backward(qpos_bar, wrt=["ctrl"])
        expected = H * H * (steps - np.arange(steps))
        np.testing.assert_allclose(gradient.ctrl[:, 0], expected, rtol=RTOL)


def test_twelve_megabytes_each_way_in_a_batch(simulators: dict[str, revolute.Simulator]) -> None:
    ctrl = np.random.default_rng(5).normal(size=(64, 25_000, 1))
    results = []
    for simulator in simulators.values():
        with simulator.rollout(simulator.load_model(CART), [0.0], [0.0], ctrl) as trajectory:
            results.append(trajectory.qpos)
    assert results[0].nbytes > 12_000_000
    for found in results[1:]:
        np.testing.assert_array_equal(found, results[0])

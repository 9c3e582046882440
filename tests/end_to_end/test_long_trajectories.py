"""Batches of many megabytes, both ways, with default settings; single ones are case E01."""

from __future__ import annotations

import numpy as np

import revolute

CART = """<mujoco model="cart">
  <option timestep="0.001" gravity="0 0 0"/>
  <worldbody><body><joint name="x" type="slide" axis="1 0 0"/>
    <inertial pos="0 0 0" mass="1" diaginertia="0.01 0.01 0.01"/></body></worldbody>
  <actuator><motor joint="x"/></actuator>
</mujoco>"""


def test_twelve_megabytes_each_way_in_a_batch(simulators: dict[str, revolute.Simulator]) -> None:
    ctrl = np.random.default_rng(5).normal(size=(64, 25_000, 1))
    results = []
    for simulator in simulators.values():
        with simulator.rollout(simulator.load_model(CART), [0.0], [0.0], ctrl) as trajectory:
            results.append(trajectory.qpos)
    assert results[0].nbytes > 12_000_000
    for found in results[1:]:
        np.testing.assert_array_equal(found, results[0])

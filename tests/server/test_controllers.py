"""Held controls, feedback and policies in bare requests, with answers that are known in closed form."""

from __future__ import annotations

import numpy as np

from testbed.cart import CART
from testbed.wire import numbers
from tests.server.conftest import Wire


def test_controllers(wire: Wire) -> None:
    """A mass on a rail with u = -2 x: h = 1 ms, so x falls by 2e-6 x0 after the first period of one step."""
    model = wire.call("RegisterModel", {"text": CART})["model_id"]
    inputs = {"model_id": model, "qpos": np.ones(1), "qvel": np.zeros(1), "ctrl": np.zeros((2, 1)), "hold": 3}
    gain = {"gain": np.array([[-2.0, 0.0]]), "qpos": np.zeros(1), "qvel": np.zeros(1)}
    answer = wire.call("Rollout", {**inputs, "feedback": gain})
    velocity = -2e-3 * np.arange(4)
    np.testing.assert_allclose(numbers(answer["qvel"])[:4, 0], velocity, rtol=1e-12)
    applied = numbers(answer["ctrl"])[:, 0]
    np.testing.assert_allclose(applied, [-2.0, -2.0 * (1 - 12e-6)], rtol=1e-12)
    assert answer["hold"] == 3 and numbers(answer["qpos"]).shape == (7, 1)
    policy = {"weights": np.array([-2.0, 0.5]), "sizes": [1, 1], "observe": ["qpos"]}
    answer = wire.call("Rollout", {**inputs, "policy": policy})
    np.testing.assert_allclose(numbers(answer["ctrl"])[0, 0], -1.5, rtol=1e-12)
    bars = {"trajectory_id": answer["trajectory_id"], "qvel_bar": np.ones((1, 1)), "times": [1]}
    found = wire.call("Backward", {**bars, "wrt": ["policy.weights", "ctrl"], "clip": 0.5})
    # v_1 = h (w x_0 + b), and the cotangent of v_1 is clipped to a half
    np.testing.assert_allclose(numbers(found["arrays"]["policy.weights"]), [0.5e-3, 0.5e-3], rtol=1e-12)
    assert numbers(found["clipped"]).tolist() == 1
    both, _ = wire.error("Rollout", {**inputs, "feedback": gain, "policy": policy})
    assert both.argument == "policy"
    assert wire.error("Rollout", {**inputs, "hold": 0})[0].argument == "hold"
    assert wire.error("Backward", {**bars, "clip": -1.0})[0].argument == "clip"

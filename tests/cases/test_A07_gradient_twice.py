"""Case A07: asking for the gradient twice must not change it."""

import numpy as np

from revolute_engine import Engine, load_model
from testbed.case_files import case_file, expected


def test_gradients_are_exact_and_repeat_bit_for_bit() -> None:
    numbers = expected("A07")
    h, steps, mass = numbers["h"], numbers["N"], numbers["m"]
    model, engine = load_model(case_file("A07", "cart.xml")), Engine(threads=1)
    ctrl = np.sin(np.arange(steps, dtype=float))[:, None]
    rollout = engine.rollout(model, [0.0], [0.0], ctrl)
    qpos_bar = np.zeros((steps + 1, 1))
    qpos_bar[-1] = 1
    inputs = [ctrl.copy(), qpos_bar.copy()]

    gradients = [engine.backward(model, rollout, qpos_bar) for _ in range(3)]
    other = engine.rollout(model, [3.0], [-1.0], 5 * ctrl[:20])
    engine.backward(model, other, np.ones((21, 1)))
    gradients.append(engine.backward(model, rollout, qpos_bar))
    doubled = engine.backward(model, rollout, 2 * qpos_bar)

    exact = h**2 * (steps - np.arange(steps)) / mass
    assert np.abs(gradients[0].ctrl[:, 0] - exact).max() < 1e-12
    assert abs(gradients[0].ctrl[0, 0] - numbers["first"]) < 1e-12
    assert abs(gradients[0].ctrl[-1, 0] - numbers["last"]) < 1e-12
    assert abs(gradients[0].qpos[0] - 1) < 1e-12
    assert abs(gradients[0].qvel[0] - numbers["dx_dv0"]) < 1e-12
    for name in ("qpos", "qvel", "ctrl"):
        assert all(np.array_equal(gradients[0][name], gradient[name]) for gradient in gradients)
        assert np.array_equal(2 * gradients[0][name], doubled[name])
    assert np.array_equal(ctrl, inputs[0]) and np.array_equal(qpos_bar, inputs[1])

"""Case D04: the gradient costs a small factor of the rollout, linear in its length.

What is exact is tested here: at every length the gradient is right and nothing is kept but the states.
Times are measured by benchmarks/ours/cost.py.
"""

import numpy as np
import pytest

import revolute_engine
from testbed.case_files import case_file

RELATIVE = (
    1e-9  # backward against forward derivatives: the same arithmetic in another order, over 16000 steps
)


@pytest.mark.parametrize("steps", (1000, 4000, 16000))
def test_backward_and_forward_derivatives_agree_at_every_length(steps: int) -> None:
    model = revolute_engine.load_model(case_file("D04", "ten_link.xml"))
    engine = revolute_engine.Engine(threads=1)
    random = np.random.default_rng(4)
    ctrl = 0.01 * random.normal(size=(steps, model.nu))
    rollout = engine.rollout(model, model.qpos0, model.qvel0, ctrl)
    assert rollout.qpos.shape == (steps + 1, model.nq) and rollout.qvel.shape == (steps + 1, model.nv)
    bar = random.normal(size=(2, steps + 1, model.nv))
    gradient = engine.backward(model, rollout, bar[0], bar[1])
    ctrl_tan = random.normal(size=ctrl.shape)
    tangent = engine.jvp(model, rollout, ctrl_tan=ctrl_tan)
    forward = np.sum(bar[0] * tangent.qpos) + np.sum(bar[1] * tangent.qvel)
    backward = np.sum(gradient.ctrl * ctrl_tan)
    assert abs(backward - forward) <= RELATIVE * abs(forward)
    # the last control acts on one step, the first on all of them
    assert np.all(np.isfinite(gradient.ctrl)) and gradient.ctrl[0].any() and gradient.ctrl[-1].any()

"""Case B04: a cart-pole against its written-out equations."""

import numpy as np

from revolute_engine import Engine, load_model
from testbed.case_files import case_file, expected


def test_the_discrete_numbers_after_one_second() -> None:
    model = load_model(case_file("B04", "cartpole.xml"))
    rollout = Engine(threads=1).rollout(model, [0.0, 0.3], [0.0, 0.0], np.zeros((1000, 0)))
    final = [*rollout.qpos[-1], *rollout.qvel[-1]]
    assert np.abs(np.subtract(final, expected("B04")["semi_implicit_h1e-3_t1"])).max() < 1e-9

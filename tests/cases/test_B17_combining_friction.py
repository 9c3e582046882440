"""Case B17: how two friction coefficients are combined.

MuJoCo's rule, also for URDF (docs/conventions.md): the larger of the two, or that of the shape with the
higher priority.
"""

import numpy as np

from revolute_engine import Engine, load_model
from testbed.case_files import case_file, expected


def test_sliding_blocks_brake_by_the_rule_of_the_format() -> None:
    model, engine = load_model(case_file("B17", "combine.xml"), contact_model="hard"), Engine(threads=1)
    settled = engine.rollout(model, model.qpos0, model.qvel0, np.zeros((500, 0)))
    qvel = np.array(settled.qvel[-1])
    qvel[::2] = 3.0
    rollout = engine.rollout(model, settled.qpos[-1], qvel, np.zeros((100, 0)))
    change = (rollout.qvel[-1] - qvel)[::2]
    exact = np.array([expected("B17")["dv"][name] for name in "ABC"])
    assert np.abs(change / exact - 1).max() < 0.005

"""Case A12: a limit on one joint does not touch an unrelated joint."""

import numpy as np

from revolute_engine import Engine, load_model
from testbed.case_files import case_file, expected
from testbed.final_state import final_gradient

STEPS = 1024


def test_a_wheel_turns_the_same_beside_a_limited_one() -> None:
    numbers = expected("A12")
    engine, ends = Engine(threads=1), []
    for limits in (True, False):
        model = load_model(case_file("A12", "two_wheels.xml"), limits=limits)
        rollout = engine.rollout(model, [0.0, 0.5], [100.0, 0.0], np.full((STEPS, 1), 0.2))
        ends.append(rollout.qpos[-1])
        gradient = final_gradient(engine, model, rollout, qpos=0)
        assert abs(gradient.qvel[0] - numbers["dthetaA_dwA0"]) < 1e-12
        assert gradient.qpos[0] == 1
        assert gradient.qpos[1] == gradient.qvel[1] == 0 and not gradient.ctrl.any()
    limited, free = ends
    assert abs(limited[0] - numbers["thetaA"]) < 1e-9
    assert abs(limited[0] / free[0] - 1) < 1e-12
    assert 0.5 <= limited[1] <= 0.51
    assert free[1] > 1

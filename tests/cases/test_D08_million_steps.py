"""Case D08: a million steps: clock and quaternion stay true."""

import numpy as np

from revolute import Simulator, State
from testbed.case_files import case_file, expected

SPIN = np.array([0.3, 0.2, 0.1])
STEPS = 1_000_000


def _after(simulator: Simulator, chunk: int) -> State:
    model = simulator.load_model(case_file("D08", "rest_body.xml"))
    with simulator.session(model) as session:
        session.reset(qvel=[0, 0, 0, *SPIN])
        for _ in range(STEPS // chunk):
            state = session.step([], steps=chunk)
    return state


def test_clock_orientation_and_spin_after_a_thousand_seconds(simulator: Simulator) -> None:
    state = _after(simulator, 10_000)
    assert abs(state.time - 1000) < 1e-9 and state.step_count == STEPS
    quaternion = state.qpos[0, 3:]
    assert abs(np.linalg.norm(quaternion) - 1) < 1e-9
    half = expected("D08")["angle"] / 2
    exact = np.array([np.cos(half), *(np.sin(half) * SPIN / np.linalg.norm(SPIN))])
    # the angle between the two orientations
    assert 2 * np.arccos(min(1.0, abs(quaternion @ exact))) < 1e-6
    assert np.linalg.norm(quaternion - np.sign(quaternion @ exact) * exact) < 5e-7
    assert np.abs(state.qvel[0] - [0, 0, 0, *SPIN]).max() < 1e-12
    # chunks of another size, not a divisor of the first
    other = _after(simulator, 31_250)
    assert np.array_equal(other.qpos, state.qpos) and np.array_equal(other.qvel, state.qvel)
    assert other.time == state.time

"""Case D06: the next state depends on the state and the input only, not on history.

The spheres of the case have no actuators: random velocities at the start take the place of random
forces, and a robot that stands on its feet is the scene with inputs.
"""

import numpy as np
import pytest

import revolute
import revolute_engine
from revolute import ModelHandle, Session, Simulator
from testbed.case_files import case_file, expected

SAVE, END = expected("D06")["save_at"], expected("D06")["end"]
SCENES = ("spheres", "laikago")


def _scene(simulator: Simulator, name: str) -> tuple[ModelHandle, np.ndarray, np.ndarray, np.ndarray]:
    """Return a model with start state and controls."""
    random = np.random.default_rng(6)
    if name == "spheres":
        model = simulator.load_model(case_file("D06", "spheres_8.xml"))
        return model, model.qpos0, random.normal(size=model.nv), np.zeros((END, 0))
    model = simulator.load_model("laikago")
    pose = revolute_engine.load_model("laikago").keyframes["home"]
    return model, pose, np.zeros(model.nv), pose[7:] + 0.1 * random.normal(size=(END, model.nu))


def _step(session: Session, ctrl: np.ndarray) -> revolute.State:
    for row in ctrl:
        state = session.step(row)
    return state


def _equal(one: revolute.State, other: revolute.State) -> bool:
    return np.array_equal(one.qpos, other.qpos) and np.array_equal(one.qvel, other.qvel)


@pytest.mark.parametrize("name", SCENES)
def test_a_restored_state_runs_on_bit_for_bit(simulator: Simulator, name: str) -> None:
    model, qpos, qvel, ctrl = _scene(simulator, name)
    with simulator.session(model) as session:
        session.reset(qpos, qvel)
        saved = _step(session, ctrl[:SAVE])
        end = _step(session, ctrl[SAVE:])
        assert not _equal(saved, end)
        # the same session
        session.reset(saved.qpos, saved.qvel)
        assert _equal(_step(session, ctrl[SAVE:]), end)
        # after something else
        session.reset()
        session.step(np.zeros(model.nu), steps=1000)
        session.reset(saved.qpos, saved.qvel)
        assert _equal(_step(session, ctrl[SAVE:]), end)
        # from the start, twice
        for _ in range(2):
            session.reset(qpos, qvel)
            assert _equal(_step(session, ctrl), end)
    with simulator.session(model) as session:
        session.reset(saved.qpos, saved.qvel)
        assert _equal(_step(session, ctrl[SAVE:]), end)
    # and a rollout is the same motion
    trajectory = simulator.rollout(model, saved.qpos[0], saved.qvel[0], ctrl[SAVE:])
    assert np.array_equal(trajectory.qpos[-1], end.qpos[0])
    assert np.array_equal(trajectory.qvel[-1], end.qvel[0])


@pytest.mark.parametrize("name", SCENES)
def test_transports_agree_on_states_and_gradients(simulators: dict[str, Simulator], name: str) -> None:
    results = []
    for simulator in simulators.values():
        model, qpos, qvel, ctrl = _scene(simulator, name)
        other = simulator.rollout(model, qpos, -qvel, ctrl[:10])
        trajectory = simulator.rollout(model, qpos, qvel, ctrl)
        other.backward(np.ones(other.qpos.shape))
        gradient = trajectory.backward(np.ones(trajectory.qpos.shape), np.ones(trajectory.qvel.shape))
        results.append([trajectory.qpos, trajectory.qvel, gradient.qpos, gradient.qvel, gradient.ctrl])
    for result in results[1:]:
        assert all(np.array_equal(*pair) for pair in zip(result, results[0], strict=True))

"""Case A05: the gradient of an orientation from exact rest.

A torque acts through an actuator on the joint. Its derivative follows also from that by the velocity: a
torque tau in step k changes the velocity after that step by h tau/I.
"""

import numpy as np
import pytest

from revolute_engine import Engine, load_model
from testbed.case_files import case_file, expected

FREE = case_file("A05", "rest_body.xml").read_text()
BALL = FREE.replace('<freejoint name="root"/>', '<joint name="root" type="ball"/>')
INERTIA = 0.02


def _quaternion_by_spin(text: str, spin: float, steps: int) -> np.ndarray:
    """Return d (w, x, y, z) of the final quaternion by the initial angular velocity about x."""
    model, engine = load_model(text), Engine(threads=1)
    qvel = np.zeros(model.nv)
    qvel[-3] = spin
    rollout = engine.rollout(model, model.qpos0, qvel, np.zeros((steps, 0)))
    bars = np.zeros((4, steps + 1, model.nq))
    bars[:, -1, -4:] = np.eye(4)
    gradient = engine.backward(model, rollout, bars)
    assert np.isfinite(gradient.qpos).all() and np.isfinite(gradient.qvel).all()
    return gradient.qvel[:, -3]


@pytest.mark.parametrize("text", [FREE, BALL], ids=["free", "ball"])
@pytest.mark.parametrize(("spin", "tolerance"), [(0.0, 1e-9), (1e-9, 1e-7)])
def test_derivatives_at_and_near_rest(text: str, spin: float, tolerance: float) -> None:
    numbers = expected("A05")
    by_spin = _quaternion_by_spin(text, spin, numbers["N"])
    assert np.abs(by_spin - [0, numbers["dqx_dwx0"], 0, 0]).max() < tolerance
    # the torque acts in every step; a step later there is one step less to turn
    by_torque = np.sum(
        [
            numbers["h"] / INERTIA * _quaternion_by_spin(text, spin, numbers["N"] - k)
            for k in range(numbers["N"])
        ],
        axis=0,
    )
    assert np.abs(by_torque - [0, numbers["dqx_dtau"], 0, 0]).max() < tolerance


@pytest.mark.parametrize(("text", "gear"), [(FREE, "0 0 0 1 0 0"), (BALL, "1 0 0")], ids=["free", "ball"])
def test_the_derivative_by_a_torque_about_x(text: str, gear: str) -> None:
    numbers = expected("A05")
    motor = f'<actuator><motor joint="root" gear="{gear}"/></actuator></mujoco>'
    model, engine = load_model(text.replace("</mujoco>", motor)), Engine(threads=1)
    rollout = engine.rollout(model, model.qpos0, np.zeros(model.nv), np.zeros((numbers["N"], 1)))
    bars = np.zeros((4, numbers["N"] + 1, model.nq))
    bars[:, -1, -4:] = np.eye(4)
    by_torque = engine.backward(model, rollout, bars).ctrl.sum(axis=(1, 2))
    assert np.abs(by_torque - [0, numbers["dqx_dtau"], 0, 0]).max() < 1e-9

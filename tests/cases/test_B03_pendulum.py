"""Case B03: a frictionless pendulum keeps its period, its amplitude and its energy."""

import numpy as np
import pytest

from revolute_engine import Engine, load_model
from testbed.case_files import case_file, expected

G = 9.81


def _swing(angle: float, h: float, seconds: float) -> tuple[np.ndarray, np.ndarray]:
    """Return angles from hanging and angular velocities of a swing from rest."""
    model = load_model(case_file("B03", "pendulum.xml"), timestep=h)
    rollout = Engine(threads=1).rollout(model, [angle], [0.0], np.zeros((round(seconds / h), 0)))
    return rollout.qpos[:, 0], rollout.qvel[:, 0]


def _period(angles: np.ndarray, h: float) -> float:
    """Return the mean period over ten swings, from interpolated downward crossings of zero."""
    down = np.flatnonzero((angles[:-1] > 0) & (angles[1:] <= 0))
    times = (down + angles[down] / (angles[down] - angles[down + 1])) * h
    return float((times[10] - times[0]) / 10)


@pytest.mark.parametrize("angle", [0.5, 2.5])
def test_period_amplitude_and_energy(angle: float) -> None:
    period = expected("B03")[f"T_{angle}"]
    period_errors, energy_errors = [], []
    for h in (1 / 240, 1 / 2400, 1 / 24000):
        angles, speeds = _swing(angle, h, 60)
        period_errors.append(abs(_period(angles, h) / period - 1))
        last = angles[-round(1.1 * period / h) :]
        assert abs(np.abs(last).max() / angle - 1) < 0.01
        energy = 0.5 * speeds**2 - G * np.cos(angles)
        energy_errors.append(float(np.abs(energy - energy[0]).max()))
        # no trend: the second half strays no further than the first
        half = len(energy) // 2
        first, second = np.abs(energy[:half] - energy[0]).max(), np.abs(energy[half:] - energy[0]).max()
        assert second < 1.02 * first
    print(angle, period_errors, energy_errors)
    assert period_errors[1] < 1e-3 and period_errors[2] < period_errors[1] < period_errors[0]
    assert energy_errors[1] < 0.12 * energy_errors[0] and energy_errors[2] < 0.12 * energy_errors[1]


def test_first_step() -> None:
    _, speeds = _swing(0.5, 1 / 2400, 1 / 2400)
    assert speeds[1] == pytest.approx(expected("B03")["w_step1"], rel=1e-8)

"""Case B10: bounce heights follow the coefficient of restitution, and no energy comes from nothing."""

import numpy as np
import pytest

from revolute.contract.errors import ArgumentError
from revolute_engine import Engine, Rollout, load_model
from testbed.case_files import case_file, expected

G, HEIGHT, RADIUS = 9.81, 10.0, 0.1


def _dropped(restitution: float, steps: int) -> Rollout:
    model = load_model(case_file("B10", "drop.xml"), restitution=restitution, contact_model="hard")
    return Engine(threads=1).rollout(model, model.qpos0, model.qvel0, np.zeros((steps, 0)))


@pytest.mark.parametrize(("restitution", "allowed"), [(1.0, 0.01), (0.5, 0.02)])
def test_apex_of_five_bounces_and_energy(restitution: float, allowed: float) -> None:
    numbers = expected("B10")
    rollout = _dropped(restitution, 17_000)
    height, speed = rollout.qpos[:, 2] - RADIUS, rollout.qvel[:, 2]
    apexes = height[:-1][(speed[:-1] > 0) & (speed[1:] <= 0)][:5]
    listed = numbers["apex"][f"{restitution:g}"]
    exact = HEIGHT * restitution ** (2 * np.arange(1, 6))
    assert np.allclose(exact[: len(listed)], listed)
    assert np.abs(apexes - exact).max() < allowed * HEIGHT
    # the scheme's own error is far smaller: a step's way is 14 mm
    assert np.abs(apexes - exact).max() < 2e-3
    hit = int(np.argmax((speed[:-1] < 0) & (speed[1:] > 0)))
    assert abs(hit * 1e-3 - numbers["t1"]) < 2e-3
    assert abs(speed[hit] + numbers["v_impact"]) < 0.02
    energy = 0.5 * speed**2 + G * height
    assert energy.max() < 1.01 * G * HEIGHT
    assert height.min() > -1e-3


def test_without_restitution_the_ball_stays_down() -> None:
    rollout = _dropped(0.0, 3000)
    height = rollout.qpos[:, 2] - RADIUS
    landed = int(np.argmax(height < 1e-3))
    assert 1400 < landed < 1450
    assert np.abs(height[landed + 1 :]).max() < 1e-3
    assert abs(height[-1]) < 1e-9 and abs(rollout.qvel[-1, 2]) < 1e-9


@pytest.mark.parametrize("restitution", [-0.1, 1.5, float("nan")])
def test_a_coefficient_out_of_range_is_refused(restitution: float) -> None:
    with pytest.raises(ArgumentError, match="restitution: expected a number from 0 to 1"):
        load_model(case_file("B10", "drop.xml"), restitution=restitution, contact_model="hard")

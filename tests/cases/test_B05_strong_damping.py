"""Case B05: strong joint damping damps, in both formats."""

import numpy as np
import pytest

from revolute_engine import Engine, load_model
from testbed.case_files import case_file, expected

H = 1 / 240
INERTIA = 0.001


@pytest.mark.parametrize("name", ["damped.xml", "damped.urdf"])
def test_strong_damping_never_grows_or_turns_round(name: str) -> None:
    model = load_model(case_file("B05", name), timestep=H)
    rollout = Engine(threads=1).rollout(model, [0.0], [10.0], np.zeros((240, model.nu)))
    speed = rollout.qvel[:, 0]
    assert (speed >= 0).all() and (np.diff(speed) <= 0).all()
    assert abs(speed[1] - expected("B05")["v1_implicit"]) < 1e-9
    steps = np.arange(21)
    assert np.allclose(speed[:21], 10 / (1 + H * 5 / INERTIA) ** steps, rtol=1e-12, atol=0)


@pytest.mark.parametrize("name", ["damped.xml", "damped.urdf"])
def test_weak_damping_is_implicit_too(name: str) -> None:
    text = case_file("B05", name).read_text().replace('damping="5"', 'damping="0.02"')
    model = load_model(text, timestep=H)
    rollout = Engine(threads=1).rollout(model, [0.0], [10.0], np.zeros((24, model.nu)))
    assert abs(rollout.qvel[-1, 0] - 1.464568) < 1e-6


def test_both_formats_give_the_same_bits() -> None:
    ends = []
    for name in ("damped.xml", "damped.urdf"):
        model = load_model(case_file("B05", name), timestep=H)
        ends.append(Engine(threads=1).rollout(model, [0.0], [10.0], np.zeros((24, model.nu))).qvel)
    assert np.array_equal(*ends)

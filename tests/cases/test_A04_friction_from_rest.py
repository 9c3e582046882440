"""Case A04: friction from exact rest: stick, slip, mu = 0 and the kink between stick and slip.

Graded: friction is Coulomb's, not regularised; at the kink the sled counts as sliding (dv/dF = N h/m).
"""

import numpy as np
import pytest

from revolute_engine import Engine, Gradient, load_model
from testbed.case_files import case_file, expected
from testbed.final_state import final_gradient

SLED = case_file("A04", "sled.xml").read_text()
WRT = ("qpos", "qvel", "ctrl", "geom_friction", "body_mass")


def _pushed(friction: float, force: float) -> tuple[float, float, Gradient]:
    """Return the final speed and place of the sled and the gradient of the speed."""
    text = SLED.replace('friction="0.5 0 0"', f'friction="{friction} 0 0"')
    model, engine = load_model(text, contact_model="hard"), Engine(threads=1)
    rollout = engine.rollout(model, model.qpos0, model.qvel0, np.full((expected("A04")["N"], 1), force))
    gradient = final_gradient(engine, model, rollout, qvel=0, wrt=WRT)
    assert all(np.isfinite(gradient[name]).all() for name in WRT)
    return float(rollout.qvel[-1, 0]), float(rollout.qpos[-1, 0]), gradient


@pytest.mark.parametrize("name", ["slip", "stick", "free"])
def test_speed_and_derivatives(name: str) -> None:
    numbers = expected("A04")[name]
    speed, place, gradient = _pushed(numbers["mu"], numbers["F"])
    assert abs(speed - numbers["v"]) < 1e-6
    if "x" in numbers:
        assert abs(place - numbers["x"]) < 1e-6
    assert abs(gradient.ctrl.sum() - numbers["dv_dF"]) < 1e-4
    assert abs(gradient.body_mass[-1] - numbers["dv_dm"]) < 1e-4
    if "dv_dmu" in numbers:
        # the same coefficient on both shapes
        assert abs(gradient.geom_friction.sum() - numbers["dv_dmu"]) < 1e-4


def test_friction_of_zero_has_the_derivative_of_its_one_side() -> None:
    numbers = expected("A04")
    *_, gradient = _pushed(0.0, numbers["free"]["F"])
    assert abs(gradient.geom_friction.sum() - numbers["slip"]["dv_dmu"]) < 1e-4
    *_, pulled = _pushed(0.0, -numbers["free"]["F"])
    assert abs(pulled.geom_friction.sum() + numbers["slip"]["dv_dmu"]) < 1e-4


def test_a_sled_that_sticks_does_not_creep() -> None:
    speed, place, _ = _pushed(0.5, 5.0)
    assert abs(speed) < 1e-12 and abs(place) < 1e-12


def test_the_kink_between_stick_and_slip_is_one_of_its_sides() -> None:
    _, _, gradient = _pushed(0.5, 9.81)
    assert 0 <= gradient.ctrl.sum() <= 0.05 + 1e-4

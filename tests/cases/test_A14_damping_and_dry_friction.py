"""Case A14: derivatives by joint damping and dry friction.

Graded: damping is implicit (docs/conventions.md), dry friction is Coulomb's, not smoothed.
"""

import numpy as np
import pytest

from revolute_engine import Engine, load_model
from testbed.case_files import case_file, expected
from testbed.final_state import final_gradient

WHEEL = case_file("A14", "wheel.xml").read_text()
DRY = WHEEL.replace('damping="0.2" frictionloss="0"', 'damping="0" frictionloss="0.1"')
STEPS = 50


def test_derivative_by_damping() -> None:
    numbers = expected("A14")["implicit"]
    model, engine = load_model(WHEEL), Engine(threads=1)
    rollout = engine.rollout(model, [0.0], [3.0], np.zeros((STEPS, 0)))
    gradient = final_gradient(engine, model, rollout, qvel=0, wrt=["dof_damping"])
    assert abs(rollout.qvel[-1, 0] - numbers["v"]) < 1e-9
    assert abs(gradient["dof_damping"][0] - numbers["dv_dd"]) < 1e-9


@pytest.mark.parametrize("direction", [1, -1])
@pytest.mark.parametrize("given_as", ["model", "parameter"])
def test_derivative_by_dry_friction_while_sliding(direction: int, given_as: str) -> None:
    numbers = expected("A14")["dry"]
    # the file of the case has no dry friction: given as a parameter it acts all the same
    model, engine = load_model(DRY if given_as == "model" else WHEEL), Engine(threads=1)
    params = {} if given_as == "model" else {"dof_frictionloss": [0.1], "dof_damping": [0.0]}
    rollout = engine.rollout(model, [0.0], [3.0 * direction], np.zeros((STEPS, 0)), params=params)
    gradient = final_gradient(engine, model, rollout, qvel=0, wrt=["dof_frictionloss", "qvel"])
    assert abs(rollout.qvel[-1, 0] - direction * numbers["v"]) < 1e-6
    assert abs(gradient["dof_frictionloss"][0] - direction * numbers["dv_df"]) < 1e-6
    assert abs(gradient.qvel[0] - numbers["dv_dv0"]) < 1e-6


def test_a_wheel_at_rest_stays_with_derivatives_of_zero() -> None:
    model, engine = load_model(DRY, contact_model="hard"), Engine(threads=1)
    rollout = engine.rollout(model, [0.0], [0.0], np.zeros((STEPS, 0)))
    names = ["qvel", "dof_frictionloss", "dof_damping"]
    gradient = final_gradient(engine, model, rollout, qvel=0, wrt=names)
    assert rollout.qvel[-1, 0] == 0
    assert all(gradient[name].item() == 0 for name in names)


def test_the_gradient_is_finite_until_after_the_wheel_has_stopped() -> None:
    model, engine = load_model(DRY), Engine(threads=1)
    rollout = engine.rollout(model, [0.0], [3.0], np.zeros((400, 0)))
    assert abs(rollout.qvel[-1, 0]) < 1e-12
    names = ["qpos", "qvel", "dof_frictionloss", "dof_damping"]
    gradient = final_gradient(engine, model, rollout, qpos=0, wrt=names)
    assert all(np.isfinite(gradient[name]).all() for name in names)

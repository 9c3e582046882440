"""Case F07: a pinched object holds at the statical grip and does not start to turn."""

import numpy as np
import pytest

from revolute_engine import Engine, Rollout, load_model
from testbed.case_files import case_file, expected

NUMBERS = expected("F07")
SHAPES = ("box", "capsule", "pair", "pair_swapped")
LIFT, THING_Z, SPIN_X = 0, 6, 7


def _grip(shape: str, factor: float, **options: object) -> Rollout:
    """Return the motion: squeezed for 1 s, then held with `factor` times the statical grip."""
    model = load_model(case_file("F07", f"grip_{shape}.xml").read_text(), **options)
    first, then = NUMBERS["steps"]
    grip = np.r_[np.full(first, NUMBERS["grip_first"]), np.full(then, factor * NUMBERS["N0"])]
    ctrl = np.stack([np.full(len(grip), NUMBERS["lift"]), np.zeros(len(grip)), grip, grip], axis=1)
    return Engine(threads=1).rollout(model, model.qpos0, model.qvel0, ctrl)


@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize("cone", ["elliptic", "pyramidal"])
def test_it_holds_and_slips_as_in_mujoco(cone: str, shape: str) -> None:
    theirs = NUMBERS["mujoco"][cone][shape]
    first = NUMBERS["steps"][0]
    held = _grip(shape, 1.03, contact_model="mujoco", cone=cone)
    below = held.qpos[:, LIFT] - held.qpos[:, THING_Z]
    assert below[-1] - below[first] == pytest.approx(theirs["slip_1s_m"], rel=0.02)
    assert np.abs(held.qvel[:, SPIN_X]).max() < 1e-9
    slipping = _grip(shape, 0.90, contact_model="mujoco", cone=cone)
    lost = slipping.qpos[:, LIFT] - slipping.qpos[:, THING_Z]
    assert lost[first + 250] - lost[first] > 0.03  # in half a second


@pytest.mark.parametrize("cone", ["elliptic", "pyramidal"])
def test_the_order_of_equal_shapes_changes_nothing(cone: str) -> None:
    first, second = (_grip(shape, 1.03, contact_model="mujoco", cone=cone) for shape in SHAPES[2:])
    assert np.abs(first.qvel - second.qvel).max() < 1e-9


@pytest.mark.parametrize("iterations", [50, 500])
@pytest.mark.parametrize("shape", SHAPES)
def test_the_hard_model_holds_and_slips_by_coulombs_law(shape: str, iterations: int) -> None:
    options = {"contact_model": "hard", "iterations": iterations}
    held = _grip(shape, 1.03, **options)
    assert np.abs(held.qvel[:, SPIN_X]).max() < 1e-6
    assert abs(held.qvel[-1, LIFT] - held.qvel[-1, THING_Z]) < 1e-9
    slipping = _grip(shape, 0.90, **options)
    slip = slipping.qvel[:, LIFT] - slipping.qvel[:, THING_Z]
    first, then = NUMBERS["steps"][0] + 10, NUMBERS["steps"][0] + 60  # before it leaves the pads
    acceleration = (slip[then] - slip[first]) / (50 * 2e-3)
    assert acceleration == pytest.approx(NUMBERS["coulomb"]["a_090"], abs=0.05)


def test_the_order_of_equal_shapes_changes_nothing_in_the_hard_model() -> None:
    first, second = (_grip(shape, 1.03, contact_model="hard") for shape in SHAPES[2:])
    assert np.abs(first.qvel - second.qvel).max() < 1e-9

"""Case T01: a sideways force moves a block that is kept sliding at once."""

import numpy as np
import pytest

from revolute_engine import Engine, load_model
from testbed.case_files import case_file, expected
from testbed.final_state import final_gradient

PUCK = case_file("T01", "puck.xml").read_text()
NUMBERS = expected("T01")
WEIGHT, STEPS = 9.81, 300


def _slide(share: float, **options: object) -> tuple[float, float]:
    """Return the way across after 0.3 s, and its derivative by the sideways force."""
    model, engine = load_model(PUCK, **options), Engine(threads=1)
    friction = NUMBERS["mu"] * WEIGHT
    ctrl = np.tile([friction, share * friction], (STEPS, 1))
    rollout = engine.rollout(model, model.qpos0, [2.0, 0.0, 0.0], ctrl)
    gradient = final_gradient(engine, model, rollout, qpos=1, wrt=["ctrl"])
    return rollout.qpos[-1, 1], gradient.ctrl[:, 1].sum()


@pytest.mark.parametrize("cone", ["elliptic", "pyramidal"])
@pytest.mark.parametrize("number", range(4))
def test_the_way_is_mujocos(cone: str, number: int) -> None:
    share = NUMBERS["s"][number]
    way, derivative = _slide(share, contact_model="mujoco", cone=cone)
    assert way == pytest.approx(NUMBERS["mujoco"][cone][number], rel=1e-3)
    step = 1e-4 / (NUMBERS["mu"] * WEIGHT)
    ends = [_slide(share + sign * step, contact_model="mujoco", cone=cone)[0] for sign in (1, -1)]
    assert derivative == pytest.approx((ends[0] - ends[1]) / 2e-4, rel=1e-4)
    assert derivative > 0.03


@pytest.mark.parametrize("number", range(4))
def test_the_way_is_near_coulombs(number: int) -> None:
    way, derivative = _slide(NUMBERS["s"][number], contact_model="mujoco", cone="elliptic")
    assert way == pytest.approx(NUMBERS["coulomb"]["y"][number], rel=0.03)
    assert derivative == pytest.approx(NUMBERS["coulomb"]["dy_dforce"][number], rel=0.12)


@pytest.mark.parametrize("number", range(4))
def test_the_hard_model_has_coulombs_way(number: int) -> None:
    way, derivative = _slide(NUMBERS["s"][number], contact_model="hard")
    assert way == pytest.approx(NUMBERS["coulomb"]["y"][number], rel=5e-3)
    assert derivative == pytest.approx(NUMBERS["coulomb"]["dy_dforce"][number], rel=5e-3)

"""Case F10: a sliding block has no grip left sideways, and stops alike in every direction."""

import numpy as np
import pytest

from revolute_engine import Engine, Model, load_model
from testbed.case_files import case_file, expected, with_option
from testbed.final_state import final_gradient

NUMBERS = expected("F10")
BLOCK = with_option(case_file("F10", "block.xml").read_text(), impratio=NUMBERS["mujoco"]["impratio"])
ANGLES = (0, 15, 30, 45)


def _model(cone: str) -> Model:
    return load_model(BLOCK, contact_model="mujoco", cone=cone)


@pytest.mark.parametrize("cone", ["elliptic", "pyramidal"])
def test_a_push_across_the_slide(cone: str) -> None:
    model, engine = _model(cone), Engine(threads=1)
    ctrl = np.tile(NUMBERS["force"], (1000, 1))
    rollout = engine.rollout(model, model.qpos0, [NUMBERS["v0"], 0.0, 0.0], ctrl)
    gradient = final_gradient(engine, model, rollout, qvel=1, wrt=["ctrl"])
    # single values scatter: 0.02 for the elliptic cone
    assert rollout.qvel[-1, :2] == pytest.approx(NUMBERS["mujoco"][cone]["v"], abs=0.03)
    assert gradient.ctrl[:, 1].sum() != 0
    if cone == "elliptic":
        assert rollout.qvel[-1, 1] == pytest.approx(NUMBERS["coulomb"]["v"][1], rel=0.05)


@pytest.mark.parametrize("cone", ["elliptic", "pyramidal"])
@pytest.mark.parametrize("number", range(4))
def test_a_throw_stops_where_its_cone_says(cone: str, number: int) -> None:
    model, angle = _model(cone), np.radians(ANGLES[number])
    start = NUMBERS["v0"] * np.array([np.cos(angle), np.sin(angle), 0.0])
    rollout = Engine(threads=1).rollout(model, model.qpos0, start, np.zeros((1000, 2)))
    way = rollout.qpos[-1, :2] - rollout.qpos[0, :2]
    assert np.hypot(*way) == pytest.approx(NUMBERS["mujoco"][cone]["ways"][number], rel=2e-3)
    off = np.degrees(np.arctan2(way[1], way[0]) - angle)
    assert off == pytest.approx(NUMBERS["mujoco"][cone]["angle_off_deg"][number], abs=0.05)


def test_a_push_across_the_slide_by_coulombs_law() -> None:
    model, engine = load_model(BLOCK, contact_model="hard"), Engine(threads=1)
    ctrl = np.tile(NUMBERS["force"], (1000, 1))
    rollout = engine.rollout(model, model.qpos0, [NUMBERS["v0"], 0.0, 0.0], ctrl)
    gradient = final_gradient(engine, model, rollout, qvel=1, wrt=["ctrl"])
    assert rollout.qvel[-1, :2] == pytest.approx(NUMBERS["coulomb"]["v"], rel=1e-3)
    assert gradient.ctrl[:, 1].sum() == pytest.approx(NUMBERS["coulomb"]["d_vy_d_push"], rel=1e-3)


@pytest.mark.parametrize("degrees", ANGLES)
def test_a_throw_stops_alike_in_every_direction(degrees: int) -> None:
    model, angle = load_model(BLOCK, contact_model="hard"), np.radians(degrees)
    start = NUMBERS["v0"] * np.array([np.cos(angle), np.sin(angle), 0.0])
    rollout = Engine(threads=1).rollout(model, model.qpos0, start, np.zeros((1000, 2)))
    way = rollout.qpos[-1, :2] - rollout.qpos[0, :2]
    assert np.hypot(*way) == pytest.approx(NUMBERS["coulomb"]["way"], rel=5e-3)  # h v0/2 less
    assert np.degrees(np.arctan2(way[1], way[0]) - angle) == pytest.approx(0, abs=1e-6)

"""Case T03: a ball that passes an edge is not turned off by it."""

import numpy as np
import pytest

from revolute_engine import Engine, Rollout, load_model
from testbed.case_files import case_file, expected
from testbed.final_state import final_gradient

NUMBERS = expected("T03")
EDGE = case_file("T03", "edge.xml").read_text()
H = NUMBERS["h"]


def _fly(speed: float, clearance: float, **options: object) -> tuple[Rollout, float]:
    """Return the flights of all phases, and the derivative of the first one's last vz by vz at the start."""
    model, engine = load_model(EDGE, **options), Engine(threads=1)
    phases = np.arange(NUMBERS["phases"]) / NUMBERS["phases"]
    qpos = np.stack([-phases * speed * H, np.full(len(phases), clearance)], axis=1)
    qvel = np.tile([speed, 0.0], (len(phases), 1))
    ctrl = np.zeros((len(phases), int(np.ceil(1.0 / (speed * H))), 0))
    rollout = engine.rollout(model, qpos, qvel, ctrl)
    one = engine.rollout(model, qpos[0], qvel[0], ctrl[0])
    return rollout, final_gradient(engine, model, one, qvel=1, wrt=["qvel"]).qvel[1]


@pytest.mark.parametrize("speed", NUMBERS["v"])
@pytest.mark.parametrize("clearance", NUMBERS["c"])
def test_what_passes_by_is_not_deflected(speed: float, clearance: float) -> None:
    rollout, derivative = _fly(speed, clearance, contact_model="mujoco")
    assert (rollout.qvel[:, -1] == [speed, 0.0]).all()
    assert derivative == 1.0


@pytest.mark.parametrize("number", range(2))
def test_what_hits_the_edge_is_turned_up(number: int) -> None:
    rollout, _ = _fly(NUMBERS["hit"]["v"][number], NUMBERS["hit"]["c"], contact_model="mujoco")
    deflection = np.degrees(np.arctan2(rollout.qvel[:, -1, 1], rollout.qvel[:, -1, 0]))
    low, high = NUMBERS["hit"]["mujoco"]["deflection_deg"][number]
    assert (deflection > low - 0.1).all() and (deflection < high + 0.1).all()


@pytest.mark.parametrize("speed", NUMBERS["v"])
@pytest.mark.parametrize("clearance", NUMBERS["c"])
def test_the_hard_model_does_not_deflect_what_passes_by(speed: float, clearance: float) -> None:
    rollout, derivative = _fly(speed, clearance, contact_model="hard")
    assert (rollout.qvel[:, -1] == [speed, 0.0]).all()
    assert derivative == 1.0


@pytest.mark.parametrize("speed", NUMBERS["hit"]["v"])
def test_the_hard_model_turns_up_what_hits_the_edge(speed: float) -> None:
    rollout, _ = _fly(speed, NUMBERS["hit"]["c"], contact_model="hard")
    assert (rollout.qvel[:, -1, 1] > 0).all()

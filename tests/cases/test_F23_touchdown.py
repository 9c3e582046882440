"""Case F23: gradients through the touchdown of a turning rod and a spinning ball."""

import json
from typing import Any

import numpy as np
import pytest

from revolute_engine import Engine, load_model
from testbed.case_files import case_file, expected, with_option
from testbed.final_state import final_gradient

NUMBERS = expected("F23")


def _key(case: dict[str, Any]) -> str:
    return json.dumps(case)[:60]


@pytest.mark.parametrize("case", NUMBERS["rod"]["cases"], ids=_key)
@pytest.mark.parametrize("timestep", [1e-3, 2.5e-4])
def test_a_turning_rod_lands(timestep: float, case: dict[str, Any]) -> None:
    rod, engine = NUMBERS["rod"], Engine(threads=1)
    text = with_option(case_file("F23", "rod.xml").read_text(), timestep=timestep)
    model = load_model(text, contact_model="hard", restitution=case["e"])
    start = [0, case["z0"] - 0.4, case["a0"]], [0, rod["v"], case["spin"]]
    rollout = engine.rollout(model, *start, np.zeros((int(case["t"] / timestep) + 3, 0)))
    v, w = rollout.qvel[-1, 1:]
    assert [v, w] == pytest.approx([case["v"], case["w"]], abs=10 * timestep * abs(rod["v"]))
    for entry, derivative in ((1, case["dv"]), (2, case["dw"])):
        gradient = final_gradient(engine, model, rollout, qvel=entry, wrt=["qpos"])
        assert gradient.qpos[1] == pytest.approx(derivative, rel=0.01)


def _ball_file(case: dict[str, Any]) -> str:
    return case_file("F23", "ball_slip.xml" if case["mu"] < 0.5 else "ball_grip.xml").read_text()


@pytest.mark.parametrize("case", NUMBERS["ball"]["cases"], ids=_key)
@pytest.mark.parametrize("timestep", [2e-3, 1e-3, 2.5e-4])
def test_a_spinning_ball_lands(timestep: float, case: dict[str, Any]) -> None:
    ball, engine = NUMBERS["ball"], Engine(threads=1)
    model = load_model(
        with_option(_ball_file(case), timestep=timestep), contact_model="hard", restitution=case["e"]
    )
    for z in ball["z"]:
        start = [0, 0, z, 1, 0, 0, 0], [case["vx"], 0, ball["vz"], 0, case["wy"], 0]
        steps = int((z - ball["r"]) / -ball["vz"] / timestep) + 3
        rollout = engine.rollout(model, *start, np.zeros((steps, 0)))
        after = rollout.qvel[-1, [0, 2, 4]] * [1, 1, ball["r"]]
        wanted = [case["vx_after"], case["vz_after"], case["wy_after"] * ball["r"]]
        assert after == pytest.approx(wanted, abs=10 * timestep * abs(ball["vz"]))
        for entry, derivative in ((0, case["d_vx"]), (4, case["d_wy"])):
            gradient = final_gradient(engine, model, rollout, qvel=entry, wrt=["qvel"]).qvel[2]
            size = ball["r"] if entry == 4 else 1.0
            assert gradient * size == pytest.approx(derivative * size, abs=0.05)

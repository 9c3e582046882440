"""docs/models.md says of every built-in model what the model is."""

from __future__ import annotations

import re
from fractions import Fraction
from pathlib import Path

import numpy as np
import pytest

from revolute_engine import Model, load_model, models

PAGE = (Path(__file__).parents[2] / "docs/models.md").read_text(encoding="utf-8")
ROWS = {
    cells[0]: cells[1:]
    for line in PAGE.splitlines()
    if line.startswith("| `") and (cells := [cell.strip() for cell in line.strip("|").split("|")])
}


def _row(name: str) -> list[str]:
    return ROWS["`pendulum1` … `pendulum7`" if name.startswith("pendulum") else f"`{name}`"]


def test_each_model_has_its_row() -> None:
    assert len(ROWS) == 5
    for name in models():
        assert _row(name)


@pytest.mark.parametrize("name", models())
def test_sizes_time_step_and_keyframes(name: str) -> None:
    model, row = load_model(name), _row(name)
    sizes = row[0].replace("n", name[-1])
    assert sizes == f"{model.nq}, {model.nv}, {model.nu}"
    assert float(Fraction(row[5])) == model.timestep
    assert re.findall(r"`(\w+)`", row[6]) == list(model.keyframes)


@pytest.mark.parametrize("name", models())
def test_actuators_and_their_ranges(name: str) -> None:
    model, row = load_model(name), _row(name)
    (factor,) = re.findall(r"= (\d+) \(?ctrl", row[2])
    gain = model.arrays["act_gain"].reshape(model.nu, -1)[:, 0] * model.arrays["act_gear"]
    assert (gain == float(factor)).all()
    assert ("servos" in row[2]) == bool(model.arrays["act_bias"].any())
    ends = [float(end) for end in row[3].split(" … ")] if row[3] != "none" else [-np.inf, np.inf]
    assert (model.ctrlrange == ends).all()
    assert not model.arrays["act_forcelimited"].any()


@pytest.mark.parametrize("name", models())
def test_joint_limits(name: str) -> None:
    model = load_model(name)
    limited = model.arrays["jnt_limited"].astype(bool)
    limits = {tuple(np.round(row, 9)) for row in model.arrays["jnt_range"][limited]}
    hip, ankle = np.deg2rad([-30, 30]), np.deg2rad([30, 70])
    expected = {"ant": {tuple(np.round(hip, 9)), tuple(np.round(ankle, 9))}, "cartpole": {(-2.0, 2.0)}}
    assert limits == expected.get(name, set())
    assert (_row(name)[4] == "none") == (not limits)


def _height(model: Model) -> float:
    return float(model.qpos0[2])


def test_zero_poses() -> None:
    assert _height(load_model("ant")) == 0.75
    for name in models():
        model = load_model(name)
        base = 7 if model.joint_types[0] == "free" else 0
        assert not model.qpos0[base:].any()

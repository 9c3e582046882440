"""The built-in models are what docs/models.md says of them."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from revolute_engine import load_model, models

INF = np.inf
# name: nq, nv, nu, time step, control range, d force / d ctrl, keyframes
TABLE: dict[str, tuple[Any, ...]] = {
    "laikago": (19, 18, 12, 0.002, [-INF, INF], 220, ["home"]),
    "laikago_torque": (19, 18, 12, 0.002, [-100, 100], 1, ["home"]),
    "ant": (15, 14, 8, 0.01, [-1, 1], 150, ["home"]),
    "cartpole": (2, 2, 1, 0.01, [-20, 20], 1, ["home", "hanging"]),
    **{f"pendulum{n}": (n, n, n, 1 / 60, [-1, 1], 10, []) for n in range(1, 8)},
}


def test_the_table_has_every_model() -> None:
    assert set(TABLE) == set(models())


@pytest.mark.parametrize("name", TABLE)
def test_sizes_time_step_actuators_and_keyframes(name: str) -> None:
    model = load_model(name)
    nq, nv, nu, timestep, ctrlrange, force, keyframes = TABLE[name]
    assert (model.nq, model.nv, model.nu, model.timestep) == (nq, nv, nu, timestep)
    assert list(model.keyframes) == keyframes
    assert (model.ctrlrange == ctrlrange).all()
    gain = model.arrays["act_gain"].reshape(nu, -1)[:, 0] * model.arrays["act_gear"]
    assert (gain == force).all()
    assert model.arrays["act_bias"].any() == (name == "laikago")
    assert not model.arrays["act_forcelimited"].any()


@pytest.mark.parametrize("name", TABLE)
def test_joint_limits(name: str) -> None:
    model = load_model(name)
    limited = model.arrays["jnt_limited"].astype(bool)
    limits = {tuple(np.round(row, 9)) for row in model.arrays["jnt_range"][limited]}
    hip, ankle = np.deg2rad([-30, 30]), np.deg2rad([30, 70])
    expected = {"ant": {tuple(np.round(hip, 9)), tuple(np.round(ankle, 9))}, "cartpole": {(-2.0, 2.0)}}
    assert limits == expected.get(name, set())


@pytest.mark.parametrize("name", TABLE)
def test_zero_poses(name: str) -> None:
    model = load_model(name)
    base = 7 if model.joint_types[0] == "free" else 0
    assert not model.qpos0[base:].any()
    assert name != "ant" or model.qpos0[2] == 0.75

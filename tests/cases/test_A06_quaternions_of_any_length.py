"""Case A06: the gradient by a quaternion that is not of unit length.

The engine normalises on entry, so that the orientation of a later state has a gradient that is half as large
at 2u as at u, and none along q. A term of the start itself is one of the numbers that were given.
"""

from __future__ import annotations

import numpy as np
import pytest

from revolute import Loss, Term
from revolute_engine import Engine, load_model
from testbed.case_files import case_file, expected

FREE = case_file("A06", "rest_body.xml").read_text()
BALL = FREE.replace('<freejoint name="root"/>', '<joint name="root" type="ball"/>')
POINT = np.array([0.3, -0.2, 0.5])
WEIGHT = np.array([0.3, -0.7, 0.5, 0.2])
TARGET = np.array([0.1, 0.2, 0.3, 0.4])
STEP = 1e-6
DIFFERENCED = 1e-8
"""Central differences of numbers near 1 with steps of 1e-6: rounding divided by the step, with room."""


def _height(q: np.ndarray) -> tuple[float, np.ndarray]:
    """Return the height of the point with orientation q, of unit length, and its gradient by q."""
    w, x, y, z = q
    value = (
        2 * (x * z - w * y) * POINT[0]
        + 2 * (y * z + w * x) * POINT[1]
        + (w * w - x * x - y * y + z * z) * POINT[2]
    )
    by_q = 2 * np.array(
        [
            -y * POINT[0] + x * POINT[1] + w * POINT[2],
            z * POINT[0] + w * POINT[1] - x * POINT[2],
            -w * POINT[0] + z * POINT[1] - y * POINT[2],
            x * POINT[0] + y * POINT[1] + z * POINT[2],
        ]
    )
    return float(value), by_q


@pytest.mark.parametrize("text", [FREE, BALL], ids=["free", "ball"])
def test_a_later_height(text: str) -> None:
    numbers, model, engine = expected("A06"), load_model(text), Engine(threads=1)
    unit = np.array(numbers["unit_q"])
    for length, wanted in ((1.0, numbers["grad_unit"]), (2.0, numbers["grad_at_2u"])):
        qpos = np.concatenate([np.zeros(model.nq - 4), length * unit])
        rollout = engine.rollout(model, qpos, model.qvel0, np.zeros((1, 0)))
        value, by_q = _height(rollout.qpos[1, -4:])
        assert value == pytest.approx(numbers["f_unit"], abs=1e-9)
        bars = np.zeros((2, model.nq))
        bars[1, -4:] = by_q
        gradient = engine.backward(model, rollout, bars).qpos[-4:]
        assert np.abs(gradient - wanted).max() < 1e-9
        assert abs(gradient @ unit) < 1e-12


@pytest.mark.parametrize("text", [FREE, BALL], ids=["free", "ball"])
@pytest.mark.parametrize("form", ["linear", "squared"])
@pytest.mark.parametrize("when", ["running", "final"])
@pytest.mark.parametrize("length", [0.5, 1.0, 2.0])
def test_terms_of_all_times_agree_with_differences(text: str, form: str, when: str, length: float) -> None:
    model, engine = load_model(text), Engine(threads=1)
    unit = np.array(expected("A06")["unit_q"])
    index = list(range(model.nq - 4, model.nq))
    loss = Loss([Term("qpos", weight=WEIGHT, target=TARGET, when=when, form=form, index=index)])
    qvel = np.zeros(model.nv)
    qvel[-3:] = [0.3, 0.5, -0.2]

    def evaluate(q: np.ndarray) -> tuple[float, np.ndarray]:
        qpos = np.concatenate([np.zeros(model.nq - 4), q])
        value, gradient = engine.value_and_gradient(model, qpos, qvel, np.zeros((3, 0)), loss)
        return float(value), gradient.qpos[-4:]

    gradient = evaluate(length * unit)[1]
    assert abs(gradient @ unit) < 1e-12
    for direction in np.linalg.svd(unit[None])[2][1:]:  # across q
        ahead, behind = (evaluate(length * unit + sign * STEP * direction)[0] for sign in (1, -1))
        assert gradient @ direction == pytest.approx((ahead - behind) / (2 * STEP), abs=DIFFERENCED)


def test_cotangents_of_the_start_are_projected_whatever_its_length() -> None:
    model, engine = load_model(BALL), Engine(threads=1)
    unit = np.array(expected("A06")["unit_q"])
    for length in (0.5, 1.0, 2.0):
        rollout = engine.rollout(model, length * unit, model.qvel0, np.zeros((2, 0)))
        bars = np.zeros((3, 4))
        bars[0] = WEIGHT
        gradient = engine.backward(model, rollout, bars).qpos
        assert np.abs(gradient - (WEIGHT - (WEIGHT @ unit) * unit)).max() < 1e-14

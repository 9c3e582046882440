"""Derivatives that leave the finite numbers say so, and lengths beyond any memory are refused."""

from __future__ import annotations

import numpy as np
import pytest

from revolute.contract.errors import ArgumentError, DivergedError, LimitError
from revolute.contract.loss import Loss, Term
from revolute_engine import Engine, load_model

BALANCED = """<mujoco><option timestep="0.01"/><worldbody><body>
  <joint name="j" axis="0 1 0"/><geom type="capsule" size="0.02" fromto="0 0 0 0 0 0.5"/>
</body></worldbody><actuator><motor joint="j"/></actuator></mujoco>"""
STEPS = 20000
"""Of a pendulum on its point: the state stays exactly at rest, its derivative grows e-fold in every 0.2 s."""


def _last_position(qpos: np.ndarray) -> np.ndarray:
    bar = np.zeros_like(qpos)
    bar[..., -1, :] = 1.0
    return bar


def test_a_gradient_that_overflows_is_a_status_and_leaves_its_neighbours() -> None:
    engine, model = Engine(threads=1), load_model(BALANCED)
    rollout = engine.rollout(model, [[0.0], [0.1]], np.zeros((2, 1)), np.zeros((2, STEPS, 1)))
    gradient = engine.backward(
        model, rollout, _last_position(rollout.qpos), wrt=("qpos", "ctrl", "body_mass")
    )
    assert rollout.status.tolist() == [0, 0]
    assert gradient.status.tolist() == [2, 0]
    assert np.isnan(gradient.qpos[0]).all() and np.isnan(gradient.ctrl[0]).all()
    alone = engine.rollout(model, [0.1], [0.0], np.zeros((STEPS, 1)))
    expected = engine.backward(model, alone, _last_position(alone.qpos), wrt=("qpos", "body_mass"))
    np.testing.assert_array_equal(gradient.qpos[1], expected.qpos)
    np.testing.assert_array_equal(gradient.body_mass, expected.body_mass)


def test_derivatives_that_overflow_everywhere_are_an_error() -> None:
    engine, model = Engine(threads=1), load_model(BALANCED)
    rollout = engine.rollout(model, [0.0], [0.0], np.zeros((STEPS, 1)))
    with pytest.raises(DivergedError, match=r"^backward: expected finite derivatives"):
        engine.backward(model, rollout, _last_position(rollout.qpos))
    with pytest.raises(DivergedError, match=r"^jvp: expected finite derivatives"):
        engine.jvp(model, rollout, qpos_tan=[1.0])


def test_a_loss_that_overflows_is_refused() -> None:
    engine, model = Engine(threads=1), load_model(BALANCED)
    loss = Loss([Term("ctrl", weight=1e308, target=1e300)])
    with pytest.raises(
        ArgumentError, match=r"^loss: expected a value and derivatives within float64, got inf"
    ):
        engine.value_and_gradient(model, [0.0], [0.0], np.zeros((3, 1)), loss)


@pytest.mark.parametrize("steps", [2**32 + 5, 10**13, 10**18])
def test_lengths_beyond_any_memory_are_refused(steps: int) -> None:
    passive = load_model(BALANCED.replace('<actuator><motor joint="j"/></actuator>', ""))
    with pytest.raises(LimitError, match=rf"^ctrl: .* got 1 environments of {steps} steps"):
        Engine(threads=1).rollout(passive, [0.0], [0.0], np.zeros((1, steps, 0)))

"""Contact from a distance: a derivative where shapes are near each other but do not touch."""

from __future__ import annotations

import re

import numpy as np
import pytest

from revolute.contract.errors import ArgumentError
from revolute.contract.loss import Loss, Term
from revolute_engine import Engine, load_model

PUSH = """<mujoco><option timestep="0.005" gravity="0 0 0" {option}/><worldbody>
  <geom name="far" type="plane" pos="0 0 -5" size="0 0 1"/>
  <body><joint name="pusher" type="slide" axis="1 0 0" damping="1"/>
    <geom type="box" size="0.05 0.1 0.1" mass="1"/></body>
  <body pos="0.3 0 0"><joint type="slide" axis="1 0 0" damping="0.5"/>
    <geom size="0.1" mass="0.5" margin="0.01"/></body>
</worldbody><actuator><motor joint="pusher"/></actuator></mujoco>"""
"""A pusher 0.15 m in front of a ball; both move along x."""
GAP, MARGIN, TIMESTEP = 0.15, 0.01, 0.005
FROM = "contact_from_distance=0.3"
BALL = np.array([[0.0, 1.0]])
"""The derivative of the ball's place by itself."""


def test_one_step_answers_as_the_formula_says() -> None:
    distance, own = 0.3, PUSH.format(option="").replace('damping="1"', "").replace('damping="0.5"', "")
    model, engine = load_model(own), Engine(threads=1)
    rollout = engine.rollout(model, [0.0, 0.0], [0.2, 0.0], np.zeros((1, 1)))
    found = engine.backward(
        model, rollout, qvel_bar=BALL, times=[1], gradient=f"contact_from_distance={distance}"
    )
    compiled = model.mujoco_model
    weight = compiled.body_invweight0[1:, 0].sum()
    d0, dmax, *_ = compiled.geom_solimp[1]
    time = compiled.geom_solref[1, 0]
    stiffness, damping = 1 / (dmax * time) ** 2, 2 / (dmax * time)
    share = 1 - (GAP - MARGIN) / distance
    strength = d0 * share**2 / weight
    push = TIMESTEP / 0.5 * strength
    np.testing.assert_allclose(found.qpos, [push * stiffness, -push * stiffness], rtol=1e-12)
    np.testing.assert_allclose(found.qvel, [push * damping, 1 - push * damping], rtol=1e-12)


def test_the_exact_gradient_is_blind_there_and_keeps_its_bits() -> None:
    model, engine = load_model(PUSH.format(option="")), Engine(threads=1)
    rollout = engine.rollout(model, [0.0, 0.0], [0.0, 0.0], np.full((40, 1), 0.2))
    before = engine.backward(model, rollout, BALL, times=[-1])
    assert before.method == "exact" and not before.ctrl.any() and before.qpos[0] == 0
    seeing = engine.backward(model, rollout, BALL, times=[-1], gradient=FROM)
    assert seeing.method == FROM and (seeing.ctrl[:-1] > 0).all() and seeing.qpos[0] > 0
    # a gap of 0.14 m beyond the margin is out of reach by default
    near = engine.backward(model, rollout, BALL, times=[-1], gradient="contact_from_distance")
    assert near.method == "contact_from_distance=0.1" and not near.ctrl.any()
    again = engine.backward(model, rollout, BALL, times=[-1], gradient="exact")
    for name in ("qpos", "qvel", "ctrl"):
        assert again[name].tobytes() == before[name].tobytes()


def test_a_push_that_ends_short_is_solved_by_descent() -> None:
    model, engine, target = load_model(PUSH.format(option="")), Engine(threads=1), 0.2
    loss, ctrl = Loss([Term("qpos", index=[1], target=target)]), np.zeros((60, 1))
    start = model.qpos0, model.qvel0
    first, exact = engine.value_and_gradient(model, *start, ctrl, loss)
    assert not exact.ctrl.any() and first == pytest.approx(target**2)
    for _ in range(120):
        value, gradient = engine.value_and_gradient(model, *start, ctrl, loss, gradient=FROM)
        assert gradient.method == FROM
        ctrl -= 4 * np.sqrt(value) * gradient.ctrl / np.abs(gradient.ctrl).max()
    rollout = engine.rollout(model, *start, ctrl)
    assert abs(rollout.qpos[-1, 1] - target) < 1e-3
    # it is a real push: the pusher is where the ball was
    assert rollout.qpos[-1, 0] > GAP


@pytest.mark.parametrize("option", ["", 'integrator="RK4"', 'integrator="implicitfast" cone="elliptic"'])
def test_batches_checkpoints_and_many_cotangents_keep_their_bits(option: str) -> None:
    model, engine, batch = load_model(PUSH.format(option=option)), Engine(threads=2), 9
    random = np.random.default_rng(1)
    # some touch, some are near, some are out of reach
    qpos = np.stack([np.linspace(-0.4, 0.16, batch), np.zeros(batch)], axis=1)
    qvel, ctrl = random.normal(size=(batch, 2)), random.normal(size=(batch, 12, 1))
    bars = random.normal(size=(3, batch, 13, 2))
    rollout = engine.rollout(model, qpos, qvel, ctrl)
    found = engine.backward(model, rollout, bars, gradient=FROM)
    exact = engine.backward(model, rollout, bars)
    assert (found.qpos != exact.qpos).any(axis=(0, 2)).sum() > 3
    sparse = engine.rollout(model, qpos, qvel, ctrl, checkpoints="slots=3")
    replayed = engine.backward(model, sparse, bars, gradient=FROM)
    for b in range(batch):
        alone = engine.rollout(model, qpos[b], qvel[b], ctrl[b])
        own = engine.backward(model, alone, bars[1, b], gradient=FROM)
        for name in ("qpos", "qvel", "ctrl"):
            assert np.array_equal(own[name], found[name][1, b])
            assert np.array_equal(replayed[name][:, b], found[name][:, b])


def test_what_touches_has_its_own_derivative_alone() -> None:
    text = (
        '<mujoco><worldbody><geom type="plane" size="0 0 1"/><body pos="0 0 0.0995"><freejoint/>'
        '<geom type="box" size="0.1 0.1 0.1" mass="1"/></body></worldbody></mujoco>'
    )
    model, engine = load_model(text), Engine(threads=1)
    rollout = engine.rollout(model, model.qpos0, model.qvel0, np.zeros((5, 0)))
    bar = np.random.default_rng(2).normal(size=rollout.qpos.shape)
    exact, seeing = (engine.backward(model, rollout, bar, gradient=each) for each in ("exact", FROM))
    assert exact.qpos.tobytes() == seeing.qpos.tobytes()


def test_the_hard_model_and_other_words_are_refused() -> None:
    engine, hard = Engine(threads=1), load_model(PUSH.format(option=""), contact_model="hard")
    rollout = engine.rollout(hard, [0.0, 0.0], [0.0, 0.0], np.zeros((2, 1)))
    with pytest.raises(ArgumentError) as caught:
        engine.backward(hard, rollout, BALL, times=[-1], gradient=FROM)
    assert str(caught.value) == (
        "gradient: expected 'exact' with contact_model=\"hard\", got 'contact_from_distance=0.3'; "
        'load the model with contact_model="mujoco"'
    )
    for word in ("smooth", "contact_from_distance=-1", "contact_from_distance=", "exact=0.1", 3, None):
        with pytest.raises(
            ArgumentError, match=rf"^gradient: expected 'exact', .*, got {re.escape(repr(word))}$"
        ):
            engine.backward(hard, rollout, BALL, times=[-1], gradient=word)  # type: ignore[arg-type]

"""Activation of actuators: steps are MuJoCo's, and derivatives go through the activations."""

from __future__ import annotations

import mujoco
import numpy as np
import pytest

from revolute.contract.errors import ArgumentError
from revolute.contract.loss import Loss, Term
from revolute_engine import Engine, Model, load_model
from revolute_engine.gradient_check import check_gradient

from .mujoco_scenes import INTEGRATORS, reference
from .mujoco_steps import check_gradient_of_step, check_packs, check_step
from .transmission_scenes import ACTIVATED, model

STEP = 1e-10
"""Of accelerations and rates, relative to the largest."""
DIFFERENCES = 1e-6
FORWARD = 1e-8


def loaded(name: str, integrator: str, contact_model: str = "mujoco") -> tuple[mujoco.MjModel, Model]:
    text = model(**ACTIVATED[name], integrator=integrator)
    return reference(text), load_model(text, contact_model=contact_model, warn=False)


def state(theirs: mujoco.MjModel, seed: int) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Return qpos, qvel with activations, ctrl; activations lie beyond their ranges, too."""
    random = np.random.default_rng(seed)
    qpos = theirs.qpos0.copy()
    mujoco.mj_integratePos(theirs, qpos, 0.3 * random.normal(size=theirs.nv), 1)
    act = random.uniform(-0.1, 1.1, size=theirs.na)
    return qpos, np.concatenate([random.normal(size=theirs.nv), act]), random.uniform(-0.3, 1.3, theirs.nu)


@pytest.mark.parametrize("name", ACTIVATED)
@pytest.mark.parametrize(
    ("integrator", "contact_model"), [*((each, "mujoco") for each in INTEGRATORS), ("Euler", "hard")]
)
def test_a_step_is_mujocos(name: str, integrator: str, contact_model: str) -> None:
    theirs, ours = loaded(name, integrator, contact_model)
    assert ours.na == theirs.na > 0
    for seed in range(8):
        check_step(theirs, ours, state(theirs, seed), STEP)


@pytest.mark.parametrize("name", ACTIVATED)
@pytest.mark.parametrize("integrator", ["implicitfast", "RK4"])
def test_the_gradient_is_that_of_mujocos_step(name: str, integrator: str) -> None:
    theirs, ours = loaded(name, integrator)
    random = np.random.default_rng(5)
    qpos, qvel, ctrl = state(theirs, 3)
    qvel[theirs.nv :], ctrl = (
        0.4 + 0.1 * random.normal(size=theirs.na),
        0.3 + 0.05 * random.normal(size=theirs.nu),
    )
    if name == "filterexact":
        qvel[theirs.nv :] = 0.2  # within the range
    check_gradient_of_step(theirs, ours, (qpos, qvel, ctrl), DIFFERENCES, ctrl=1e-4)


@pytest.mark.parametrize("name", ACTIVATED)
@pytest.mark.parametrize(
    ("integrator", "contact_model"), [("implicit", "mujoco"), ("RK4", "mujoco"), ("Euler", "hard")]
)
def test_forward_and_backward_derivatives_pair_and_checkpoints_change_no_bit(
    name: str, integrator: str, contact_model: str
) -> None:
    theirs, ours = loaded(name, integrator, contact_model)
    random, engine = np.random.default_rng(6), Engine(threads=1)
    states = [state(theirs, seed) for seed in range(3)]
    qpos, qvel = (np.stack([each[i] for each in states]) for i in (0, 1))
    ctrl = random.uniform(0.1, 0.9, size=(3, 4, theirs.nu))
    check_packs(theirs, ours, (qpos, qvel), ctrl, FORWARD)
    qvel_bar = random.normal(size=(3, 5, ours.nqvel))
    gradient, *others = (
        engine.backward(ours, engine.rollout(ours, qpos, qvel, ctrl, checkpoints=each), qvel_bar=qvel_bar)
        for each in ("every", "interval=2", "slots=2")
    )
    assert all(np.array_equal(other[key], gradient[key]) for other in others for key in gradient)


@pytest.mark.parametrize("name", ["muscle", "early"])
def test_the_jacobian_has_rows_and_columns_of_activations(name: str) -> None:
    theirs, ours = loaded(name, "Euler")
    qpos, qvel, ctrl = state(theirs, 1)
    qvel[theirs.nv :], ctrl = 0.4, np.full(theirs.nu, 0.6)
    found = Engine(threads=1).jacobian(ours, qpos, qvel, ctrl)
    size = 2 * theirs.nv + theirs.na
    by_state, by_ctrl = np.zeros((size, size)), np.zeros((size, theirs.nu))
    data = mujoco.MjData(theirs)
    data.qpos[:], data.ctrl[:] = qpos, ctrl
    data.qvel[:], data.act[:] = qvel[: theirs.nv], qvel[theirs.nv :]
    mujoco.mjd_transitionFD(theirs, data, 1e-6, True, by_state, by_ctrl, None, None)
    for ours_, wanted in ((found.A, by_state), (found.B, by_ctrl)):
        assert ours_.shape == wanted.shape
        assert np.abs(ours_ - wanted).max() <= 1e-6 * max(1, np.abs(wanted).max())


def test_losses_and_starts_know_activations() -> None:
    theirs, ours = loaded("muscle", "Euler")
    engine, nv = Engine(threads=1), theirs.nv
    qpos, qvel, ctrl = theirs.qpos0.copy(), np.zeros(nv), np.full((3, theirs.nu), 0.5)
    rollout = engine.rollout(ours, qpos, qvel, ctrl)  # velocities alone: no activation
    assert (rollout.qvel[0, nv:] == 0).all() and (rollout.qvel[-1, nv:] > 0).all()
    loss = Loss([Term("qvel", target=0.7, index=range(nv, nv + theirs.na))])
    value, gradient = engine.value_and_gradient(ours, qpos, qvel, ctrl, loss)
    assert value == ((rollout.qvel[-1, nv:] - 0.7) ** 2).sum()
    assert gradient.qvel.shape == (nv + theirs.na,) and (gradient.ctrl < 0).all()
    with pytest.raises(ArgumentError, match=r"shape \[nv \+ na="):
        engine.rollout(ours, qpos, np.zeros(nv + 1), ctrl)


def test_a_gradient_check_passes_through_muscles() -> None:
    ours = loaded("muscle", "Euler")[1]
    report = check_gradient(Engine(threads=1), ours, steps=6, directions=1, wrt=["qvel", "ctrl", "body_mass"])
    assert report.passed, str(report)

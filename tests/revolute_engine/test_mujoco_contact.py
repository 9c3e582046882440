"""The contact model "mujoco": its step is MuJoCo's, its gradient that of MuJoCo's step."""

from __future__ import annotations

from typing import Any

import mujoco
import numpy as np
import pytest

from revolute.contract.errors import ArgumentError
from revolute_engine import Engine, Model, load_model
from revolute_engine.parameters import PARAMETERS, default_parameter, parameters_of

from .mujoco_scenes import (
    CONES,
    INTEGRATORS,
    SCENES,
    STEPS,
    reference,
    scene,
    state_in_contact,
)
from .mujoco_steps import check_gradient_of_step, check_jacobian, check_packs, check_step, mujoco_step

STEP = 1e-9
"""Of accelerations, relative to the largest: two solvers that both go to rounding, stiff constraints."""
DIFFERENCES = 1e-6
"""Of directional derivatives: centred differences through stiff constraints."""
FORWARD = 1e-8
"""Forward against backward derivatives, with the tangent of a quaternion by differences."""

ALL = [(name, cone, integrator) for name in SCENES for cone in CONES for integrator in INTEGRATORS]


def loaded(text: str, **options: Any) -> Model:
    return load_model(text, contact_model="mujoco", warn=False, **options)


@pytest.mark.parametrize(("name", "cone", "integrator"), ALL)
def test_a_step_is_mujocos(name: str, cone: str, integrator: str) -> None:
    text = scene(name, cone, integrator)
    theirs, model = reference(text), loaded(text)
    contacts = 0
    for seed in range(4):
        qpos, qvel, ctrl = state_in_contact(theirs, STEPS[name] + seed, seed)
        found = check_step(theirs, model, (qpos, qvel, ctrl), STEP)
        assert found.unsettled_step is not None and found.unsettled_step == -1
        data = mujoco.MjData(theirs)
        data.qpos[:] = qpos
        mujoco.mj_forward(theirs, data)
        contacts += data.ncon
    assert contacts > 4


@pytest.mark.parametrize("cone", CONES)
def test_the_option_chooses_the_cone(cone: str) -> None:
    other = CONES[1 - CONES.index(cone)]
    text = scene("every kind", other, "Euler")
    theirs = reference(scene("every kind", cone, "Euler"))
    qpos, qvel, ctrl = state_in_contact(theirs, STEPS["every kind"], 1)
    wanted = mujoco_step(theirs, qpos, qvel, ctrl)[1]
    chosen, own = (
        Engine().rollout(loaded(text, **options), qpos, qvel, ctrl[None]).qvel[1]
        for options in ({"cone": cone}, {})
    )
    assert np.abs(chosen - wanted).max() < 1e-10
    assert np.abs(own - wanted).max() > 1e-6


FLAGS = (
    "refsafe",
    "eulerdamp",
    "limit",
    "frictionloss",
    "contact",
    "equality",
    "constraint",
    "damper",
    "spring",
)


@pytest.mark.parametrize("flag", FLAGS)
def test_disable_flags_are_mujocos(flag: str) -> None:
    disabled = f'><flag {flag}="disable"/></option><worldbody>'
    text = scene("every kind", "elliptic", "Euler").replace("/><worldbody>", disabled, 1)
    theirs = reference(text)
    qpos, qvel, ctrl = state_in_contact(reference(scene("every kind", "elliptic", "Euler")), 12, 3)
    wanted = mujoco_step(theirs, qpos, qvel, ctrl)[1]
    got = Engine().rollout(loaded(text), qpos, qvel, ctrl[None]).qvel[1]
    assert np.abs(got - wanted).max() <= 1e-9 * np.abs((wanted - qvel) / theirs.opt.timestep).max()


@pytest.mark.parametrize(("name", "cone", "integrator"), ALL)
def test_the_gradient_is_that_of_mujocos_step(name: str, cone: str, integrator: str) -> None:
    text = scene(name, cone, integrator)
    theirs = reference(text)
    state = state_in_contact(theirs, STEPS[name], 7)
    check_gradient_of_step(theirs, loaded(text), state, DIFFERENCES, qpos=1e-6)


@pytest.mark.parametrize("cone", CONES)
@pytest.mark.parametrize("integrator", INTEGRATORS)
def test_gradients_by_parameters(cone: str, integrator: str) -> None:
    text = scene("every kind", cone, integrator)
    theirs, model, engine, random = reference(text), loaded(text), Engine(), np.random.default_rng(2)
    qpos, qvel, ctrl = state_in_contact(theirs, STEPS["every kind"], 7)
    names = parameters_of(model)
    assert "geom_solref" in names and "restitution" not in names
    qvel_bar = np.stack([np.zeros(theirs.nv), random.normal(size=theirs.nv)])
    found = engine.rollout(model, qpos, qvel, ctrl[None])
    gradient = engine.backward(model, found, qvel_bar=qvel_bar, wrt=names)
    moved = 0
    for name in names:
        own = default_parameter(model, name)
        # relative changes: what is zero stays zero; friction is moved alike in all shapes, away from ties
        alike = name == "geom_friction"
        direction = own * (1.0 if alike else random.normal(size=own.shape)) * 0.3

        def loss(n: int, name: str = name, own: Any = own, direction: Any = direction) -> float:
            params = {name: own + n * 1e-5 * direction}
            end = engine.rollout(model, qpos, qvel, ctrl[None], params=params).qvel[1]
            return float(qvel_bar[1] @ end)

        wanted = (8 * (loss(1) - loss(-1)) - (loss(2) - loss(-2))) / (12 * 1e-5)
        assert abs((gradient[name] * direction).sum() - wanted) <= DIFFERENCES * max(abs(wanted), 1e-2), name
        moved += abs(wanted) > 1e-6
    assert moved > 10


@pytest.mark.parametrize("cone", CONES)
@pytest.mark.parametrize("integrator", INTEGRATORS)
def test_environments_do_not_disturb_each_other_and_jvp_pairs_with_backward(
    cone: str, integrator: str
) -> None:
    text = scene("every kind", cone, integrator)
    theirs, model, random = reference(text), loaded(text), np.random.default_rng(4)
    start = [state_in_contact(theirs, 6 + 3 * i, i) for i in range(5)]
    qpos, qvel = (np.stack([one[i] for one in start]) for i in (0, 1))
    qpos[1, 2] += 1.0  # one ball in the air: its neighbours' contacts are not its own
    ctrl = 0.3 * random.normal(size=(5, 3, theirs.nu))
    params = ("body_mass", "geom_solref")
    check_packs(theirs, model, (qpos, qvel), ctrl, FORWARD, params=params, least=0.0)


def test_the_jacobian_of_a_step_is_that_of_its_derivatives() -> None:
    for integrator in ("Euler", "RK4"):
        text = scene("walker", "elliptic", integrator)
        check_jacobian(loaded(text), state_in_contact(reference(text), STEPS["walker"], 7))


def test_stiff_rows_without_friction_are_solved() -> None:
    # a pyramid of friction 0 has edges of almost one direction, 1e10 times stiffer than its normal
    text = scene("box", "pyramidal", "Euler").replace('friction="0.6"', 'friction="0" solimp="0.9999 0.9999"')
    theirs, model = reference(text), loaded(text)
    qpos, qvel, ctrl = state_in_contact(theirs, 20, 2)
    found = Engine().rollout(model, qpos, qvel, np.tile(ctrl, (20, 1)))
    assert found.unsettled_step == -1
    assert np.abs(found.qvel[1] - mujoco_step(theirs, qpos, qvel, ctrl)[1]).max() < 1e-5


def test_options_of_the_contact_model() -> None:
    with pytest.raises(ArgumentError, match=r"^contact_model: expected 'hard' or 'mujoco', got 'soft'$"):
        load_model("laikago", contact_model="soft")
    with pytest.raises(ArgumentError, match=r"^cone: expected 'pyramidal', 'elliptic' or None, got 'round'$"):
        load_model("laikago", contact_model="mujoco", cone="round")
    hard, soft = load_model("laikago", contact_model="hard"), load_model("laikago")
    assert hard.options["contact_model"] == "hard" and soft.options["contact_model"] == "mujoco"
    assert hard.id != soft.id
    assert any("Gauss-Seidel" in note for note in hard.notes)
    assert not any("Gauss-Seidel" in note or "solref" in note for note in soft.notes)


def test_parameters_of_the_other_contact_model_are_refused() -> None:
    hard, soft = load_model("laikago", contact_model="hard"), load_model("laikago")
    assert set(PARAMETERS) - set(parameters_of(hard)) == {"geom_solref", "geom_solimp"}
    assert set(PARAMETERS) - set(parameters_of(soft)) == {"restitution"}
    for model, name, other in ((hard, "geom_solref", "mujoco"), (soft, "restitution", "hard")):
        qpos, advice = model.qpos0, f'load the model with contact_model="{other}"'
        with pytest.raises(ArgumentError, match=f"^params: expected names among .*, got '{name}'; {advice}$"):
            Engine().rollout(model, qpos, np.zeros(model.nv), np.zeros((1, model.nu)), params={name: 0.0})


def test_a_pair_with_friction_by_direction_needs_soft_constraints() -> None:
    text = scene("every kind", "elliptic", "Euler")
    assert loaded(text)
    with pytest.raises(Exception, match="friction that differs by direction"):
        load_model(text, contact_model="hard", warn=False)

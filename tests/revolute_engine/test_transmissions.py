"""Tendons, transmissions and forces on links: steps are MuJoCo's, gradients those of MuJoCo's steps."""

from __future__ import annotations

from typing import Any

import mujoco
import numpy as np
import pytest

from revolute_engine import Engine, Model, load_model

from .mujoco_scenes import INTEGRATORS, reference
from .mujoco_steps import check_gradient_of_step, check_packs, check_step
from .transmission_scenes import INERTIA, ROWS, SMOOTH, model

STEP = 1e-10
"""Of accelerations, relative to the largest, without constraints."""
CONSTRAINED = 1e-9
"""The same with constraints: two solvers that both go to rounding."""
INSIDE = 1e-6
"""A path that touches a sphere from inside: MuJoCo's Newton method stops at 1e-6."""
DIFFERENCES = 1e-6
FORWARD = 1e-8
"""Forward against backward derivatives."""

SOFT = {**SMOOTH, **INERTIA}
CASES = {**SOFT, **ROWS}
MEDIA = ("medium", "ellipsoids in a medium")


def pairs(cases: Any, integrators: Any) -> list[tuple[str, str]]:
    return [(name, integrator) for name in cases for integrator in integrators]


def state(theirs: mujoco.MjModel, seed: int) -> tuple[np.ndarray, ...]:
    random = np.random.default_rng(seed)
    qpos = theirs.qpos0.copy()
    mujoco.mj_integratePos(theirs, qpos, 0.3 * random.normal(size=theirs.nv), 1)
    return qpos, random.normal(size=theirs.nv), random.normal(size=theirs.nu)


def loaded(name: str, integrator: str, contact_model: str = "mujoco") -> tuple[mujoco.MjModel, Model]:
    text = model(**CASES[name], integrator=integrator)
    return reference(text), load_model(text, contact_model=contact_model, warn=False)


def check_steps(name: str, integrator: str, contact_model: str, tolerance: float) -> None:
    theirs, ours = loaded(name, integrator, contact_model)
    for seed in range(4):
        check_step(theirs, ours, state(theirs, seed), max(tolerance, INSIDE if "inside" in name else 0))


@pytest.mark.parametrize(("name", "integrator"), pairs(SOFT, INTEGRATORS))
def test_a_smooth_step_is_mujocos(name: str, integrator: str) -> None:
    check_steps(name, integrator, "mujoco", STEP)


@pytest.mark.parametrize("name", SMOOTH)
def test_a_smooth_step_of_the_hard_model_is_mujocos(name: str) -> None:
    check_steps(name, "Euler", "hard", STEP)


@pytest.mark.parametrize("name", ROWS)
def test_a_constrained_step_is_mujocos(name: str) -> None:
    check_steps(name, "implicitfast", "mujoco", CONSTRAINED)


@pytest.mark.parametrize(
    ("name", "integrator"),
    [*pairs(SOFT, ("Euler", "implicit")), *pairs((*MEDIA, *INERTIA, *ROWS), ("implicitfast",))],
)
def test_the_gradient_is_that_of_mujocos_step(name: str, integrator: str) -> None:
    theirs, ours = loaded(name, integrator)
    tolerance = INSIDE if "inside" in name else DIFFERENCES
    check_gradient_of_step(theirs, ours, state(theirs, 2), tolerance, ctrl=1e-3)


@pytest.mark.parametrize(
    ("name", "integrator", "contact_model"),
    [
        *((name, integrator, "mujoco") for name, integrator in pairs(SOFT, ("implicitfast", "RK4"))),
        *((name, "implicit", "mujoco") for name in MEDIA),
        *((name, "implicit", "mujoco") for name in ROWS),
        *((name, "Euler", "hard") for name in SMOOTH),
    ],
)
def test_forward_and_backward_derivatives_pair(name: str, integrator: str, contact_model: str) -> None:
    theirs, ours = loaded(name, integrator, contact_model)
    states = [state(theirs, seed) for seed in range(3)]
    qpos, qvel = (np.stack([each[i] for each in states]) for i in (0, 1))
    ctrl = np.random.default_rng(6).normal(size=(3, 2, theirs.nu))
    params = ("body_mass", "body_ipos", "body_inertia", "actuator_gear")
    tolerance = INSIDE if "inside" in name else FORWARD
    check_packs(theirs, ours, (qpos, qvel), ctrl, tolerance, params=params)


@pytest.mark.parametrize("name", ["sphere", "beside a sphere", "inside a sphere", "cylinder"])
def test_the_paths_bend_in_some_of_these_states(name: str) -> None:
    theirs = loaded(name, "Euler")[0]
    bends = []
    for seed in range(4):
        data = mujoco.MjData(theirs)
        data.qpos[:] = state(theirs, seed)[0]
        mujoco.mj_forward(theirs, data)
        bends.append(bool((data.wrap_obj.ravel()[: int(data.ten_wrapnum[0])] >= 0).any()))
    assert any(bends)


@pytest.mark.parametrize("contact_model", ["hard", "mujoco"])
def test_a_tendon_spring_at_its_rest_length_has_its_stiffness(contact_model: str) -> None:
    """One hinge of inertia I, tendon length 2 q: d qvel+ / d q = -h 4 k / I at q = 0 as elsewhere."""
    text = b"""<mujoco><option gravity="0 0 0" timestep="0.01"/><worldbody><body><joint name="j"/>
    <inertial pos="0 0 0" mass="1" diaginertia="0.5 0.5 0.5"/></body></worldbody>
    <tendon><fixed stiffness="5"><joint joint="j" coef="2"/></fixed></tendon></mujoco>"""
    sprung, engine = load_model(text, contact_model=contact_model), Engine(threads=1)
    for angle in (0.0, 1e-9, 0.3):
        found = engine.jacobian(sprung, [angle], [0.0], [])
        np.testing.assert_allclose(found.A[1, 0], -0.01 * 4 * 5 / 0.5, rtol=1e-12)


BESIDE = """<mujoco><option timestep="0.001" gravity="0 0 0"/><worldbody>
  <geom name="shape" type="{shape}" size="0.05 0.05" contype="0"/><site name="side" pos="{side}"/>
  <site name="first" pos="{first}"/><body pos="{last}"><joint type="slide" axis="1 0 0"/>
  <joint type="slide" axis="0 1 0"/><joint type="slide" axis="0 0 1"/><geom size="0.01" mass="1" contype="0"/>
  <site name="last"/></body></worldbody><tendon><spatial name="path"><site site="first"/>
  <geom geom="shape" sidesite="side"/><site site="last"/></spatial></tendon>
  <actuator><motor tendon="path"/></actuator></mujoco>"""


@pytest.mark.skipif(mujoco.mj_version() < 4_000_000, reason="MuJoCo 3 bends around side sites elsewhere")
@pytest.mark.parametrize("shape", ["sphere", "cylinder"])
def test_paths_bend_around_the_side_sites_that_mujoco_bends_around(shape: str) -> None:
    random, engine, bends = np.random.default_rng(2), Engine(threads=1), 0
    for _ in range(150):
        first, last = random.normal(scale=0.12, size=(2, 3))
        side = random.normal(size=3)
        side *= random.uniform(0.9, 2) * 0.05 / np.linalg.norm(side)
        places = {
            name: " ".join(map(str, place))
            for name, place in (("first", first), ("last", last), ("side", side))
        }
        model = load_model(BESIDE.format(shape=shape, **places), warn=False)
        data = mujoco.MjData(model.mujoco_model)
        data.ctrl[:] = 1
        mujoco.mj_forward(model.mujoco_model, data)
        bends += data.ten_wrapnum[0] > 2
        end = engine.rollout(model, model.qpos0, model.qvel0, np.ones((1, 1))).qvel[1]
        assert np.abs(end / model.timestep - data.qacc).max() < INSIDE, places
    assert 30 < bends < 120

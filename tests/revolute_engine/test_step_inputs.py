"""Applied forces and mocap bodies: against MuJoCo, and their gradients against central differences."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import mujoco
import numpy as np
import pytest

from revolute.contract.controllers import STEP_INPUTS, Control
from revolute.contract.errors import ArgumentError
from revolute.contract.loss import Loss, Term
from revolute.contract.tangents import move, pull
from revolute_engine import Engine, Model, load_model
from revolute_engine.segments import SegmentedRollout

ENGINE = Engine(threads=1)
HOLD, PERIODS, BATCH = 2, 6, 3

EQUAL = 1e-10
"""Largest difference from MuJoCo in smooth motion: rounding."""
CONSTRAINED = 1e-6
"""The same with constraints, which MuJoCo solves to its own tolerance."""
GRADIENT = 1e-6
"""Relative difference of a gradient from central differences."""

# a flying body with an arm: quaternions, and a body whose mass centre is off its origin
FLYER = """<mujoco><option timestep="0.01" {option}/><default><geom contype="0"/></default><worldbody>
  <body pos="0 0 3"><freejoint/><geom type="box" size="0.2 0.1 0.1" pos="0.05 0.02 0" mass="1"/>
  <body pos="0.2 0 0"><joint type="ball" damping="0.01"/>
  <geom type="capsule" fromto="0 0 0 0.3 0 0" size="0.03" mass="0.3"/>
  <body pos="0.3 0 0"><joint axis="0 1 0" damping="0.01"/><joint type="slide" axis="1 0 0" damping="2"/>
  <geom type="capsule" fromto="0 0 0 0.2 0 0" size="0.03" mass="0.2"/></body></body></body></worldbody>
  </mujoco>"""

# a hand that follows a mocap body, pushes a box on the ground, and touches what other mocap bodies carry
MOCAP = """<mujoco><option timestep="0.004" cone="elliptic" {option}/><worldbody>
  <geom name="floor" type="plane" size="2 2 0.1"/>
  <body name="target" mocap="true" pos="0 0 0.3" quat="0.9 0.1 0.3 -0.2">
    <site name="aim" pos="0.1 0 0.05"/></body>
  <body name="wall" mocap="true" pos="0.5 0.02 0.12" quat="1 0.1 0 0.1">
    <geom type="box" size="0.05 0.2 0.2"/>
    <body pos="0 0 0.25" quat="0.8 0.3 0 0.1"><geom type="sphere" size="0.06" pos="0.02 0 0"/>
      <body pos="0 0.1 0"><joint name="flap" axis="1 0.2 0" damping="0.02" stiffness="0.3"/>
        <geom type="capsule" fromto="0 0 0 0 0.3 0.05" size="0.02" mass="0.1"/>
        <site name="tip" pos="0 0.3 0.05"/>
        <body pos="0 0.3 0.05"><joint type="ball" damping="0.01"/>
          <geom size="0.03" pos="0.03 0 0" mass="0.05"/>
        </body></body></body></body>
  <body name="hand" pos="0 0 0.3"><freejoint/><geom type="box" size="0.05 0.06 0.04" mass="0.5"/>
    <site name="palm" pos="0.02 0 0"/></body>
  <body name="box" pos="0.2 0 0.06"><freejoint/><geom type="{shape}" size="0.06 0.05 0.06" mass="0.3"/></body>
  <body name="hung" pos="-0.4 0 0.6"><joint type="slide" axis="0 0 1"/><joint type="slide" axis="1 0 0"/>
    <geom size="0.04" mass="0.2" contype="0" conaffinity="0"/><site name="hook"/></body>
  </worldbody>
  <equality><weld body1="target" body2="hand" solref="0.02 1" torquescale="0.6"/>
    <connect body1="hung" body2="target" anchor="-0.1 0 0.3" solref="0.05 1"/></equality>
  <tendon><spatial stiffness="20" damping="0.5" springlength="0.1">
    <site site="hook"/><site site="aim"/></spatial>
  </tendon>
  <sensor><framepos objtype="site" objname="aim"/><framequat objtype="body" objname="wall"/>
    <framepos objtype="site" objname="tip" reftype="body" refname="target"/>
    <framequat objtype="site" objname="tip" reftype="site" refname="aim"/>
    <framelinvel objtype="site" objname="palm" reftype="site" refname="aim"/>
    <accelerometer site="palm"/><force site="palm"/><torque site="palm"/>
    <subtreecom body="wall"/><gyro site="aim"/></sensor></mujoco>"""


def mujoco_rollout(
    model: Model, qpos: np.ndarray, qvel: np.ndarray, inputs: dict[str, np.ndarray], steps: int
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Step MuJoCo with a row of each input per period; return qpos, qvel and sensors at all times."""
    data = mujoco.MjData(model.mujoco_model)
    model.mujoco_model.opt.tolerance = 0
    model.mujoco_model.opt.iterations = 200
    data.qpos[:], data.qvel[:] = qpos, qvel
    found: list[list[np.ndarray]] = [[], [], []]
    for t in range(steps + 1):
        for name, array in inputs.items():
            getattr(data, name)[:] = array[min(t, steps - 1) // HOLD]
        data.qacc_warmstart[:] = 0
        mujoco.mj_forward(model.mujoco_model, data)
        for place, array in enumerate((data.qpos, data.qvel, data.sensordata)):
            found[place].append(array.copy())
        mujoco.mj_step(model.mujoco_model, data)
    return np.array(found[0]), np.array(found[1]), np.array(found[2])


def pushed(model: Model, seed: int = 0, size: float = 1.0) -> dict[str, np.ndarray]:
    """Return forces and torques on all bodies, the world included, and generalized forces."""
    random = np.random.default_rng(seed)
    return {
        "xfrc_applied": size * random.normal(size=(PERIODS, model.nbody, 6)),
        "qfrc_applied": 0.1 * random.normal(size=(PERIODS, model.nv)),
    }


def moved_mocap(model: Model, seed: int = 0) -> dict[str, np.ndarray]:
    """Return a path of the mocap bodies with quaternions that are not of unit length."""
    random = np.random.default_rng(seed)
    path = np.cumsum(0.01 * random.normal(size=(PERIODS, model.nmocap, 3)), axis=0)
    turn = np.cumsum(0.05 * random.normal(size=(PERIODS, model.nmocap, 4)), axis=0)
    scale = random.uniform(0.5, 2.0, (PERIODS, model.nmocap, 1))
    return {"mocap_pos": model.mocap_pos + path, "mocap_quat": scale * (model.mocap_quat + turn)}


@pytest.mark.parametrize(
    ("option", "contact_model"),
    [
        ("", "hard"),
        ("", "mujoco"),
        ('integrator="implicitfast"', "mujoco"),
        ('integrator="implicit"', "mujoco"),
        ('integrator="RK4"', "mujoco"),
        ('density="2" viscosity="0.1"', "mujoco"),
    ],
)
def test_forces_on_bodies_are_those_of_mujoco(option: str, contact_model: str) -> None:
    model = load_model(FLYER.format(option=option).encode(), contact_model=contact_model)
    random = np.random.default_rng(1)
    qpos, qvel = move(model, model.qpos0, 0.4 * random.normal(size=model.nv)), random.normal(size=model.nv)
    inputs = pushed(model)
    found = ENGINE.rollout(model, qpos, qvel, np.zeros((PERIODS, 0)), control=Control(HOLD, **inputs))
    known = mujoco_rollout(model, qpos, qvel, inputs, PERIODS * HOLD)
    np.testing.assert_allclose(found.qpos, known[0], rtol=0, atol=EQUAL)
    np.testing.assert_allclose(found.qvel, known[1], rtol=0, atol=EQUAL)
    alone = ENGINE.rollout(model, qpos, qvel, np.zeros((PERIODS, 0)), control=Control(HOLD))
    assert abs(found.final_qvel - alone.final_qvel).max() > 0.01


@pytest.mark.parametrize("option", ["", 'integrator="implicitfast"'])
@pytest.mark.parametrize("shape", ["box", "ellipsoid", "cylinder", "sphere", "capsule"])
def test_mocap_bodies_are_those_of_mujoco(shape: str, option: str) -> None:
    """They weld, connect, pull by a tendon, carry joints and are touched; sensors see them."""
    # MuJoCo's implicitfast has derivatives of a tendon's damping that Euler has not
    text = MOCAP.format(shape=shape, option=option).replace(
        'damping="0.5" ', "" if option else 'damping="0.5" '
    )
    model = load_model(text.encode(), contact_model="mujoco")
    assert model.nmocap == 2
    inputs = {**moved_mocap(model), **pushed(model, size=0.2)}
    found = ENGINE.rollout(
        model, model.qpos0, model.qvel0, np.zeros((PERIODS, 0)), control=Control(HOLD, **inputs)
    )
    known = mujoco_rollout(model, model.qpos0, model.qvel0, inputs, PERIODS * HOLD)
    # convex pairs have contact points of their own, so only pairs with a formula are compared
    if shape in ("box", "sphere", "capsule"):
        np.testing.assert_allclose(found.qpos, known[0], rtol=0, atol=CONSTRAINED)
        np.testing.assert_allclose(found.qvel, known[1], rtol=0, atol=100 * CONSTRAINED)
    hand = slice(0, 7)
    np.testing.assert_allclose(found.qpos[:2, hand], known[0][:2, hand], rtol=0, atol=CONSTRAINED)
    states = ENGINE.states_of(model, found)
    read = ENGINE.measure(model, ["sensor", "body_pos"], states)
    np.testing.assert_allclose(read["sensor"][0], known[2][0], rtol=1e-5, atol=1e-5)
    target = model.body_names.index("target")
    np.testing.assert_allclose(read["body_pos"][HOLD, target], inputs["mocap_pos"][1, 0], atol=1e-14)


def test_mocap_bodies_are_where_the_file_has_them_by_default() -> None:
    model = load_model(MOCAP.format(shape="box", option="").encode(), contact_model="mujoco")
    start = model.qpos0, model.qvel0, np.zeros((5, 0))
    given = Control.of(mocap_pos=model.mocap_pos, mocap_quat=model.mocap_quat)
    alone, placed = ENGINE.rollout(model, *start), ENGINE.rollout(model, *start, control=given)
    assert np.array_equal(alone.qpos, placed.qpos)
    turned = Control.of(mocap_quat=-3 * model.mocap_quat)
    np.testing.assert_allclose(ENGINE.rollout(model, *start, control=turned).qpos, alone.qpos, atol=1e-13)
    known = mujoco_rollout(model, *start[:2], {}, 5)
    np.testing.assert_allclose(alone.qpos, known[0], rtol=0, atol=CONSTRAINED)


def problem(kind: str) -> tuple[Model, np.ndarray, np.ndarray, dict[str, np.ndarray], Loss]:
    """Return a model, start states [BATCH], inputs with a row per environment and period, and a loss."""
    hard = kind.startswith("hard")
    if kind.endswith("flyer"):
        model = load_model(FLYER.format(option="").encode(), contact_model="hard" if hard else "mujoco")
    else:
        option = 'integrator="RK4"' if kind == "rk4" else ""
        text = MOCAP.format(shape=kind.split()[-1] if " " in kind else "box", option=option)
        if hard:
            start, end = text.index("<tendon>"), text.index("</tendon>") + len("</tendon>")
            text = text[:start] + text[end:]
            text = text[: text.index("<sensor>")] + "</mujoco>"
        model = load_model(text.encode(), contact_model="hard" if hard else "mujoco")
    random = np.random.default_rng(3)
    qpos = move(model, model.qpos0, 0.02 * random.normal(size=(BATCH, model.nv)))
    qvel = 0.1 * random.normal(size=(BATCH, model.nv))
    inputs = {
        name: np.stack([array + 0.01 * b for b in range(BATCH)])
        for name, array in {**pushed(model, size=0.3), **(moved_mocap(model) if model.nmocap else {})}.items()
    }
    terms = [
        Term("qpos", target=random.normal(size=model.nq), when="final"),
        Term("qvel", target=random.normal(size=model.nv), weight=0.1, when="running"),
    ]
    if model.nmocap:
        terms += [
            Term("site_pos", site="aim", target=[0.1, 0.2, 0.3], when="running"),
            Term("site_pos", site="tip", target=[0.1, 0.2, 0.3], when="final"),
        ]
    return model, qpos, qvel, inputs, Loss(terms)


@pytest.mark.parametrize(
    "kind",
    ["hard flyer", "flyer", "soft box", "soft sphere", "soft ellipsoid", "rk4", "hard box", "hard capsule"],
)
def test_gradients_by_inputs_against_differences(kind: str) -> None:
    model, qpos, qvel, inputs, loss = problem(kind)
    ctrl = np.zeros((BATCH, PERIODS, 0))

    def value(given: dict[str, np.ndarray], start: np.ndarray = qpos) -> float:
        control = Control(HOLD, **given)
        return float(np.sum(ENGINE.value_and_gradient(model, start, qvel, ctrl, loss, control=control)[0]))

    wrt = ["qpos", "qvel", "body_ipos", *inputs]
    found = ENGINE.value_and_gradient(
        model, qpos, qvel, ctrl, loss, control=Control(HOLD, **inputs), wrt=wrt, checkpoints="slots=3"
    )[1].arrays
    random = np.random.default_rng(5)
    for name, array in inputs.items():
        assert found[name].shape == array.shape
        direction = random.normal(size=array.shape)
        slopes = []
        for step in (5e-6, 1e-5):
            moved = [value({**inputs, name: array + s * step * direction}) for s in (1, -1)]
            slopes.append((moved[0] - moved[1]) / (2 * step))
        slope = (4 * slopes[0] - slopes[1]) / 3
        assert slope != 0
        assert (found[name] * direction).sum() == pytest.approx(slope, rel=GRADIENT, abs=1e-8), name
        if name == "mocap_quat":  # the length of a quaternion does not count
            assert abs((found[name] * array).sum(axis=-1)).max() < 1e-9
    # the point that a force acts at moves with the state
    direction = random.normal(size=(BATCH, model.nv))
    moved = [value(inputs, move(model, qpos, s * 2e-7 * direction)) for s in (1, -1)]
    slope = (moved[0] - moved[1]) / 4e-7
    tangent = (move(model, qpos, 2e-7 * direction) - move(model, qpos, -2e-7 * direction)) / 4e-7
    assert (found["qpos"] * tangent).sum() == pytest.approx(slope, rel=10 * GRADIENT)


def test_forward_and_backward_derivatives_are_transposes() -> None:
    model, qpos, qvel, inputs, _loss = problem("soft box")
    random, ctrl = np.random.default_rng(6), np.zeros((BATCH, PERIODS, 0))
    rollout = ENGINE.rollout(model, qpos, qvel, ctrl, control=Control(HOLD, **inputs))
    bars = random.normal(size=rollout.qpos.shape), random.normal(size=rollout.qvel.shape)
    pulled = ENGINE.backward(model, rollout, *bars, wrt=["qpos", "qvel"]).arrays
    tangents = random.normal(size=qvel.shape), random.normal(size=qvel.shape)
    pushed_on = ENGINE.jvp(model, rollout, qpos_tan=tangents[0], qvel_tan=tangents[1])
    left = (pull(model, rollout.qpos, bars[0]) * pushed_on.qpos).sum() + (bars[1] * pushed_on.qvel).sum()
    right = (pull(model, qpos, pulled["qpos"]) * tangents[0]).sum() + (pulled["qvel"] * tangents[1]).sum()
    assert left == pytest.approx(right, rel=1e-10)


@pytest.mark.parametrize("kind", ["soft box", "hard box", "flyer"])
def test_packs_and_checkpoints_change_no_bit(kind: str) -> None:
    model, qpos, qvel, inputs, _loss = problem(kind)
    ctrl, random = np.zeros((BATCH, PERIODS, 0)), np.random.default_rng(7)
    together = ENGINE.rollout(model, qpos, qvel, ctrl, control=Control(HOLD, **inputs))
    bars = random.normal(size=together.qpos.shape), random.normal(size=together.qvel.shape)
    pulled = ENGINE.backward(model, together, *bars, wrt=list(inputs)).arrays
    few = ENGINE.rollout(model, qpos, qvel, ctrl, control=Control(HOLD, **inputs), checkpoints="slots=2")
    again = ENGINE.backward(model, few, *bars, wrt=list(inputs)).arrays
    for b in range(BATCH):
        own = {name: array[b] for name, array in inputs.items()}
        alone = ENGINE.rollout(model, qpos[b], qvel[b], ctrl[b], control=Control(HOLD, **own))
        assert np.array_equal(alone.qpos, together.qpos[b])
        one = ENGINE.backward(model, alone, bars[0][b], bars[1][b], wrt=list(inputs)).arrays
        for name in inputs:
            assert np.array_equal(one[name], pulled[name][b]), name
            assert np.array_equal(again[name], pulled[name])
    pieces = SegmentedRollout(model, qpos, qvel, ctrl, control=Control(HOLD, **inputs))
    while not pieces.over:
        pieces.compute(ENGINE, HOLD)
    assert np.array_equal(pieces.result().qpos, together.qpos)


def test_inputs_that_environments_and_periods_share_are_summed() -> None:
    model, qpos, qvel, inputs, _loss = problem("soft box")
    ctrl, random = np.zeros((BATCH, PERIODS, 0)), np.random.default_rng(8)
    shared = {name: array[0, :1] for name, array in inputs.items()}
    repeated = {name: np.broadcast_to(array, inputs[name].shape) for name, array in shared.items()}
    rollouts = [
        ENGINE.rollout(model, qpos, qvel, ctrl, control=Control(HOLD, **each)) for each in (shared, repeated)
    ]
    bars = random.normal(size=rollouts[0].qpos.shape), random.normal(size=rollouts[0].qvel.shape)
    one, many = (ENGINE.backward(model, each, *bars, wrt=list(inputs)).arrays for each in rollouts)
    for name in inputs:
        assert one[name].shape == shared[name].shape
        np.testing.assert_allclose(one[name], many[name].sum(axis=(0, 1))[None], rtol=1e-9, atol=1e-12)


def test_steps_and_jacobians_with_inputs() -> None:
    """A held step equals a rollout, and its Jacobian is that of a rollout of one step."""
    model, qpos, qvel, inputs, _loss = problem("soft box")
    row = {name: array[:, 0] for name, array in inputs.items()}
    held = ENGINE.advance(model, qpos, qvel, np.zeros((BATCH, 0)), 3, inputs=row)
    control = Control.of(**{name: array[:, None] for name, array in row.items()})
    rollout = ENGINE.rollout(model, qpos, qvel, np.zeros((BATCH, 3, 0)), control=control)
    assert np.array_equal(held.qpos, rollout.final_qpos)
    by_state = ENGINE.jacobian(model, qpos, qvel, np.zeros((BATCH, 0)), inputs=row).A
    one = ENGINE.rollout(model, qpos, qvel, np.zeros((BATCH, 1, 0)), control=control)
    tangent = np.random.default_rng(9).normal(size=(BATCH, model.nv))
    pushed_on = ENGINE.jvp(model, one, qpos_tan=tangent)
    np.testing.assert_allclose(
        np.einsum("bij,bj->bi", by_state[:, model.nv :, : model.nv], tangent),
        pushed_on.qvel[:, 1],
        rtol=1e-6,
        atol=1e-9,
    )
    without = ENGINE.jacobian(model, qpos, qvel, np.zeros((BATCH, 0))).A
    assert abs(without - by_state).max() > 1e-6


def test_wrong_inputs_are_refused() -> None:
    model = load_model(MOCAP.format(shape="box", option="").encode(), contact_model="mujoco")
    flyer = load_model(FLYER.format(option="").encode())

    def rollout(of: Model, **inputs: Any) -> None:
        ENGINE.rollout(of, of.qpos0, of.qvel0, np.zeros((4, 0)), control=Control(**inputs))

    with pytest.raises(ArgumentError, match=r"mocap_pos: expected none, as the model has no mocap bodies"):
        rollout(flyer, mocap_pos=np.zeros((1, 3)))
    with pytest.raises(ArgumentError, match=r"xfrc_applied: expected shape \[4, 6\]"):
        rollout(flyer, xfrc_applied=np.zeros((4, 3)))
    with pytest.raises(ArgumentError, match=r"mocap_quat: expected quaternions .* of non-zero length"):
        rollout(model, mocap_quat=np.zeros((2, 4)))
    with pytest.raises(ArgumentError, match="mocap_pos: expected finite values"):
        rollout(model, mocap_pos=np.full((2, 3), np.nan))
    with pytest.raises(ArgumentError, match="wrt: expected names among"):
        found = ENGINE.rollout(model, model.qpos0, model.qvel0, np.zeros((1, 0)))
        ENGINE.backward(model, found, np.zeros((2, model.nq)), wrt=["mocap_pos"])
    assert set(replace(Control(), mocap_pos=np.zeros((2, 3))).inputs) == {"mocap_pos"}
    assert set(STEP_INPUTS) == {"qfrc_applied", "xfrc_applied", "mocap_pos", "mocap_quat"}

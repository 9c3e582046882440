"""Equality constraints against MuJoCo: what they measure, and that the engine holds it at zero."""

import mujoco
import numpy as np
import pytest

from revolute.contract.errors import ModelError
from revolute_engine import Engine, Model, load_model
from revolute_engine._equalities import equality_arrays

# a step follows the constraint's tangent and leaves h^2/2 times the acceleration across it to repair:
# 1e-5 m at 10 g, of which erp = 0.2 sustains five times as much
DRIFT = 2e-4

BODIES = """<mujoco>
  <compiler angle="radian"/>
  <option timestep="0.002"><flag contact="disable"/></option>
  <worldbody>
    <site name="sky" pos="0.2 0.1 2" euler="0.4 0.2 -0.3"/>
    <body name="a" pos="0 0 1"><freejoint/>
      <inertial pos="0.02 0 0.01" quat="0.9 0.1 0.2 0" mass="1.5" diaginertia="0.02 0.03 0.025"/>
      <site name="on a" pos="0.1 0.05 -0.2" euler="0.5 -0.4 0.3"/>
      <body name="a2" pos="0 0 -0.4"><joint name="a2" axis="0 1 0"/>
        <inertial pos="0 0 -0.2" mass="0.6" diaginertia="0.01 0.01 0.002"/>
        <site name="on a2" pos="0 0.02 -0.35" euler="-0.2 0.3 0.6"/></body></body>
    <body name="b" pos="0.6 0 1"><joint name="slide" type="slide" axis="1 0 1" ref="0.1"/>
      <joint name="hinge" axis="0 0.3 1" ref="-0.2"/>
      <inertial pos="0 0.05 0" mass="0.8" diaginertia="0.01 0.02 0.015"/>
      <site name="on b" pos="-0.1 0.2 0.1" euler="0.9 0.1 -0.7"/>
      <body name="b2" pos="0 0.3 0"><joint name="ball" type="ball"/>
        <inertial pos="0 0.1 0" mass="0.4" diaginertia="0.004 0.002 0.004"/></body></body>
  </worldbody>
  <equality>{equality}</equality>
</mujoco>"""

EQUALITIES = {
    "joint": '<joint joint1="a2" joint2="hinge" polycoef="0.1 -0.5 0.3 0.2 -0.1"/>',
    "joint held": '<joint joint1="slide" polycoef="0.05 3 1 1 1"/>',
    "connect": '<connect body1="a2" body2="b2" anchor="0.1 -0.05 -0.3"/>',
    "connect world": '<connect body1="a2" anchor="0.1 -0.05 -0.3"/>',
    "connect sites": '<connect site1="on a2" site2="on b"/>',
    "weld": '<weld body1="b2" body2="a2" anchor="0.1 0 0.2"/>',
    "weld relpose": '<weld body1="a" body2="b" relpose="0.3 0 0 0.9 0.2 0.1 -0.3" torquescale="2"/>',
    "weld world": '<weld body1="a2"/>',
    "weld sites": '<weld site1="on a2" site2="on b"/>',
    "weld site to the world": '<weld site1="sky" site2="on a"/>',
}


def _model(name: str) -> Model:
    return load_model(BODIES.format(equality=EQUALITIES[name]), contact_model="hard")


def _random_qpos(model: Model, seed: int) -> np.ndarray:
    qpos = model.qpos0 + 0.5 * np.random.default_rng(seed).normal(size=model.nq)
    mujoco.mj_normalizeQuat(model.mujoco_model, qpos)
    return qpos


def _positions(model: mujoco.MjModel, qpos: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return MuJoCo's violations of the equality constraints, and their Jacobian."""
    data = mujoco.MjData(model)
    data.qpos[:] = qpos
    mujoco.mj_forward(model, data)
    rows = data.efc_type == int(mujoco.mjtConstraint.mjCNSTR_EQUALITY)
    jacobian = data.efc_J
    if mujoco.mj_isSparse(model):
        dense = np.zeros((data.nefc, model.nv))
        mujoco.mju_sparse2dense(dense, jacobian, data.efc_J_rownnz, data.efc_J_rowadr, data.efc_J_colind)
        jacobian = dense
    return data.efc_pos[rows].copy(), jacobian.reshape(-1, model.nv)[rows].copy()


@pytest.mark.parametrize("name", [name for name in EQUALITIES if "site" in name])
def test_a_constraint_between_sites_is_one_between_their_bodies(name: str) -> None:
    """MuJoCo itself measures the same with the engine's data put into a model of bodies."""
    theirs = _model(name).mujoco_model
    arrays = equality_arrays(theirs)
    weld = "weld" in name
    ours = mujoco.MjModel.from_xml_string(BODIES.format(equality=EQUALITIES["weld" if weld else "connect"]))
    ours.eq_obj1id[:], ours.eq_obj2id[:] = arrays["eq_obj1"], arrays["eq_obj2"]
    ours.eq_data[:, :11] = arrays["eq_data"]
    ours.eq_data[:, 11] = 0
    for seed in range(5):
        qpos = _random_qpos(_model(name), seed)
        for one, other in zip(_positions(theirs, qpos), _positions(ours, qpos), strict=True):
            assert np.abs(one).max() > 0.1
            assert np.abs(one[:3] - other[:3]).max() < 1e-12
            # rotations are measured in the second frame, the site's or the body's: lengths agree
            lengths = [np.linalg.norm(rows[3:], axis=0) for rows in (one, other)]
            assert np.abs(lengths[0] - lengths[1]).max() < 1e-12


def _closed_qpos(model: Model) -> np.ndarray:
    """Return a configuration in which MuJoCo sees the constraint met, by Gauss-Newton."""
    qpos = _random_qpos(model, 7)
    for _ in range(60):
        violation, jacobian = _positions(model.mujoco_model, qpos)
        step = np.linalg.lstsq(jacobian, -violation, rcond=None)[0]
        mujoco.mj_integratePos(model.mujoco_model, qpos, step, min(1.0, 0.5 / (np.linalg.norm(step) + 1e-12)))
    assert np.abs(violation).max() < 1e-12
    return qpos


@pytest.mark.parametrize("name", EQUALITIES)
def test_a_step_gives_back_a_part_of_the_violation(name: str) -> None:
    """J v+ = -erp g / h with MuJoCo's g and J; the weld's differ from ours by terms of second order in g."""
    model = load_model(
        BODIES.format(equality=EQUALITIES[name]), iterations=20000, erp=0.2, contact_model="hard"
    )
    qpos = _closed_qpos(model)
    mujoco.mj_integratePos(model.mujoco_model, qpos, np.random.default_rng(8).normal(size=model.nv), 1e-4)
    violation, jacobian = _positions(model.mujoco_model, qpos)
    step = Engine(threads=1).rollout(model, qpos, model.qvel0, np.zeros((1, 0)))
    expected = -0.2 * violation / model.timestep
    assert np.abs(expected).max() > 1e-3
    assert np.abs(jacobian @ step.qvel[1] - expected).max() < 2e-3 * np.abs(expected).max()


@pytest.mark.parametrize("name", EQUALITIES)
def test_a_closed_constraint_stays_closed(name: str) -> None:
    model = load_model(BODIES.format(equality=EQUALITIES[name]), timestep=0.0005, contact_model="hard")
    rollout = Engine(threads=1).rollout(model, _closed_qpos(model), model.qvel0, np.zeros((1000, 0)))
    assert np.abs(rollout.qvel[-1]).max() > 0.1
    for qpos in rollout.qpos[::100]:
        assert np.abs(_positions(model.mujoco_model, qpos)[0]).max() < DRIFT


@pytest.mark.parametrize("name", ["joint", "joint held", "connect", "connect world", "connect sites"])
def test_rows_are_mujocos_away_from_zero_too(name: str) -> None:
    model = load_model(
        BODIES.format(equality=EQUALITIES[name]), iterations=20000, erp=0.2, contact_model="hard"
    )
    for seed in range(3):
        qpos = _random_qpos(model, seed)
        qvel = np.random.default_rng(seed).normal(size=model.nv)
        step = Engine(threads=1).rollout(model, qpos, qvel, np.zeros((1, 0)))
        violation, jacobian = _positions(model.mujoco_model, qpos)
        expected = -0.2 * violation / model.timestep
        assert np.abs(expected).max() > 0.1
        assert np.abs(jacobian @ step.qvel[1] - expected).max() < 1e-8 * np.abs(expected).max()


def test_a_four_bar_linkage_closes_and_swings_as_a_parallelogram() -> None:
    """Equal cranks stay parallel: the coupler keeps its orientation, whatever the motion."""
    text = """<mujoco><option timestep="0.001"/><default><geom contype="0" conaffinity="0"/></default>
      <worldbody>
        <body name="left"><joint name="left" axis="0 1 0"/><geom type="capsule" fromto="0 0 0 0 0 -1"
          size="0.02"/><body name="coupler" pos="0 0 -1"><joint name="elbow" axis="0 1 0"/>
          <geom type="capsule" fromto="0 0 0 0.5 0 0" size="0.02"/></body></body>
        <body name="right" pos="0.5 0 0"><joint name="right" axis="0 1 0"/>
          <geom type="capsule" fromto="0 0 0 0 0 -1" size="0.02"/></body>
      </worldbody>
      <equality><connect body1="coupler" body2="right" anchor="0.5 0 0"/></equality></mujoco>"""
    model = load_model(text, contact_model="hard")
    angle = 0.8
    qpos = np.zeros(3)
    for joint, value in (("left", angle), ("elbow", -angle), ("right", angle)):
        qpos[model.joint_names.index(joint)] = value
    rollout = Engine(threads=1).rollout(model, qpos, np.zeros(3), np.zeros((2000, 0)))
    left, elbow, right = (
        rollout.qpos[:, model.joint_names.index(joint)] for joint in ("left", "elbow", "right")
    )
    assert left.min() < -0.7  # it swings through
    assert np.abs(left + elbow).max() < 1e-4
    assert np.abs(left - right).max() < 1e-4


def test_a_mimic_joint_follows_its_leader() -> None:
    text = """<mujoco><option timestep="0.001" gravity="0 0 0"/><worldbody>
      <body><joint name="thumb" axis="0 0 1"/><geom size="0.1" pos="0.2 0 0"/>
        <body pos="0.3 0 0"><joint name="finger" axis="0 0 1"/><geom size="0.1" pos="0.2 0 0"/></body></body>
      </worldbody><equality><joint joint1="finger" joint2="thumb" polycoef="0.1 -0.5 0 0 0"/></equality>
      <actuator><position joint="thumb" kp="20" kv="8"/></actuator></mujoco>"""
    model = load_model(text, contact_model="hard")
    rollout = Engine(threads=1).rollout(model, [0.0, 0.1], np.zeros(2), np.full((3000, 1), 0.6))
    assert rollout.qpos[-1, 0] == pytest.approx(0.6, abs=0.02)
    assert np.abs(rollout.qpos[:, 1] - (0.1 - 0.5 * rollout.qpos[:, 0])).max() < 1e-6


def test_inactive_constraints_are_noted() -> None:
    model = load_model(
        BODIES.format(equality='<connect body1="a" anchor="0 0 0" active="false"/>'), contact_model="hard"
    )
    assert len(model.arrays["eq_type"]) == 0
    assert "equality constraints that start inactive stay so (1)" in model.notes


@pytest.mark.parametrize("name", EQUALITIES)
def test_gradients_through_constraints(name: str) -> None:
    model = _model(name)
    engine, random = Engine(threads=1), np.random.default_rng(3)
    qpos, qvel = _random_qpos(model, 4), random.normal(size=model.nv)
    steps, by = 20, 1e-6
    rollout = engine.rollout(model, qpos, qvel, np.zeros((steps, 0)))
    bars = [random.normal(size=rollout.qpos.shape), random.normal(size=rollout.qvel.shape)]
    gradient = engine.backward(model, rollout, *bars, wrt=["qpos", "qvel"])
    direction = random.normal(size=(2, model.nv))
    ends, ambient = [], []
    for sign in (1, -1):
        moved = qpos.copy()
        mujoco.mj_integratePos(model.mujoco_model, moved, direction[0], sign * by)
        ambient.append(moved)
        other = engine.rollout(model, moved, qvel + sign * by * direction[1], np.zeros((steps, 0)))
        ends.append((bars[0] * other.qpos).sum() + (bars[1] * other.qvel).sum())
    difference = (ends[0] - ends[1]) / (2 * by)
    tangent = (ambient[0] - ambient[1]) / (2 * by)
    exact = gradient.qpos @ tangent + gradient.qvel @ direction[1]
    assert exact == pytest.approx(difference, rel=1e-6)


def test_equalities_of_tendons_are_of_the_soft_model() -> None:
    text = """<mujoco><worldbody><body name="b"><joint name="j"/><geom size="1"/></body></worldbody>
      <tendon><fixed name="t"><joint joint="j" coef="1"/></fixed></tendon>
      <equality><tendon name="e" tendon1="t"/></equality></mujoco>"""
    with pytest.raises(
        ModelError, match=r"equality 'e': an equality of tendons in contact_model=.* is not supp"
    ):
        load_model(text, contact_model="hard")

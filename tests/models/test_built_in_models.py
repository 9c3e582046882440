"""The built-in models against the figures they were written from."""

import mujoco
import numpy as np
import pytest

from revolute_engine import Engine, Model, load_model, models
from tests.robots import gymnasium_ant, laikago_urdf

NAMES = ["ant", "cartpole", "laikago", "laikago_torque", *(f"pendulum{count}" for count in range(1, 8))]
LEGS = ("FL", "FR", "RL", "RR")


def test_the_list_names_them_all() -> None:
    assert models() == NAMES


@pytest.mark.parametrize("name", NAMES)
def test_each_runs_and_has_a_finite_gradient(name: str) -> None:
    model, engine = load_model(name), Engine(threads=1)
    qpos = model.keyframes.get("home", model.qpos0)
    ctrl = np.tile(qpos[7:] if name == "laikago" else np.zeros(model.nu), (100, 1))
    rollout = engine.rollout(model, qpos, model.qvel0, ctrl)
    assert rollout.status == 0
    gradient = engine.backward(model, rollout, np.ones_like(rollout.qpos))
    assert np.isfinite(gradient.qpos).all() and gradient.ctrl.any()
    assert model.name == name
    assert model.warnings == []
    assert [note for note in model.notes if "zero pose" not in note] == []


def _frame(model: mujoco.MjModel, body: str) -> tuple[np.ndarray, np.ndarray]:
    """Return mass-free facts of a body: position and orientation in its parent."""
    index = model.body(body).id
    return model.body_pos[index], model.body_quat[index]


def _inertia(model: mujoco.MjModel, body: str) -> np.ndarray:
    """Return a body's rotational inertia about its mass centre in the body's axes."""
    index = model.body(body).id
    turn = np.zeros(9)
    mujoco.mju_quat2Mat(turn, model.body_iquat[index])
    turn = turn.reshape(3, 3)
    return turn @ np.diag(model.body_inertia[index]) @ turn.T


@pytest.mark.parametrize("name", ["laikago", "laikago_torque"])
def test_laikago_has_the_published_masses_geometry_and_inertias(name: str) -> None:
    ours = load_model(name).mujoco_model
    published = load_model(laikago_urdf(), base="free").mujoco_model
    links = [published.body(index).name for index in range(1, published.nbody)]
    assert sorted(links) == sorted(ours.body(index).name for index in range(1, ours.nbody))
    for link in links:
        assert ours.body(link).mass == published.body(link).mass
        assert np.array_equal(ours.body(link).ipos, published.body(link).ipos)
        assert np.allclose(_inertia(ours, link), _inertia(published, link), rtol=0, atol=1e-12), link
        if link != "chassis":
            for mine, theirs in zip(_frame(ours, link), _frame(published, link), strict=True):
                assert np.allclose(mine, theirs, rtol=0, atol=1e-12), link
    for leg in LEGS:
        for joint in ("hip_motor_2_chassis", "upper_leg_2_hip_motor", "lower_leg_2_upper_leg"):
            joint_name = f"{leg}_{joint}_joint"
            assert np.array_equal(ours.joint(joint_name).axis, published.joint(joint_name).axis)
            assert not ours.joint(joint_name).limited
    assert ours.body_mass.sum() == pytest.approx(25.567, abs=1e-12)


def test_laikago_stands_on_its_toes() -> None:
    model = load_model("laikago")
    order = [f"{leg}_{part}" for leg in LEGS for part in ("hip", "upper", "lower")]
    assert model.actuator_names == order
    assert [name.split("_")[0] for name in model.joint_names[1:]] == [leg for leg in LEGS for _ in range(3)]
    assert np.array_equal(model.arrays["act_dof"], np.arange(6, 18))
    assert (model.arrays["act_gain"] == [220, 0, 0]).all()
    assert (model.arrays["act_bias"] == [0, -220, -4]).all()
    assert model.timestep == 2e-3
    home = model.keyframes["home"]
    assert home.tolist() == [0, 0, 0.458476, 1, 0, 0, 0, *[0, 0.1, -0.8] * 4]

    # only toe and floor touch, with friction 0.8
    names = model.geom_names
    pairs = zip(model.arrays["pair_geom1"], model.arrays["pair_geom2"], strict=True)
    assert [(names[first], names[second]) for first, second in pairs] == [
        ("floor", f"toe{leg}") for leg in LEGS
    ]
    toes = [names.index(f"toe{leg}") for leg in LEGS]
    assert model.geom_friction[[names.index("floor"), *toes], 0].tolist() == [0.8] * 5

    # in both poses that the file gives, the toes just touch
    data = mujoco.MjData(model.mujoco_model)
    for pose in (home, model.qpos0):
        data.qpos[:] = pose
        mujoco.mj_forward(model.mujoco_model, data)
        assert np.abs(data.geom_xpos[toes, 2] - 0.03).max() < 1e-6
    assert np.array_equal(load_model("laikago_torque").keyframes["home"], home)


def test_shapes_without_a_name_are_called_by_their_body() -> None:
    model = load_model("laikago")
    bodies = [model.body_names[index] for index in model.arrays["geom_bodyid"]]
    shapes = dict(zip(model.geom_names, bodies, strict=True))
    assert len(shapes) == model.ngeom
    assert shapes["chassis/0"] == "chassis" and shapes["FL_hip_motor/0"] == "FL_hip_motor"
    assert shapes["toeFL"] == bodies[model.geom_names.index("toeFL")]


def test_laikago_settles_where_mujoco_settles() -> None:
    for contact_model, allowed in (("mujoco", 1e-9), ("hard", 1e-3)):
        model = load_model("laikago", contact_model=contact_model)
        home = model.keyframes["home"]
        rollout = Engine(threads=1).rollout(model, home, model.qvel0, np.tile(home[7:], (1000, 1)))
        theirs = model.mujoco_model
        if contact_model == "hard":
            # as stiff as the step allows: toes sink by 0.15 mm, with MuJoCo's default by 1.7 mm
            theirs.geom_solref[:, 0] = 2 * model.timestep
        data = mujoco.MjData(theirs)
        data.qpos[:], data.ctrl[:] = home, home[7:]
        mujoco.mj_step(theirs, data, 1000)
        assert np.abs(rollout.qpos[-1, :3] - data.qpos[:3]).max() < allowed


@pytest.mark.parametrize("count", range(1, 8))
def test_pendulums_are_the_published_chains(count: int) -> None:
    model = load_model(f"pendulum{count}")
    arrays = model.arrays
    assert (model.nq, model.nv, model.nu, model.nbody) == (count, count, count, count + 2)
    assert arrays["gravity"].tolist() == [0, 0, -9.8] and model.timestep == pytest.approx(1 / 60, rel=1e-15)
    assert model.body_mass.tolist() == [0, 1, *[2.16] * (count - 1), 0.01]
    assert arrays["body_ipos"].tolist() == [[0, 0, 0], *[[0, 0.5, 0]] * count, [0, 0, 0]]
    assert arrays["body_pos"].tolist() == [*[[0, 0, 0]] * 2, *[[0, 0.5, 0]] * count]
    inertias = [[0.00494875, 0.00494174, 0.002219], *[[0.00539427, 0.0048979, 0.00311573]] * (count - 1)]
    for index, inertia in enumerate(inertias):
        tensor = _inertia(model.mujoco_model, f"link{index}")
        assert np.allclose(tensor, np.diag(inertia), rtol=0, atol=1e-15)
    assert np.allclose(_inertia(model.mujoco_model, "tip"), 1e-4 * np.eye(3), rtol=0, atol=1e-18)
    assert (arrays["jnt_axis"] == [1, 0, 0]).all() and not arrays["jnt_limited"].any()
    assert (arrays["act_gear"] == 10).all() and (model.ctrlrange == [-1, 1]).all()
    assert arrays["pair_geom1"].size == 0


def test_the_ant_is_like_gymnasiums() -> None:
    ours, theirs = load_model("ant"), load_model(gymnasium_ant())
    for name in ("nq", "nv", "nu", "timestep"):
        assert getattr(ours, name) == getattr(theirs, name)
    for name in ("dof_armature", "dof_damping", "act_gear"):
        assert sorted(ours.arrays[name]) == sorted(theirs.arrays[name]), name
    sizes = [sorted(model.arrays["geom_size"][model.arrays["geom_type"] != 0, 0]) for model in (ours, theirs)]
    assert sizes[0] == sizes[1]
    assert ours.ctrlrange.tolist() == theirs.ctrlrange.tolist()
    assert ours.body_mass.sum() == pytest.approx(theirs.body_mass.sum(), rel=1e-12)
    # floor against torso and the twelve capsules of the legs
    assert len(ours.arrays["pair_geom1"]) == len(theirs.arrays["pair_geom1"]) == 13


def test_the_ant_stands_on_its_feet() -> None:
    model = load_model("ant")
    rollout = Engine(threads=1).rollout(model, model.keyframes["home"], model.qvel0, np.zeros((300, 8)))
    heights = rollout.qpos[:, 2]
    assert heights.min() > 0.3 and heights.max() < 0.6
    assert np.abs(rollout.qpos[-1, :2]).max() < 0.01


def _energy(model: Model, qpos: np.ndarray, qvel: np.ndarray) -> float:
    """Return kinetic and potential energy of a state by MuJoCo's formulae."""
    data = mujoco.MjData(model.mujoco_model)
    data.qpos[:], data.qvel[:] = qpos, qvel
    mujoco.mj_forward(model.mujoco_model, data)
    mujoco.mj_energyPos(model.mujoco_model, data)
    mujoco.mj_energyVel(model.mujoco_model, data)
    return float(data.energy.sum())


def test_the_cartpole_keeps_its_energy() -> None:
    model = load_model("cartpole", timestep=1e-4)
    rollout = Engine(threads=1).rollout(model, [0.0, 0.5], [0.0, 0.0], np.zeros((20_000, 1)))
    start, end = (_energy(model, rollout.qpos[step], rollout.qvel[step]) for step in (0, -1))
    assert abs(end - start) < 1e-3
    assert np.abs(rollout.qpos[:, 0]).max() < 0.5

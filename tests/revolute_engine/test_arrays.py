"""The compiled arrays against MuJoCo's model."""

import mujoco
import numpy as np
import pytest

from revolute_engine import load_model
from revolute_engine._arrays import _COPIED_INTEGER, _COPIED_REAL
from tests.robots import THREE_TREES, gymnasium_ant


@pytest.mark.parametrize("text", [THREE_TREES, gymnasium_ant().read_text()], ids=["three trees", "ant"])
def test_fields_are_mujocos(text: str) -> None:
    model, theirs = load_model(text), mujoco.MjModel.from_xml_string(text)
    for name in (*_COPIED_REAL, *_COPIED_INTEGER):
        assert np.array_equal(model.arrays[name], getattr(theirs, name)), name
    for name, value in model.arrays.items():
        if isinstance(value, np.ndarray):
            assert value.dtype in (np.float64, np.int32) and value.flags.c_contiguous, name
            assert not value.flags.writeable, name


def test_actuator_forces_are_mujocos() -> None:
    model, theirs = load_model(THREE_TREES), mujoco.MjModel.from_xml_string(THREE_TREES)
    data = mujoco.MjData(theirs)
    random = np.random.default_rng(1)
    arrays = model.arrays
    for _ in range(20):
        data.qpos[:] = random.normal(size=model.nq)
        data.qvel[:] = random.normal(size=model.nv)
        data.ctrl[:] = random.normal(size=model.nu)
        mujoco.mj_normalizeQuat(theirs, data.qpos)
        mujoco.mj_forward(theirs, data)
        length = arrays["act_gear"] * data.qpos[arrays["act_qpos"]]
        velocity = arrays["act_gear"] * data.qvel[arrays["act_dof"]]
        low, high = model.ctrlrange.T
        terms = np.stack([np.ones_like(length), length, velocity], axis=1)
        gain, bias = ((arrays[name] * terms).sum(axis=1) for name in ("act_gain", "act_bias"))
        force = gain * np.clip(data.ctrl, low, high) + bias
        limited = arrays["act_forcelimited"] == 1
        force[limited] = np.clip(force, *arrays["act_forcerange"].T)[limited]
        assert np.allclose(force, data.actuator_force, rtol=1e-13, atol=1e-13)


@pytest.mark.parametrize(
    ("gear", "own", "expected"),
    [
        ("1", "", [-3, 5]),
        ("2", "", [-1.5, 2.5]),
        ("-2", "", [-2.5, 1.5]),
        ("1", 'forcerange="-1 9" forcelimited="true"', [-1, 5]),
    ],
)
def test_a_limit_on_the_joints_force_limits_its_actuator(gear: str, own: str, expected: list[float]) -> None:
    text = (
        '<mujoco><worldbody><body><joint name="j" actuatorfrcrange="-3 5"/><geom '
        'size="1"/></body></worldbody>'
        f'<actuator><motor joint="j" gear="{gear}" {own}/></actuator></mujoco>'
    )
    model = load_model(text)
    assert model.arrays["act_forcelimited"].tolist() == [1]
    assert model.arrays["act_forcerange"].tolist() == [expected]


def _flagged(flag: str) -> str:
    return (
        f'<mujoco><option><flag {flag}="disable"/></option><worldbody><geom type="plane" size="0 0 1"/>'
        '<body pos="0 0 2"><joint name="j" range="-1 1" stiffness="2" damping="3" frictionloss="1"/>'
        '<geom size="1" pos="1 0 0"/></body></worldbody><equality><joint joint1="j"/></equality>'
        '<actuator><position joint="j" kp="3" ctrllimited="true" ctrlrange="-1 1"/></actuator></mujoco>'
    )


@pytest.mark.parametrize(
    ("flag", "zeroed"),
    [
        ("gravity", {"gravity"}),
        ("spring", {"jnt_stiffness"}),
        ("damper", {"dof_damping"}),
        ("clampctrl", {"act_ctrllimited"}),
        ("actuation", {"act_gain", "act_bias"}),
        ("contact", {"contact"}),
        ("limit", {"limits"}),
        ("frictionloss", {"dry_friction"}),
        ("equality", {"eq_active"}),
        ("constraint", {"contact", "limits", "dry_friction", "eq_active"}),
        ("warmstart", set()),
    ],
)
def test_disabled_parts_are_zero(flag: str, zeroed: set[str]) -> None:
    arrays = dict(load_model(_flagged(flag)).arrays)
    arrays["eq_active"] = len(arrays["eq_type"])
    parts = ("gravity", "jnt_stiffness", "dof_damping", "act_ctrllimited", "act_gain", "act_bias")
    switches = ("contact", "limits", "dry_friction", "eq_active")
    assert {name for name in (*parts, *switches) if not np.any(arrays[name])} == zeroed


def test_actuators_of_a_disabled_group_have_no_force() -> None:
    text = (
        '<mujoco><option actuatorgroupdisable="2"/><worldbody><body><joint name="j"/><geom '
        'size="1"/></body></worldbody>'
        '<actuator><position joint="j" kp="3"/><position joint="j" kp="5" group="2"/></actuator></mujoco>'
    )
    arrays = load_model(text).arrays
    assert arrays["act_gain"].tolist() == [[3, 0, 0], [0, 0, 0]]
    assert arrays["act_bias"].tolist() == [[0, -3, 0], [0, 0, 0]]


def test_a_mesh_has_the_vertices_of_its_hull() -> None:
    corners = np.array([[x, y, z] for x in (0, 1) for y in (0, 2) for z in (0, 3)], dtype=float)
    inside = np.array([[0.5, 1, 1.5], [0.4, 0.8, 2]])
    numbers = " ".join(f"{value}" for value in np.concatenate([corners, inside]).ravel())
    text = (
        f'<mujoco><asset><mesh name="m" vertex="{numbers}"/></asset><worldbody><geom type="plane" size="0 '
        '0 1"/>'
        '<body pos="0 0 9"><freejoint/><geom type="mesh" mesh="m"/></body></worldbody></mujoco>'
    )
    model = load_model(text)
    arrays = model.arrays
    assert arrays["hull_num"].tolist() == [0, 8]
    rotation = np.zeros(9)
    mujoco.mju_quat2Mat(rotation, arrays["geom_quat"][1])
    found = arrays["hull_vert"] @ rotation.reshape(3, 3).T + arrays["geom_pos"][1]
    # mesh vertices are single precision in MuJoCo
    order = np.lexsort(np.round(found, 3).T)
    assert np.allclose(found[order], corners[np.lexsort(corners.T)], atol=1e-6)

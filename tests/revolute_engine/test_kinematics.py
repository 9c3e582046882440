"""Poses, velocities, sums over subtrees and Jacobians against MuJoCo; derivatives against differences."""

from __future__ import annotations

import mujoco
import numpy as np
import pytest

from revolute.contract.errors import ArgumentError
from revolute_engine import Engine, load_model
from revolute_engine.parameters import default_parameter

from .measured_scenes import scene

ENGINE = Engine(threads=1)
MODEL = load_model(scene(), contact_model="mujoco")
THEIRS = MODEL.mujoco_model
POSES = (
    "body_pos",
    "body_quat",
    "body_mat",
    "body_com",
    "geom_pos",
    "geom_mat",
    "site_pos",
    "site_mat",
    "subtree_com",
)
MOTIONS = ("body_linvel", "body_angvel", "geom_linvel", "site_angvel", "subtree_linvel", "subtree_angmom")
EQUAL = 1e-12
"""A few thousand roundings of numbers of size 1 to 10."""


def data_at(seed: int) -> mujoco.MjData:
    random = np.random.default_rng(seed)
    data = mujoco.MjData(THEIRS)
    data.qpos[:] = random.normal(size=THEIRS.nq)
    mujoco.mj_normalizeQuat(THEIRS, data.qpos)
    data.qvel[:] = random.normal(size=THEIRS.nv)
    mujoco.mj_forward(THEIRS, data)
    mujoco.mj_subtreeVel(THEIRS, data)
    return data


def velocities(data: mujoco.MjData, kind: int, count: int) -> tuple[np.ndarray, np.ndarray]:
    """Return linear and angular velocities of all objects of a kind in the world frame."""
    both = np.zeros((count, 6))
    for index in range(count):
        mujoco.mj_objectVelocity(THEIRS, data, kind, index, both[index], 0)
    return both[:, 3:], both[:, :3]


@pytest.mark.parametrize("seed", range(3))
def test_quantities_are_mujocos(seed: int) -> None:
    data = data_at(seed)
    found = ENGINE.measure(MODEL, (*POSES, *MOTIONS), ENGINE.states_to_measure(MODEL, data.qpos, data.qvel))
    body, geom, site = (mujoco.mjtObj.mjOBJ_XBODY, mujoco.mjtObj.mjOBJ_GEOM, mujoco.mjtObj.mjOBJ_SITE)
    expected = {
        "body_pos": data.xpos,
        "body_quat": data.xquat,
        "body_mat": data.xmat,
        "body_com": data.xipos,
        "geom_pos": data.geom_xpos,
        "geom_mat": data.geom_xmat,
        "site_pos": data.site_xpos,
        "site_mat": data.site_xmat,
        "subtree_com": data.subtree_com,
        "body_linvel": velocities(data, body, THEIRS.nbody)[0],
        "body_angvel": velocities(data, body, THEIRS.nbody)[1],
        "geom_linvel": velocities(data, geom, THEIRS.ngeom)[0],
        "site_angvel": velocities(data, site, THEIRS.nsite)[1],
        "subtree_linvel": data.subtree_linvel,
        "subtree_angmom": data.subtree_angmom,
    }
    for name, array in expected.items():
        np.testing.assert_allclose(found[name], array, rtol=EQUAL, atol=EQUAL, err_msg=name)


def test_a_frame_close_to_the_inertial_one_is_that_one_as_in_mujoco() -> None:
    text = """<mujoco><worldbody><body><freejoint/>
    <inertial pos=".1 .2 .3" quat="1 1 0 0" mass="1" diaginertia="3 2 1"/>
    <geom size=".1" pos=".1000005 .2 .3" quat="1 1 2e-7 0"/>
    <site name="tip" pos=".4 0 0" quat="1 2e-7 0 0"/></body></worldbody></mujoco>"""
    model = load_model(text, contact_model="mujoco")
    data = mujoco.MjData(mujoco.MjModel.from_xml_string(text))
    data.qpos[3:] = [0.5, -0.5, 0.5, 0.5]
    mujoco.mj_kinematics(mujoco.MjModel.from_xml_string(text), data)
    states = ENGINE.states_to_measure(model, data.qpos, np.zeros(6))
    found = ENGINE.measure(model, ("geom_pos", "geom_mat", "site_mat"), states)
    for name, expected in (
        ("geom_pos", data.geom_xpos),
        ("geom_mat", data.geom_xmat),
        ("site_mat", data.site_xmat),
    ):
        np.testing.assert_allclose(np.reshape(found[name], np.shape(expected)), expected, rtol=0, atol=1e-14)


def test_jacobians_are_mujocos() -> None:
    data = data_at(5)
    names = ("site_pos:sc", "body_pos:w", "subtree_com:b")
    found = ENGINE.measure_jacobian(MODEL, names, ENGINE.states_to_measure(MODEL, data.qpos))
    expected = np.zeros((3, 3, THEIRS.nv))
    mujoco.mj_jacSite(THEIRS, data, expected[0], None, THEIRS.site("sc").id)
    mujoco.mj_jacBody(THEIRS, data, expected[1], None, THEIRS.body("w").id)
    mujoco.mj_jacSubtreeCom(THEIRS, data, expected[2], THEIRS.body("b").id)
    for name, array in zip(names, expected, strict=True):
        np.testing.assert_allclose(found[name], array, rtol=EQUAL, atol=EQUAL, err_msg=name)


def test_cotangents_are_the_derivative() -> None:
    data, random = data_at(7), np.random.default_rng(8)
    names = (*POSES, *MOTIONS, "geom_quat", "site_quat", "site_linvel")
    start = {"qpos": data.qpos.copy(), "qvel": data.qvel.copy()}
    start |= {name: default_parameter(MODEL, name) for name in ("body_mass", "body_ipos", "body_inertia")}
    bars: dict[str, np.ndarray] = {}

    def value(inputs: dict[str, np.ndarray]) -> float:
        params = {name: array for name, array in inputs.items() if name.startswith("body")}
        states = ENGINE.states_to_measure(MODEL, inputs["qpos"], inputs["qvel"], params=params)
        found = ENGINE.measure(MODEL, names, states)
        for name, array in found.items():
            bars.setdefault(name, random.normal(size=array.shape))
        return sum(float((found[name] * bars[name]).sum()) for name in names)

    value(start)
    states = ENGINE.states_to_measure(MODEL, start["qpos"], start["qvel"])
    gradient = ENGINE.measure_backward(MODEL, bars, states, wrt=list(start))
    for name, array in start.items():
        # masses and moments of zero stay zero
        direction = random.normal(size=array.shape) * ((array != 0) if name != "body_ipos" else 1)

        def along(distance: float, name: str = name, direction: np.ndarray = direction) -> float:
            return value({**start, name: start[name] + distance * direction})

        step = 1e-3 if name != "body_inertia" else 1e-4
        difference = (8 * (along(step) - along(-step)) - (along(2 * step) - along(-2 * step))) / (12 * step)
        assert difference == pytest.approx(float((gradient[name] * direction).sum()), rel=1e-8, abs=1e-8), (
            name
        )


def test_a_batch_gives_the_bits_of_each_state_alone() -> None:
    random = np.random.default_rng(3)
    states = random.normal(size=(11, 2, MODEL.nq)), random.normal(size=(11, 2, MODEL.nv))
    together = ENGINE.measure(MODEL, (*POSES, *MOTIONS), ENGINE.states_to_measure(MODEL, *states))
    bars = {name: random.normal(size=array.shape) for name, array in together.items()}
    pulled = ENGINE.measure_backward(MODEL, bars, ENGINE.states_to_measure(MODEL, *states))
    for place in ((0, 0), (7, 1), (10, 0)):
        own = ENGINE.states_to_measure(MODEL, states[0][place], states[1][place])
        for name, array in ENGINE.measure(MODEL, (*POSES, *MOTIONS), own).items():
            np.testing.assert_array_equal(array, together[name][place], err_msg=name)
        alone = ENGINE.measure_backward(MODEL, {name: bar[place] for name, bar in bars.items()}, own)
        for name, array in alone.items():
            np.testing.assert_array_equal(array, pulled[name][place], err_msg=name)


@pytest.mark.parametrize(
    ("names", "text"),
    [
        (["site_pos:nowhere"], "quantities: expected a site among world, sa, box"),
        (["place"], "quantities: expected names among body_pos"),
        ([], "quantities: expected at least one name"),
        (["sensor:toe"], "ctrl: expected controls, which sensor:toe depends on, got none"),
    ],
)
def test_mistakes_are_named(names: list[str], text: str) -> None:
    with pytest.raises(ArgumentError) as caught:
        ENGINE.measure(MODEL, names, ENGINE.states_to_measure(MODEL, MODEL.qpos0))
    assert text in str(caught.value)

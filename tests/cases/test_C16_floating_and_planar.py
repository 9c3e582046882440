"""Case C16: URDF joints of type floating and planar."""

import numpy as np
import pytest

from revolute.contract.errors import ModelError
from revolute_engine import Engine, load_model
from testbed.case_files import case_file, expected

H, STEPS = 1e-3, 500


def test_a_floating_joint_is_free_and_starts_at_its_origin() -> None:
    numbers = expected("C16")
    model = load_model(case_file("C16", "floating.urdf"), timestep=H)
    assert model.nv == numbers["nv"]["floating"]
    assert {"base", "b"} < set(model.body_names)
    assert model.joint_names == ["free"]
    start = np.array(model.qpos0)
    assert np.abs(start - [0, 0, 1, np.cos(0.25), 0, 0, np.sin(0.25)]).max() < 1e-12
    rollout = Engine(threads=1).rollout(model, start, model.qvel0, np.zeros((STEPS, model.nu)))
    assert abs(rollout.qpos[-1, 2] - numbers["z_500"]) < 1e-12
    assert np.abs(np.delete(rollout.qpos[-1] - start, 2)).max() < 1e-12


def test_a_planar_joint_slides_and_turns() -> None:
    model, engine = load_model(case_file("C16", "planar.urdf"), timestep=H), Engine(threads=1)
    assert model.nv == expected("C16")["nv"]["planar"] and model.joint_types == ["slide", "slide", "hinge"]
    assert np.abs(model.arrays["body_pos"][model.body_names.index("b")] - [0.2, 0, 0.1]).max() == 0
    still = engine.rollout(model, model.qpos0, model.qvel0, np.zeros((STEPS, 3)))
    assert np.abs(still.qpos).max() < 1e-12
    # a force of 1 N along x, a turn about z whatever the angle
    for turn in (0.0, 0.7):
        pushed = engine.rollout(model, [0.0, 0.0, turn], model.qvel0, [[1.0, 0.0, 0.1]])
        assert np.abs(pushed.qvel[1] / H - [1, 0, 1]).max() < 1e-12


def test_a_floating_joint_on_something_that_moves_is_refused_by_name() -> None:
    text = case_file("C16", "floating.urdf").read_text()
    with pytest.raises(ModelError, match=r"joint 'free': type floating is supported below a fixed base"):
        load_model(text, base="free")
    turns = (
        '<link name="arm"/><joint name="h" type="continuous"><parent link="base"/><child link="arm"/></joint>'
    )
    text = text.replace('<parent link="base"/>', '<parent link="arm"/>').replace(
        "</robot>", turns + "</robot>"
    )
    with pytest.raises(ModelError, match=r"joint 'free': .* got one below link 'arm'"):
        load_model(text)


def test_a_floating_joint_below_fixed_links_starts_where_they_are() -> None:
    text = case_file("C16", "floating.urdf").read_text()
    mount = '<link name="mount"/><joint name="f" type="fixed"><parent link="base"/><child link="mount"/>'
    mount += f'<origin xyz="2 0 0" rpy="0 0 {np.pi / 2!r}"/></joint>'
    text = text.replace('<parent link="base"/>', '<parent link="mount"/>').replace(
        "</robot>", mount + "</robot>"
    )
    text = text.replace('xyz="0 0 1"', 'xyz="3 0 1"')
    model = load_model(text)
    half = (np.pi / 2 + 0.5) / 2
    assert np.abs(model.qpos0 - [2, 3, 1, np.cos(half), 0, 0, np.sin(half)]).max() < 1e-12

"""Faults in the tree of links and joints of a URDF have a text of their own."""

import warnings

import mujoco
import numpy as np
import pytest

from revolute.contract.errors import ModelError
from revolute_engine import Engine, load_model

INERTIAL = '<inertial><mass value="1"/><inertia ixx="1" iyy="1" izz="1" ixy="0" ixz="0" iyz="0"/></inertial>'


def _robot(links: str, *joints: str) -> str:
    return f'<robot name="r">{"".join(_link(name) for name in links.split())}{"".join(joints)}</robot>'


def _link(name: str) -> str:
    return f'<link name="{name}">\n{INERTIAL}</link>'


def _joint(
    name: str,
    parent: str,
    child: str,
    *,
    kind: str = "revolute",
    limit: str = 'lower="-1" upper="1"',
    inner: str = "",
) -> str:
    return (
        f'<joint name="{name}" type="{kind}"><parent link="{parent}"/><child link="{child}"/>'
        f'<axis xyz="0.6 0 0.8"/><limit {limit} effort="1" velocity="1"/>{inner}</joint>'
    )


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (
            _robot("a b b", _joint("j", "a", "b")),
            "r.urdf: link 'b': expected the name once, got it at lines 2 and 3; rename one",
        ),
        (
            _robot("a b c", _joint("j", "a", "b"), "\n" + _joint("j", "b", "c")),
            "r.urdf: joint 'j': expected the name once, got it at lines 4 and 5; rename one",
        ),
        (
            _robot("a b c", _joint("j", "a", "b"), _joint("k", "a", "c"), _joint("l", "b", "c")),
            "r.urdf: link 'c': expected one joint to carry it, got 'k' and 'l'; connect the second by "
            "another link",
        ),
        (
            _robot("a b c", _joint("j", "b", "c"), _joint("k", "c", "b")),
            "r.urdf: link 'b', 'c': expected a tree, got links that carry each other in a circle; take one "
            "of their joints away",
        ),
        (
            _robot("a b", _joint("j", "q", "b")),
            "r.urdf: joint 'j': expected the name of a link as parent, got 'q'; correct it",
        ),
        (
            _robot(
                "a b c",
                _joint("j", "a", "b", inner='<mimic joint="k"/>'),
                _joint("k", "b", "c", inner='<mimic joint="j"/>'),
            ),
            "r.urdf: joint 'j': mimic: expected a joint that does not follow it, got 'k', which does; let "
            "one of them lead",
        ),
    ],
)
def test_what_is_no_tree_is_refused_by_name(text: str, message: str) -> None:
    with pytest.raises(ModelError) as caught:
        load_model(text, name="r.urdf")
    assert str(caught.value) == message


def test_a_loose_link_is_a_warning_and_named_where_the_base_is_to_be_free() -> None:
    text = _robot("a b c", _joint("j", "a", "b"))
    with pytest.warns(UserWarning, match="link 'c': no joint connects it; it stays fixed in the world"):
        load_model(text)
    with pytest.raises(ModelError, match="expected one body attached to the world, got 2 \\('a', 'c'\\)"):
        load_model(text, base="free")


@pytest.mark.parametrize(
    ("limit", "warning"),
    [
        ("", "joint 'j': <limit> gives neither lower nor upper; it moves without limits"),
        (
            'lower="0.5" upper="0.5"',
            "joint 'j': lower and upper limit are both 0.5; it moves without limits, type fixed holds it",
        ),
    ],
)
def test_limits_without_a_range_are_a_warning(limit: str, warning: str) -> None:
    with pytest.warns(UserWarning, match=warning):
        model = load_model(_robot("a b", _joint("j", "a", "b", limit=limit)))
    assert model.warnings == [warning]
    assert model.arrays["jnt_limited"].tolist() == [0]


@pytest.mark.parametrize(("limit", "wanted"), [('lower="-1"', [-1, 0]), ('upper="1"', [0, 1])])
def test_an_end_that_is_not_given_is_zero(limit: str, wanted: list[float]) -> None:
    model = load_model(_robot("a b", _joint("j", "a", "b", limit=limit)))
    assert model.arrays["jnt_limited"].tolist() == [1]
    assert model.arrays["jnt_range"].tolist() == [wanted]


@pytest.mark.parametrize("kind", ["revolute", "prismatic"])
def test_a_follower_starts_where_its_leader_puts_it(kind: str) -> None:
    place = '<origin xyz="0.1 0.2 0.3" rpy="0.3 0.4 0.5"/>'
    text = _robot(
        "a b c d",
        _joint("first", "a", "b"),
        _joint("third", "c", "d", inner=place + '<mimic joint="second" multiplier="-0.5" offset="0.1"/>'),
        _joint(
            "second", "b", "c", kind=kind, inner=place + '<mimic joint="first" multiplier="2" offset="0.3"/>'
        ),
    )
    model = load_model(text)
    start = dict(zip(model.joint_names, model.qpos0.tolist(), strict=True))
    assert start == pytest.approx({"first": 0, "second": 0.3, "third": -0.05}, abs=1e-15)

    # positions mean what they mean to MuJoCo, which leaves the follower at 0
    theirs = mujoco.MjModel.from_xml_string(text)
    for qpos in (model.qpos0, [0.2, -0.3, 0.4]):
        poses = []
        for compiled in (model.mujoco_model, theirs):
            data = mujoco.MjData(compiled)
            data.qpos[:] = qpos
            mujoco.mj_kinematics(compiled, data)
            poses.append(np.concatenate([data.body("d").xpos, data.body("d").xmat]))
        assert np.abs(poses[0] - poses[1]).max() < 1e-14

    # at rest there, nothing pulls
    rollout = Engine(threads=1).rollout(
        model, model.qpos0, model.qvel0, np.zeros((1, model.nu)), params={"gravity": np.zeros(3)}
    )
    assert np.abs(rollout.qvel[-1]).max() < 1e-13


def test_chains_that_mujoco_refuses_are_refused_at_once() -> None:
    count = 1500
    links = "".join(_link(f"l{i}") for i in range(count + 1))
    joints = "".join(_joint(f"j{i}", f"l{i}", f"l{i + 1}") for i in range(count))
    message = (
        "link 'l1024': expected chains of at most 1023 bodies, as MuJoCo's compiler takes, got a longer one"
    )
    with warnings.catch_warnings(), pytest.raises(ModelError, match=message):
        load_model(f'<robot name="r">{links}{joints}</robot>')

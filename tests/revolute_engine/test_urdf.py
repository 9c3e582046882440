"""What MuJoCo would pass over in silence in a URDF is refused, warned of or noted, by name."""

from __future__ import annotations

import warnings

import pytest

from revolute.contract.errors import ModelError
from revolute_engine import load_model
from revolute_engine._model import Model

LIMIT = '<limit lower="-1" upper="1" effort="3"/>'


def _urdf(
    *,
    mass: str = "1",
    kind: str = "revolute",
    limit: str = LIMIT,
    joint: str = "",
    link: str = "",
    inertial: str = "",
) -> str:
    return (
        f'<robot name="r"><link name="base"/><link name="l1"><inertial><mass value="{mass}"/>'
        f'<inertia ixx="1" iyy="1" izz="1" ixy="0" ixz="0" iyz="0"/>{inertial}</inertial>{link}</link>'
        f'<joint name="j" type="{kind}"><parent link="base"/><child link="l1"/><axis xyz="0 1 0"/>'
        f"{limit}{joint}</joint></robot>"
    )


def _load(text: str) -> Model:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)
        return load_model(text, name="robot.urdf")


@pytest.mark.parametrize("base", ["fixed", "free"])
def test_negative_masses_are_refused(base: str) -> None:
    with pytest.raises(ModelError) as caught:
        load_model(_urdf(mass="-1"), name="robot.urdf", base=base)
    assert str(caught.value) == (
        "robot.urdf: link 'l1': expected a mass >= 0, got -1; give the link's mass in kg"
    )


@pytest.mark.parametrize("kind", ["revolute", "prismatic"])
def test_limits_in_the_wrong_order_are_refused(kind: str) -> None:
    with pytest.raises(ModelError) as caught:
        load_model(_urdf(kind=kind, limit='<limit lower="2" upper="1" effort="3"/>'), name="robot.urdf")
    assert str(caught.value) == (
        "robot.urdf: joint 'j': expected lower <= upper, got lower 2 and upper 1; exchange them"
    )


def test_a_continuous_joint_has_no_limits_to_check() -> None:
    model = _load(_urdf(kind="continuous", limit='<limit lower="2" upper="1" effort="3"/>'))
    assert model.arrays["jnt_limited"].tolist() == [0] and not model.warnings


@pytest.mark.parametrize(
    ("joint", "named"),
    [
        ('<joint name="j" range="1 -1"/>', "joint 'j'"),
        ('<joint name="j" range="1 -1" limited="true"/>', "joint 'j'"),
        ('<joint type="slide" range="1 -1"/>', "joint 0 of body 'b'"),
    ],
)
def test_ranges_of_an_mjcf_must_ascend(joint: str, named: str) -> None:
    text = f'<mujoco><worldbody><body name="b">{joint}<geom size="0.1"/></body></worldbody></mujoco>'
    with pytest.raises(ModelError) as caught:
        load_model(text, name="a.xml")
    assert str(caught.value) == (
        f"a.xml: {named}: expected a range that ascends, got [1, -1]; "
        "exchange its ends, or set limited to false"
    )


def test_a_range_that_is_turned_off_may_be_anything() -> None:
    joint = '<joint name="j" range="1 -1" limited="false"/>'
    text = f'<mujoco><worldbody><body name="b">{joint}<geom size="0.1"/></body></worldbody></mujoco>'
    assert load_model(text).arrays["jnt_limited"].tolist() == [0]


@pytest.mark.parametrize(
    ("text", "warning"),
    [
        (_urdf(limit=""), "joint 'j': revolute without <limit>; it moves without limits"),
        (
            _urdf(limit='<limit lower="-1" upper="1" effort="-5"/>'),
            "joint 'j': effort -5 is negative; its size is the limit",
        ),
        (
            _urdf(joint='<axes xyz="1 0 0"/>'),
            "joint 'j': <axes> at line 1 was not read; URDF has <axis>",
        ),
        (
            _urdf(link="<colision/>"),
            "link 'l1': <colision> at line 1 was not read; URDF has <collision>",
        ),
        (
            _urdf(inertial="<mas/>"),
            "link 'l1': <mas> at line 1 was not read; URDF has <mass>",
        ),
    ],
)
def test_slips_of_the_pen_are_warned_of(text: str, warning: str) -> None:
    model = _load(text)
    assert model.warnings == [warning] and warning in model.notes


def test_elements_of_other_programs_are_noted() -> None:
    model = _load(_urdf(joint="<joint_properties/><safety_controller/>", link="<contact/>"))
    assert not model.warnings
    noted = "<contact> (1), <joint_properties> (1), <safety_controller> (1)"
    assert f"elements that are not URDF's were not read: {noted}" in model.notes

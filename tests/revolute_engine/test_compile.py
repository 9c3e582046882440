"""MuJoCo's complaints as one line each, and what `base` and `ground` do."""

import numpy as np
import pytest

from revolute.contract.errors import ModelError
from revolute_engine import Engine, load_model

INERTIA = '<inertia ixx="0.1" ixy="0" ixz="0" iyy="0.2" iyz="0" izz="0.25"/>'
INERTIAL = f'<inertial><mass value="2"/>{INERTIA}</inertial>'
ARM = f"""<robot name="arm">
  <link name="base">{INERTIAL}<collision><geometry><box size="1 1 1"/></geometry></collision></link>
  <link name="upper">{INERTIAL}</link>
  <link name="tool"/>
  <joint name="shoulder" type="revolute"><parent link="base"/><child link="upper"/><axis xyz="0 0 2"/>
    <limit lower="-1" upper="2" effort="7" velocity="3"/><dynamics damping="0.1" friction="0.2"/></joint>
  <joint name="grip" type="fixed"><parent link="upper"/><child link="tool"/></joint>
</robot>"""


def _mjcf(inside: str, after: str = "") -> str:
    return f"<mujoco>\n<worldbody>\n{inside}\n</worldbody>{after}</mujoco>"


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (
            _mjcf('<body name="b"><joint name="j" axis="0 0 0"/><geom size="1"/></body>'),
            "a.xml: joint 'j': expected an axis of non-zero length, got [0 0 0]; give the axis in the "
            "joint frame",
        ),
        (
            _mjcf('<body name="b"><joint name="j" wrong="1"/><geom size="1"/></body>'),
            "a.xml: joint 'j': unrecognized attribute: 'wrong' at line 3",
        ),
        (
            _mjcf('<body name="b"><joint name="j"/></body>'),
            "a.xml: body 'b': mass and inertia of moving bodies must be larger than mjMINVAL at line 3; "
            "give it an <inertial> with positive mass and inertia, or fix its joint",
        ),
        (
            _mjcf('<body name="b"><joint name="j"/><geom name="g" size="1" type="cone"/></body>'),
            "a.xml: geom 'g': invalid keyword: 'cone' at line 3",
        ),
        (
            _mjcf('<body name="b"><joint name="j"/><geom name="g" size="-1"/></body>'),
            "a.xml: geom 'g': size 0 must be positive in geom at line 3",
        ),
        (
            _mjcf(
                '<body name="b"><joint name="j"/><geom size="1"/></body>',
                '<actuator><motor name="m" joint="k"/></actuator>',
            ),
            "a.xml: motor 'm': unknown transmission target 'k' for actuator id = 0 at line 4",
        ),
        (
            _mjcf(
                '<body name="b"><joint name="j"/><inertial pos="0 0 0" mass="1" diaginertia="1 1 5"/></body>'
            ),
            "a.xml: body 'b': inertia must satisfy A + B >= C; use 'balanceinertia' to fix at line 3; "
            "the three moments of inertia are not those of a body",
        ),
        (_mjcf('<body name="b"/>'), "a.xml: expected at least one joint, got none; nothing could move"),
        (
            '<robot name="r"><link name="a"/><joint name="j" type="revolute"><parent link="a"/><child '
            'link="b"/></joint>'
            "</robot>",
            "a.xml: joint 'j': expected the name of a link as child, got 'b'; correct it",
        ),
    ],
)
def test_a_complaint_names_file_element_and_line(text: str, message: str) -> None:
    with pytest.raises(ModelError) as caught:
        load_model(text, name="a.xml")
    assert str(caught.value) == message


def test_a_broken_mesh_is_named_as_the_model_names_it() -> None:
    text = (
        '<mujoco><asset><mesh name="foot" file="m/foot.stl"/></asset><worldbody><body><joint/>'
        '<geom type="mesh" mesh="foot"/></body></worldbody></mujoco>'
    )
    with pytest.raises(ModelError) as caught:
        load_model(text, name="a.xml", assets={"m/foot.stl": b"garbage"})
    message = "a.xml: mesh 'foot': stl_decoder: invalid header in STL file 'm/foot.stl' at line 1"
    assert str(caught.value) == message


def test_a_urdf_is_fixed_unless_told_otherwise() -> None:
    fixed, free = load_model(ARM), load_model(ARM, base="free")
    assert (fixed.nq, fixed.nv) == (1, 1)
    assert (free.nq, free.nv) == (8, 7)
    assert load_model(ARM, base="fixed").nv == 1
    # a fixed base keeps its name, mass and shape
    for model in (fixed, free):
        assert model.body_names == ["world", "base", "upper", "tool"]
        assert model.body_mass.tolist() == [0, 2, 2, 0]
        assert model.ngeom == 1


def test_fixed_links_can_be_merged() -> None:
    merged = load_model(ARM, base="free", fuse_fixed=True)
    assert merged.body_names == ["world", "base", "upper"]


def test_a_urdf_gets_one_motor_per_joint_limited_by_its_effort() -> None:
    model = load_model(ARM)
    assert model.actuator_names == ["shoulder"]
    assert model.ctrlrange.tolist() == [[-np.inf, np.inf]]
    assert model.arrays["act_forcelimited"].tolist() == [1]
    assert model.arrays["act_forcerange"].tolist() == [[-7, 7]]
    assert model.arrays["act_gain"].tolist() == [[1, 0, 0]]
    assert not model.arrays["act_bias"].any()
    unlimited = load_model(ARM.replace('effort="7"', 'effort="0"'))
    assert unlimited.arrays["act_forcelimited"].tolist() == [0]


def test_the_base_of_an_mjcf_can_be_freed_and_fixed() -> None:
    hinge = '<body name="c"><joint name="j"/><geom size="1"/></body>'
    welded = _mjcf(f'<body name="b"><geom size="1"/>{hinge}</body>')
    free = _mjcf(f'<body name="b"><freejoint/><geom size="1"/>{hinge}</body>')
    assert load_model(welded).nv == load_model(free, base="fixed").nv == 1
    assert load_model(free).nv == load_model(welded, base="free").nv == load_model(free, base="free").nv == 7


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (
            _mjcf('<body name="b"><joint name="j"/><geom size="1"/></body>'),
            "expected a base without joints, got body 'b' with joint 'j'; leave base out",
        ),
        (
            _mjcf('<body name="b"/><body name="c"><joint/><geom size="1"/></body>'),
            "expected one body attached to the world, got 2 ('b', 'c'); leave base out and write the "
            "joints into the file",
        ),
    ],
)
def test_a_base_that_cannot_be_freed_is_refused(text: str, message: str) -> None:
    with pytest.raises(ModelError) as caught:
        load_model(text, base="free", name="a.xml")
    assert str(caught.value) == f"a.xml: base='free': {message}"


def test_ground_is_a_plane_that_meets_every_shape() -> None:
    text = _mjcf(
        '<body name="b"><freejoint/><geom name="odd" size="1" contype="8" conaffinity="0"/>'
        '<geom name="ghost" size="1" contype="0" conaffinity="0"/></body>'
    )
    model = load_model(text, ground=True)
    ground, odd = model.geom_names.index("ground"), model.geom_names.index("odd")
    assert model.geom_friction[ground, 0] == 1
    assert list(zip(model.arrays["pair_geom1"], model.arrays["pair_geom2"], strict=True)) == [(ground, odd)]
    with pytest.raises(ModelError, match="ground=True: expected no geom 'ground', got one"):
        load_model(text.replace("ghost", "ground"), ground=True)


def _hand(follower: str, mimic: str, leader: str = "revolute") -> str:
    joint = '<axis xyz="0 1 0"/><limit lower="-2" upper="2" effort="3" velocity="1"/>'
    return (
        f'<robot name="hand"><link name="palm"/><link name="a">{INERTIAL}</link><link name="b">{INERTIAL}'
        f'</link><link name="c">{INERTIAL}</link><joint name="free" type="continuous"><parent link="palm"/>'
        f'<child link="c"/><axis xyz="1 0 0"/></joint><joint name="thumb" type="{leader}">'
        f'<parent link="palm"/><child link="a"/>{joint}</joint><joint name="finger" type="{follower}">'
        f'<parent link="a"/><child link="b"/>{joint}<mimic {mimic}/></joint></robot>'
    )


@pytest.mark.parametrize("follower", ["revolute", "continuous", "prismatic"])
def test_a_mimic_joint_is_an_equality_and_has_no_motor(follower: str) -> None:
    model = load_model(_hand(follower, 'joint="thumb" multiplier="-0.5" offset="0.1"'))
    arrays = model.arrays
    assert arrays["eq_type"].tolist() == [2]
    assert model.joint_names[arrays["eq_obj1"][0]] == "finger"
    assert model.joint_names[arrays["eq_obj2"][0]] == "thumb"
    # between displacements from qpos0, where both hold
    assert arrays["eq_data"][0, :5].tolist() == [0, -0.5, 0, 0, 0]
    assert dict(zip(model.joint_names, model.qpos0, strict=True))["finger"] == 0.1
    assert model.actuator_names == ["free", "thumb"]


def test_a_joint_that_mimics_a_fixed_one_is_held() -> None:
    model = load_model(_hand("revolute", 'joint="thumb" multiplier="3" offset="0.2"', leader="fixed"))
    assert model.arrays["eq_obj2"].tolist() == [-1]
    assert model.arrays["eq_data"][0, :5].tolist() == [0, 0, 0, 0, 0]
    assert dict(zip(model.joint_names, model.qpos0, strict=True))["finger"] == 0.2
    assert model.actuator_names == ["free"]
    rollout = Engine(threads=1).rollout(model, model.qpos0, model.qvel0, np.zeros((200, 1)))
    finger = model.joint_names.index("finger")
    assert rollout.qpos[-1, finger] == pytest.approx(0.2, abs=1e-3)


def test_a_fixed_joint_mimics_nothing_and_says_so() -> None:
    model = load_model(_hand("fixed", 'joint="thumb"'))
    assert len(model.arrays["eq_type"]) == 0
    assert "joint 'finger' is fixed and mimics nothing" in model.notes


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (_hand("revolute", 'joint="toe"'), "expected the name of another joint, got 'toe'; correct it"),
        (_hand("revolute", 'joint="finger"'), "expected the name of another joint, got 'finger'; correct it"),
        (
            _hand("revolute", 'joint="thumb" offset="x"', leader="fixed"),
            "expected a finite number, got 'x' in offset",
        ),
    ],
)
def test_a_mimic_without_meaning_is_refused_by_name(text: str, message: str) -> None:
    with pytest.raises(ModelError) as caught:
        load_model(text, name="hand.urdf")
    assert str(caught.value) == f"hand.urdf: joint 'finger': mimic: {message}"


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (_hand("floating", 'joint="thumb"'), "mimic of a floating joint is not supported; remove it"),
        (
            _hand("revolute", 'joint="thumb"', leader="floating"),
            "mimic of floating joint 'thumb' is not supported; remove it",
        ),
    ],
)
def test_a_mimic_of_several_coordinates_is_refused_by_name(text: str, message: str) -> None:
    with pytest.raises(ModelError) as caught:
        load_model(text, name="hand.urdf")
    assert str(caught.value) == f"hand.urdf: joint 'finger': {message}"

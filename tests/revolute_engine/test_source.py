"""Self-contained documents: includes, meshes, and that no path a model names is ever opened."""

from pathlib import Path

import pytest

from revolute.contract.errors import ModelError, RevoluteError
from revolute_engine import load_model
from revolute_engine._files import FileFinder
from revolute_engine._source import Source, read_source
from revolute_engine._xml import MAX_DEPTH

TETRAHEDRON = b"v 0 0 0\nv 1 0 0\nv 0 1 0\nv 0 0 1\nf 1 3 2\nf 1 2 4\nf 2 3 4\nf 3 1 4\n"
BODY = '<worldbody><body name="b"><joint name="j"/><geom name="g" size="0.1"/></body></worldbody>'
MESH_BODY = (
    '<asset><mesh name="foot" file="{file}"/></asset>'
    '<worldbody><body name="b"><joint name="j"/><geom type="mesh" mesh="foot"/></body></worldbody>'
)


def _read(text: str, assets: dict[str, bytes] | None = None) -> Source:
    return read_source("a.xml", text, FileFinder(assets or {}, None, (), {}, False))


def _refusal(text: str, assets: dict[str, bytes] | None = None) -> str:
    with pytest.raises(ModelError) as caught:
        _read(text, assets)
    return str(caught.value)


def test_includes_take_the_place_of_their_element() -> None:
    assets = {
        "parts/body.xml": f'<mujocoinclude>{BODY}<include file="motors.xml"/></mujocoinclude>'.encode(),
        "parts/motors.xml": b'<mujoco><actuator><motor joint="j"/></actuator></mujoco>',
    }
    source = _read('<mujoco><include file="parts/body.xml"/></mujoco>', assets)
    assert [child.tag for child in source.root.children] == ["worldbody", "actuator"]
    assert source.has_includes


def test_includes_may_not_come_back_to_themselves() -> None:
    assets = {"a.xml": b'<mujoco><include file="a.xml"/></mujoco>'}
    message = _refusal('<mujoco><include file="a.xml"/></mujoco>', assets)
    assert message == (
        "a.xml: include 'a.xml': expected files that do not include themselves, got a.xml -> a.xml"
    )


def test_a_circle_of_includes_through_folders_is_named() -> None:
    # each file names the next from the main file's folder, so that its path beside the last one is a new one
    assets = {
        "parts/b.xml": b'<mujocoinclude><include file="parts/c.xml"/></mujocoinclude>',
        "parts/c.xml": b'<mujocoinclude><include file="parts/b.xml"/></mujocoinclude>',
    }
    message = _refusal('<mujoco><include file="parts/b.xml"/></mujoco>', assets)
    assert message == (
        "a.xml: include 'parts/b.xml': expected files that do not include themselves, "
        "got parts/b.xml -> parts/c.xml -> parts/b.xml"
    )


def test_a_long_chain_of_includes_is_refused() -> None:
    assets = {f"{n}.xml": f'<mujoco><include file="{n + 1}.xml"/></mujoco>'.encode() for n in range(5000)}
    assert f"at most {MAX_DEPTH} nested elements" in _refusal(
        '<mujoco><include file="0.xml"/></mujoco>', assets
    )


def test_meshes_of_equal_names_in_two_folders_stay_two() -> None:
    text = (
        '<mujoco><compiler meshdir="m"/><asset><mesh name="l" file="l/foot.obj"/><mesh name="r" '
        'file="r/foot.obj"/>'
        "</asset></mujoco>"
    )
    source = _read(text, {"m/l/foot.obj": b"left", "m/r/foot.obj": b"right"})
    assert sorted(source.files.values()) == [b"left", b"right"]
    assert sorted(source.references.values()) == ["l/foot.obj", "r/foot.obj"]


def test_a_mesh_without_name_is_called_by_its_file() -> None:
    source = _read(
        '<mujoco><asset><mesh file="m/Foot 1.obj"/></asset></mujoco>', {"m/Foot 1.obj": TETRAHEDRON}
    )
    assert source.root.find("mesh")[0].attributes["name"] == "Foot 1"


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("<html/>", "a.xml: expected <mujoco> or <robot> as first element, got <html>"),
        (
            '<mujoco><asset><mesh file="a.ply"/></asset></mujoco>',
            "a.xml: mesh 'a.ply': expected one of .stl, .obj, .msh, .dae, got .ply; convert it",
        ),
        (
            '<mujoco><asset><mesh name="foot" file="foot.stl"/></asset></mujoco>',
            "a.xml: mesh 'foot.stl': expected its bytes in assets, got none; the file was not sent",
        ),
        (
            '<mujoco><asset><hfield name="hills" file="/etc/hostname"/></asset></mujoco>',
            "a.xml: hfield '/etc/hostname': expected its bytes in assets, got none; the file was not sent",
        ),
        (
            '<mujoco><extension><plugin plugin="mujoco.elasticity.cable"/></extension></mujoco>',
            "a.xml: extension at line 1: not supported; remove the plugins",
        ),
        (
            '<mujoco><asset><model name="arm" file="arm.xml"/></asset></mujoco>',
            "a.xml: model 'arm.xml': expected its bytes in assets, got none; the file was not sent",
        ),
        (
            '<mujoco><worldbody><body><joint damping="nan"/></body></worldbody></mujoco>',
            "a.xml: joint at line 1: expected numbers, got 'nan' in damping",
        ),
        (
            '<robot name="r"><joint name="finger" type="revolute"><mimic joint="thumb"/></joint></robot>',
            "a.xml: joint 'finger': mimic: expected the name of another joint, got 'thumb'; correct it",
        ),
        (
            '<robot name="r" xmlns:xacro="x"><xacro:include filename="a.xacro"/></robot>',
            "a.xml: expected URDF, got xacro; expand it first: xacro robot.xacro > robot.urdf",
        ),
    ],
)
def test_what_cannot_be_read_is_refused_by_name(text: str, message: str) -> None:
    assert _refusal(text) == message


def test_what_only_a_renderer_uses_needs_no_file() -> None:
    mjcf = (
        '<mujoco><asset><texture name="t" type="2d" file="wood.png"/><material name="m" texture="t"/></asset>'
        '<worldbody><body><joint/><geom size="1" material="m"/></body></worldbody></mujoco>'
    )
    assert load_model(mjcf, allow_files=False).nv == 1
    urdf = (
        '<robot name="r"><link name="a"><inertial><mass value="1"/><inertia ixx="1" iyy="1" izz="1" '
        'ixy="0" ixz="0" '
        'iyz="0"/></inertial><visual><geometry><mesh filename="a.dae"/></geometry></visual></link></robot>'
    )
    assert load_model(urdf, base="free", allow_files=False).nv == 6


def test_elements_that_urdf_does_not_define_are_noted() -> None:
    urdf = (
        '<robot name="r"><link name="a"><contact/><inertial><mass value="1"/><inertia ixx="1" iyy="1" '
        'izz="1" ixy="0" '
        'ixz="0" iyz="0"/></inertial></link><gazebo><plugin filename="/lib/evil.so"/></gazebo></robot>'
    )
    notes = load_model(urdf, base="free").notes
    assert "elements that are not URDF's were not read: <gazebo> (1), <contact> (1)" in notes


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (
            '<mujoco><worldbody><replicate count="1000"><replicate '
            'count="1000"><body/></replicate></replicate>'
            "</worldbody></mujoco>",
            "a.xml: replicate: expected at most 100000 elements, got 2.001e+06; use smaller counts",
        ),
        (
            '<mujoco><worldbody><composite type="cable" count="1000 1000 1"/></worldbody></mujoco>',
            "a.xml: replicate: expected at most 100000 elements, got 1e+06; use smaller counts",
        ),
        (
            '<mujoco><worldbody><replicate count="many"><body/></replicate></worldbody></mujoco>',
            "a.xml: replicate: expected at most 100000 elements, got inf; use smaller counts",
        ),
        (
            '<mujoco><asset><mesh name="m" builtin="supertorus" params="1e5 0.1 1 1"/></asset></mujoco>',
            "a.xml: mesh 'm': expected params up to 256, got '1e5 0.1 1 1'; make it coarser",
        ),
        (
            '<mujoco><asset><mesh name="m" builtin="grid" params="200 200 200 1 1 1"/></asset></mujoco>',
            "a.xml: mesh 'm': expected params up to 256, got '200 200 200 1 1 1'; make it coarser",
        ),
    ],
)
def test_a_short_text_cannot_ask_for_all_memory(text: str, message: str) -> None:
    assert _refusal(text) == message


def test_pictures_and_user_data_take_no_memory() -> None:
    text = (
        '<mujoco><size nuser_body="100000000" memory="100G"/><custom><numeric name="n" '
        'size="1000000000"/></custom>'
        '<asset><texture name="t" type="2d" builtin="checker" width="1000000" height="1000000"/></asset>'
        f"{BODY}</mujoco>"
    )
    model = load_model(text, allow_files=False).mujoco_model
    assert (model.nuser_body, model.nnumeric, model.tex_width[0]) == (0, 0, 1)


def test_an_endless_search_for_a_muscles_length_does_not_run() -> None:
    text = (
        '<mujoco><compiler><lengthrange inttotal="1e9" timestep="1e-3"/></compiler>'
        f'{BODY}<actuator><muscle name="m" joint="j"/></actuator></mujoco>'
    )
    with pytest.raises(ModelError, match="compiler/lengthrange: expected at most 100000 steps"):
        load_model(text)


# each text names a real file on disk that would load if it were opened
ATTACKS = [
    '<mujoco><include file="{folder}/body.xml"/></mujoco>',
    '<mujoco><include file="body.xml"/></mujoco>',
    f"<mujoco>{MESH_BODY.format(file='{folder}/foot.obj')}</mujoco>",
    f"<mujoco>{MESH_BODY.format(file='foot.obj')}</mujoco>",
    f"<mujoco><compiler meshdir='{{folder}}'/>{MESH_BODY.format(file='foot.obj')}</mujoco>",
    f"<mujoco><compiler assetdir='/'/>{MESH_BODY.format(file='.{folder}/foot.obj')}</mujoco>",
    f"<mujoco>{MESH_BODY.format(file='file://{folder}/foot.obj')}</mujoco>",
    '<mujoco><asset><model name="m" file="{folder}/model.xml"/></asset>'
    '<worldbody><attach model="m" body="b" prefix="p"/></worldbody></mujoco>',
    '<mujoco><asset><hfield name="h" file="{folder}/foot.obj" size="1 1 1 1"/></asset></mujoco>',
    '<mujoco><worldbody><flexcomp type="mesh" name="f" file="{folder}/foot.obj"/></worldbody></mujoco>',
    '<mujoco><deformable><flex name="f" file="{folder}/foot.obj"/></deformable></mujoco>',
    '<mujoco><custom><text name="t" data="x" file="{folder}/foot.obj"/></custom></mujoco>',
    '<robot name="r"><mujoco><compiler meshdir="{folder}"/></mujoco><link name="a"><collision><geometry>'
    '<mesh filename="foot.obj"/></geometry></collision></link></robot>',
    '<robot name="r"><link name="a"><collision><geometry><mesh '
    'filename="package:///{folder}/foot.obj"/></geometry>'
    "</collision></link></robot>",
    '<robot name="r"><mujoco><include file="{folder}/body.xml"/></mujoco></robot>',
]


@pytest.mark.parametrize("attack", ATTACKS)
def test_no_path_in_a_text_is_opened_without_allow_files(
    attack: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "foot.obj").write_bytes(TETRAHEDRON)
    (tmp_path / "body.xml").write_text(f"<mujoco>{BODY}</mujoco>")
    (tmp_path / "model.xml").write_text(f"<mujoco>{BODY}</mujoco>")
    monkeypatch.chdir(tmp_path)
    with pytest.raises(RevoluteError) as caught:
        load_model(attack.replace("{folder}", str(tmp_path)), allow_files=False)
    assert isinstance(caught.value, ModelError), caught.value


def test_the_attacks_would_work_with_allow_files(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "foot.obj").write_bytes(TETRAHEDRON)
    (tmp_path / "body.xml").write_text(f"<mujoco>{BODY}</mujoco>")
    monkeypatch.chdir(tmp_path)
    for attack in ATTACKS[:7]:
        assert load_model(attack.replace("{folder}", str(tmp_path)), allow_files=True).nv == 1


def test_a_path_is_not_a_source_without_allow_files(tmp_path: Path) -> None:
    path = tmp_path / "a.xml"
    path.write_text(f"<mujoco>{BODY}</mujoco>")
    with pytest.raises(LookupError, match="expected XML text or the name of a built-in model"):
        load_model(str(path), allow_files=False)
    assert load_model("cartpole", allow_files=False).nv == 2

"""Reading model files on the caller's side: which files are taken along, and under which names."""

from __future__ import annotations

from pathlib import Path

import pytest

from revolute import ArgumentError, ModelError, NotFoundError
from revolute.source_files import add_searched_paths, read_source

URDF = """<?xml version="1.0"?>
<robot name="r">
  <link name="base">
    <visual><geometry><mesh filename="look.dae"/></geometry></visual>
    <collision><geometry><mesh filename="{}"/></geometry></collision>
  </link>
</robot>
"""


def _write(path: Path, content: str | bytes) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(content.encode() if isinstance(content, str) else content)
    return path


def test_urdf_takes_collision_meshes_only(tmp_path: Path) -> None:
    robot = _write(tmp_path / "robot.urdf", URDF.format("meshes/foot.stl"))
    _write(tmp_path / "meshes/foot.stl", b"foot")
    _write(tmp_path / "look.dae", b"look")
    source = read_source(robot, options={"ground": True})
    assert source.name == "robot.urdf" and source.text == robot.read_text()
    assert source.assets == {"meshes/foot.stl": b"foot"}
    assert source.options == {"ground": True}


@pytest.mark.parametrize("given", [True, False], ids=["given", "found above"])
def test_package_references(tmp_path: Path, given: bool) -> None:
    reference = "package://my_robot/meshes/foot.stl"
    robot = _write(tmp_path / "my_robot/urdf/robot.urdf", URDF.format(reference))
    mesh = _write(tmp_path / ("elsewhere" if given else "my_robot") / "meshes/foot.stl", b"foot")
    packages = {"my_robot": mesh.parents[1]} if given else None
    assert read_source(str(robot), options={}, package_paths=packages).assets == {reference: b"foot"}


def test_mesh_paths_and_assets(tmp_path: Path) -> None:
    robot = _write(tmp_path / "robot.urdf", URDF.format("deep/foot.stl"))
    _write(tmp_path / "more/foot.stl", b"disk")
    found = read_source(robot, options={}, mesh_paths=[tmp_path / "more"])
    assert found.assets == {"deep/foot.stl": b"disk"}
    given = read_source(robot, options={}, assets={"deep/foot.stl": b"mine"}, mesh_paths=[tmp_path / "more"])
    assert given.assets == {"deep/foot.stl": b"mine"}


def test_mjcf_takes_height_fields_from_the_folder_of_meshes(tmp_path: Path) -> None:
    text = '<mujoco><compiler meshdir="maps"/><asset><hfield file="hills.png"/></asset></mujoco>'
    scene = _write(tmp_path / "scene.xml", text)
    _write(tmp_path / "maps/hills.png", b"hills")
    assert read_source(scene, options={}).assets == {"hills.png": b"hills"}


def test_mjcf_takes_meshes_and_includes(tmp_path: Path) -> None:
    scene = _write(tmp_path / "scene.xml", '<mujoco><include file="parts/leg.xml"/></mujoco>')
    leg = (
        '<mujocoinclude><compiler meshdir="stl"/><include file="toe.xml"/>'
        '<asset><mesh file="leg.stl"/><texture file="skin.png"/></asset></mujocoinclude>'
    )
    _write(tmp_path / "parts/leg.xml", leg)
    _write(tmp_path / "parts/toe.xml", '<mujocoinclude><asset><mesh file="toe.stl"/></asset></mujocoinclude>')
    for name in ("leg", "toe"):
        _write(tmp_path / f"stl/{name}.stl", name)
    _write(tmp_path / "skin.png", b"skin")
    assets = read_source(scene, options={}).assets
    assert set(assets) == {"parts/leg.xml", "parts/toe.xml", "leg.stl", "toe.stl"}


def test_paths_are_stripped_if_the_file_says_so(tmp_path: Path) -> None:
    compiler = '<mujoco><compiler meshdir="stl" strippath="true"/></mujoco>'
    text = URDF.format("package://elsewhere/foot.stl").replace("</robot>", f"{compiler}</robot>")
    _write(tmp_path / "stl/foot.stl", b"foot")
    assert read_source(_write(tmp_path / "robot.urdf", text), options={}).assets == {"foot.stl": b"foot"}


def test_include_of_itself_ends(tmp_path: Path) -> None:
    scene = _write(tmp_path / "scene.xml", '<mujoco><include file="scene.xml"/></mujoco>')
    assert set(read_source(scene, options={}).assets) == {"scene.xml"}


def test_include_of_itself_under_other_names_ends(tmp_path: Path) -> None:
    """A path that is not found beside the including file is looked up beside the main one."""
    scene = _write(tmp_path / "scene.xml", '<mujoco><include file="sub/a.xml"/></mujoco>')
    _write(tmp_path / "sub/a.xml", '<mujocoinclude><include file="sub/a.xml"/></mujocoinclude>')
    assert set(read_source(scene, options={}).assets) == {"sub/a.xml"}


def test_an_include_is_looked_up_beside_the_including_file_first(tmp_path: Path) -> None:
    scene = '<mujoco><include file="a.xml"/><include file="parts/b.xml"/></mujoco>'
    _write(tmp_path / "a.xml", "<mujocoinclude/>")
    _write(tmp_path / "parts/a.xml", "<mujocoinclude><option/></mujocoinclude>")
    _write(tmp_path / "parts/b.xml", '<mujocoinclude><include file="a.xml"/></mujocoinclude>')
    assets = read_source(_write(tmp_path / "scene.xml", scene), options={}).assets
    assert set(assets) == {"a.xml", "parts/a.xml", "parts/b.xml"}
    assert assets["a.xml"] != assets["parts/a.xml"]


def test_includes_that_are_given_are_read_too(tmp_path: Path) -> None:
    """What a given file refers to may lie on disk."""
    scene = _write(tmp_path / "scene.xml", '<mujoco><include file="leg.xml"/></mujoco>')
    _write(tmp_path / "toe.xml", '<mujocoinclude><asset><mesh file="toe.stl"/></asset></mujocoinclude>')
    _write(tmp_path / "toe.stl", "toe")
    given = {"leg.xml": b'<mujocoinclude><include file="toe.xml"/></mujocoinclude>'}
    assert set(read_source(scene, options={}, assets=given).assets) == {"leg.xml", "toe.xml", "toe.stl"}


def test_attached_models_are_taken_along_with_what_they_name(tmp_path: Path) -> None:
    """Their meshes go by paths from the main file, so that equal names stay apart."""
    scene = '<mujoco><asset><model name="leg" file="leg/leg.xml"/><mesh file="bone.stl"/></asset></mujoco>'
    leg = (
        '<mujoco><compiler meshdir="stl"/><include file="motors.xml"/><asset><mesh file="bone.stl"/>'
        '<model file="leg.xml"/></asset></mujoco>'
    )
    _write(tmp_path / "leg/leg.xml", leg)
    _write(tmp_path / "leg/motors.xml", "<mujocoinclude/>")
    _write(tmp_path / "leg/stl/bone.stl", "of the leg")
    _write(tmp_path / "bone.stl", "of the scene")
    assets = read_source(_write(tmp_path / "scene.xml", scene), options={}).assets
    assert assets == {
        "leg/leg.xml": leg.encode(),
        "leg/motors.xml": b"<mujocoinclude/>",
        "leg/stl/bone.stl": b"of the leg",
        "bone.stl": b"of the scene",
    }


def test_missing_files_are_left_out(tmp_path: Path) -> None:
    robot = _write(tmp_path / "robot.urdf", URDF.format("foot.stl"))
    more = tmp_path / "more"
    source = read_source(robot, options={}, mesh_paths=[more])
    assert source.assets == {}
    assert source.missing == {"foot.stl": [str(tmp_path / "foot.stl"), str(more / "foot.stl")]}
    error = add_searched_paths(
        ModelError("robot.urdf: mesh 'foot.stl': expected its bytes in assets, got none; …"), source
    )
    assert str(error) == (
        f"robot.urdf: mesh 'foot.stl': expected a file, got none at {tmp_path / 'foot.stl'}, "
        f"{more / 'foot.stl'}; give its folder in mesh_paths or package_paths (on the command line "
        "--mesh-path or --package), or its bytes in assets"
    )
    other = ModelError("robot.urdf: mesh 'hand.stl': expected its bytes in assets, got none; …")
    assert add_searched_paths(other, source) is other


@pytest.mark.parametrize("text", ["<mujoco>", "\ufeff <robot name='x'></robot", "<a>&undefined;</a>"])
def test_text_is_passed_on_unjudged(text: str) -> None:
    source = read_source(text, options={})
    assert source.text == text and source.builtin == "" and source.assets == {}


def test_a_word_is_a_builtin_name() -> None:
    assert read_source("laikago", options={}).builtin == "laikago"


def test_byte_order_mark_is_dropped(tmp_path: Path) -> None:
    assert read_source(_write(tmp_path / "a.xml", b"\xef\xbb\xbf<mujoco/>"), options={}).text == "<mujoco/>"


def test_mistakes(tmp_path: Path) -> None:
    with pytest.raises(
        NotFoundError, match=r"^source: expected a readable file, .* \(no such file or directory\)"
    ):
        read_source(tmp_path / "none.urdf", options={})
    with pytest.raises(ModelError, match=r"\(a folder\)"):
        read_source(tmp_path, options={})
    with pytest.raises(ModelError, match=r"^a.xml: expected XML text in UTF-8, got byte 0xff at 0"):
        read_source(_write(tmp_path / "a.xml", b"\xff\xfe<"), options={})
    for wrong in (None, 3, b"<mujoco/>", "", "  "):
        with pytest.raises(
            ArgumentError, match=r"^source: expected a path, XML text or a built-in name, got "
        ):
            read_source(wrong, options={})
    with pytest.raises(ArgumentError, match=r"^assets: expected bytes by file name, got str for 'a.stl'"):
        read_source("<mujoco/>", options={}, assets={"a.stl": "text"})  # type: ignore[dict-item]

"""Models of several files, on disk or given as text and bytes: the same model on every transport."""

from __future__ import annotations

import struct
import warnings
from pathlib import Path

import numpy as np
import pytest

import revolute

Simulators = dict[str, revolute.Simulator]

SCENE = """<mujoco model="scene">
  <include file="parts/settings.xml"/>
  <include file="parts/robot.xml"/>
  <asset><texture name="sky" type="skybox" file="sky.png"/></asset>
  <worldbody><geom name="floor" type="plane" size="0 0 1"/></worldbody>
  <keyframe><key name="low" qpos="0 0 0.06 1 0 0 0 0.1"/><key qpos="0 0 1 1 0 0 0 0"/></keyframe>
</mujoco>"""
SETTINGS = '<mujocoinclude><compiler meshdir="stl"/><option timestep="0.002"/></mujocoinclude>'
ROBOT = """<mujocoinclude>
  <include file="deep/meshes.xml"/>
  <worldbody><body name="trunk" pos="0 0 1"><freejoint/>
    <geom name="rock" type="mesh" mesh="rock" mass="1" material="skin"/>
    <body name="tail"><joint name="hinge" axis="0 1 0"/><geom size="0.01" mass="0.1" pos="0 0 0.2" contype="0"
      conaffinity="0"/></body>
  </body></worldbody>
  <actuator><motor name="wag" joint="hinge"/></actuator>
</mujocoinclude>"""
MESHES = """<mujocoinclude><asset>
  <mesh name="rock" file="rock.stl"/><material name="skin" texture="skin"/>
  <texture name="skin" type="2d" file="skin.png"/>
</asset></mujocoinclude>"""

CORNERS = 0.05 * np.array([[x, y, z] for x in (-1, 1) for y in (-1, 1) for z in (-1, 1)], dtype=np.float32)
FACES = [(0, 1, 3), (0, 3, 2), (4, 6, 7), (4, 7, 5), (0, 4, 5), (0, 5, 1)]
FACES += [(2, 3, 7), (2, 7, 6), (0, 2, 6), (0, 6, 4), (1, 5, 7), (1, 7, 3)]


def _stl(copies: int = 1) -> bytes:
    """Return a cube as binary STL, its bytes no text; every face `copies` times."""
    header = bytes(range(128, 208))
    faces = b"".join(struct.pack("<12fH", 0, 0, 0, *CORNERS[list(face)].ravel(), 0) for face in FACES)
    return header + struct.pack("<I", len(FACES) * copies) + faces * copies


def _files(mesh: bytes) -> dict[str, bytes]:
    texts = {"parts/settings.xml": SETTINGS, "parts/robot.xml": ROBOT, "parts/deep/meshes.xml": MESHES}
    return {**{name: text.encode() for name, text in texts.items()}, "rock.stl": mesh}


@pytest.fixture
def scene(tmp_path: Path) -> Path:
    """Return the path of a model of five files; the pictures it names are not there."""
    for name, content in _files(_stl()).items():
        place = tmp_path / ("stl" if name.endswith(".stl") else "") / name
        place.parent.mkdir(parents=True, exist_ok=True)
        place.write_bytes(content)
    (tmp_path / "scene.xml").write_text(SCENE)
    return tmp_path / "scene.xml"


def _fall(simulator: revolute.Simulator, model: revolute.ModelHandle) -> np.ndarray:
    """Return the state after a fall onto the floor."""
    ctrl = 0.01 * np.ones((50, model.nu))
    return simulator.rollout(model, model.keyframes["low"], model.qvel0, ctrl).qpos[-1]


def test_includes_meshes_and_keyframes(scene: Path, simulators: Simulators) -> None:
    found = []
    for simulator in simulators.values():
        model = simulator.load_model(scene)
        assert (model.nq, model.nv, model.nu, model.timestep) == (8, 7, 1, 0.002)
        assert list(model.keyframes) == ["low", "1"]
        assert model.keyframes["1"].tolist() == [0, 0, 1, 1, 0, 0, 0, 0]
        assert set(model.source.assets) == set(_files(b""))
        given = simulator.load_model(SCENE, assets=_files(_stl()), name="scene.xml")
        assert given.id == model.id
        found.append((model.id, _fall(simulator, model).tobytes()))
    assert found[0] == found[1] == found[2]
    # it lies on the floor, as the mesh is 5 cm from middle to face
    assert abs(np.frombuffer(found[0][1])[2] - 0.05) < 0.005


def test_a_mesh_larger_than_a_message(simulators: Simulators) -> None:
    """1.8 MB go in several parts over gRPC, and in one body over HTTP."""
    files = _files(_stl(3000))
    models = [simulator.load_model(SCENE, assets=files) for simulator in simulators.values()]
    assert models[0].id == models[1].id == models[2].id


ADVICE = (
    "give its folder in mesh_paths or package_paths (on the command line --mesh-path or --package), "
    "or its bytes in assets"
)
MISTAKES = {
    "include": (
        {"parts/deep/meshes.xml": None},
        f"scene.xml: include 'deep/meshes.xml': expected a file, got none at parts/deep/meshes.xml, "
        f"meshes.xml, deep/meshes.xml; {ADVICE}",
    ),
    "mesh": (
        {"rock.stl": None},
        f"scene.xml: mesh 'rock.stl': expected a file, got none at stl/rock.stl, rock.stl; {ADVICE}",
    ),
    "include twice": (
        {"parts/settings.xml": b'<mujocoinclude><include file="robot.xml"/></mujocoinclude>'},
        "scene.xml: include 'parts/robot.xml': expected a file once, got it twice",
    ),
    "include of itself": (
        {"parts/settings.xml": b'<mujocoinclude><include file="settings.xml"/></mujocoinclude>'},
        "scene.xml: include 'settings.xml': expected files that do not include themselves, got "
        "parts/settings.xml -> parts/settings.xml",
    ),
    "broken include": ({"parts/robot.xml": b"<mujocoinclude>"}, "scene.xml: include 'parts/robot.xml': "),
    "height field": (
        {
            "parts/settings.xml": b'<mujocoinclude><asset><hfield name="hills" file="hills.png" '
            b'size="1 1 1 1"/></asset></mujocoinclude>'
        },
        f"scene.xml: hfield 'hills.png': expected a file, got none at hills.png; {ADVICE}",
    ),
}


@pytest.mark.parametrize("mistake", MISTAKES)
def test_mistakes_are_the_same(mistake: str, simulators: Simulators) -> None:
    changes, text = MISTAKES[mistake]
    files = {**_files(_stl()), **changes}
    assets = {name: content for name, content in files.items() if content is not None}
    caught = []
    for simulator in simulators.values():
        with pytest.raises(revolute.ModelError) as info:
            simulator.load_model(SCENE, assets=assets, name="scene.xml")
        caught.append(str(info.value))
    assert caught[0] == caught[1] == caught[2]
    assert caught[0].startswith(text)


INERTIAL = '<inertial><mass value="1"/><inertia ixx="1" iyy="1" izz="1" ixy="0" ixz="0" iyz="0"/></inertial>'
URDF = f"""<robot name="two">
  <link name="base">{INERTIAL}
    <collision><geometry><mesh filename="package://two/rock.stl"/></geometry></collision></link>
  <link name="arm">{INERTIAL}</link>
  <link name="hand">{INERTIAL}
    <collision><geometry><mesh filename="package://two/rock.stl"/></geometry></collision></link>
  <joint name="shoulder" type="continuous"><parent link="base"/><child link="arm"/><axis xyz="0 0 1"/></joint>
  <joint name="wrist" type="continuous"><parent link="arm"/><child link="hand"/><origin xyz="0 0 0.05"/>
    <axis xyz="0 1 0"/></joint>
</robot>"""


def test_a_load_warns_once_on_every_transport(tmp_path: Path, simulators: Simulators) -> None:
    (tmp_path / "rock.stl").write_bytes(_stl())
    (tmp_path / "two.urdf").write_text(URDF)
    told = []
    for simulator in simulators.values():
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("default")
            for _ in range(2):
                model = simulator.load_model(tmp_path / "two.urdf", package_paths={"two": tmp_path})
        assert len(caught) == len(model.warnings)
        assert all(warning.filename == __file__ for warning in caught)
        assert [str(warning.message) for warning in caught] == [f"two.urdf: {n}" for n in model.warnings]
        assert set(model.warnings) <= set(model.notes)
        told.append((model.notes, model.warnings))
    assert told[0] == told[1] == told[2]
    assert "1 pair that overlaps in the zero pose is not watched" in told[0][1][0]

"""Case C14: mesh paths with package://, and the scale of meshes."""

import shutil
from pathlib import Path

import numpy as np
import pytest

from revolute.contract.errors import ModelError
from revolute_engine import Engine, Model, load_model
from testbed.case_files import case_file, expected

ROBOT = case_file("C14", "my_robot")
NAMES = ("mesh.urdf", "mesh_relative.urdf", "mesh_mirror.urdf")
PACKAGED = (ROBOT / "urdf" / "mesh.urdf").read_text()


def _rests_at(model: Model) -> float:
    """Return the height of the centre after a fall from 5 cm above its place of rest."""
    qpos = np.array(model.qpos0)
    qpos[2] = 0.2
    return float(Engine(threads=1).rollout(model, qpos, model.qvel0, np.zeros((1000, model.nu))).qpos[-1, 2])


@pytest.mark.parametrize("name", NAMES)
def test_a_scaled_mesh_has_its_extent_and_rests_on_the_ground(name: str) -> None:
    numbers = expected("C14")
    model = load_model(ROBOT / "urdf" / name, base="free", ground=True, timestep=1e-3)
    vertices = model.arrays["hull_vert"]
    assert len(vertices) == 8
    assert np.abs(np.ptp(vertices, axis=0) - numbers["extent"]).max() < 1e-6
    assert abs(_rests_at(model) - numbers["rest_z"]) < 1e-3


@pytest.mark.parametrize("how", ["package_paths", "mesh_paths"])
def test_a_search_path_can_be_given(how: str) -> None:
    paths = {"package_paths": {"my_robot": ROBOT}, "mesh_paths": [ROBOT / "meshes"]}
    # text has no folder of its own
    model = load_model(PACKAGED, base="free", ground=True, timestep=1e-3, **{how: paths[how]})
    assert abs(_rests_at(model) - expected("C14")["rest_z"]) < 1e-3


def test_a_missing_collision_mesh_is_an_error_that_prints_the_tried_paths(tmp_path: Path) -> None:
    robot = tmp_path / "my_robot"
    shutil.copytree(ROBOT, robot)
    (robot / "meshes" / "cube.obj").unlink()
    with pytest.raises(ModelError, match=r"mesh\.urdf: mesh 'package://my_robot/meshes/cube\.obj'") as caught:
        load_model(robot / "urdf" / "mesh.urdf", package_paths={"my_robot": robot}, mesh_paths=[tmp_path])
    for tried in (robot / "meshes" / "cube.obj", tmp_path / "cube.obj"):
        assert str(tried) in str(caught.value)
    assert "\n" not in str(caught.value)

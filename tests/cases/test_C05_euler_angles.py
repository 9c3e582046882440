"""Case C05: rpy in URDF and euler in MJCF are not the same order."""

import mujoco
import numpy as np
import pytest

from revolute_engine import Model, load_model
from testbed.case_files import case_file, expected


def _orientation(model: Model, name: str) -> np.ndarray:
    """Return the rotation matrix of a body that hangs on the world or on a fixed base at the origin."""
    matrix = np.zeros(9)
    mujoco.mju_quat2Mat(matrix, model.arrays["body_quat"][model.body_names.index(name)])
    return matrix.reshape(3, 3)


@pytest.mark.parametrize(
    ("name", "key"),
    [
        ("rpy.urdf", "urdf_rpy_0.1_0.2_0.3"),
        ("euler.xml", "mjcf_euler_xyz_intrinsic"),
        ("euler_XYZ.xml", "urdf_rpy_0.1_0.2_0.3"),
    ],
)
def test_rotation_matrices(name: str, key: str) -> None:
    model = load_model(case_file("C05", name))
    assert np.abs(_orientation(model, "a") - expected("C05")[key]).max() < 1e-12


def test_a_pitch_of_a_quarter_turn() -> None:
    text = case_file("C05", "rpy.urdf").read_text().replace("0.1 0.2 0.3", f"0 {np.pi / 2!r} 0")
    assert np.abs(_orientation(load_model(text), "a") - [[0, 0, 1], [0, 1, 0], [-1, 0, 0]]).max() < 1e-12

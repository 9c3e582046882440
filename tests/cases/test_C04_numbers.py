"""Case C04: numbers as people write them, under any locale."""

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

import mujoco
import numpy as np
import pytest

from revolute.contract.errors import ModelError
from revolute_engine import Model, load_model
from testbed.case_files import case_file, expected

NUMBERS = case_file("C04", "numbers.urdf").read_text()
READ = """
import json, locale, sys
locale.setlocale(locale.LC_NUMERIC, "de_DE.UTF-8")
assert locale.localeconv()["decimal_point"] == ","
from revolute_engine import load_model
arrays = load_model(sys.argv[1]).arrays
print(json.dumps({name: arrays[name].tolist() for name in sys.argv[2:]}))
"""
FIELDS = ("body_pos", "body_quat", "body_mass", "body_inertia", "jnt_axis", "jnt_range")


def _rotation(quaternion: np.ndarray) -> np.ndarray:
    matrix = np.zeros(9)
    mujoco.mju_quat2Mat(matrix, quaternion)
    return matrix.reshape(3, 3)


def test_all_values_are_exact() -> None:
    numbers = expected("C04")
    model: Model = load_model(case_file("C04", "numbers.urdf"))
    body = model.body_names.index("a")
    assert model.arrays["body_pos"][body].tolist() == numbers["xyz"]
    yaw = numbers["rpy"][2]
    turn = [[np.cos(yaw), -np.sin(yaw), 0], [np.sin(yaw), np.cos(yaw), 0], [0, 0, 1]]
    assert np.abs(_rotation(model.arrays["body_quat"][body]) - turn).max() < 1e-15
    assert model.body_mass[body] == numbers["mass"]
    assert model.arrays["body_inertia"][body].tolist() == [0.25, 0.25, 0.25]
    assert model.arrays["jnt_axis"].tolist() == [[0, 0, 1]]
    assert model.arrays["jnt_range"].tolist() == [numbers["limits"]]


@pytest.mark.skipif(shutil.which("localedef") is None, reason="localedef makes the locale with a comma")
def test_a_locale_with_decimal_commas_changes_nothing(tmp_path: Path) -> None:
    # a process of its own: the C library looks for locales once
    made = subprocess.run(
        ["localedef", "-i", "de_DE", "-f", "UTF-8", str(tmp_path / "de_DE.UTF-8")], capture_output=True
    )
    if not (tmp_path / "de_DE.UTF-8").is_dir():
        pytest.skip(f"no source of the locale de_DE here: {made.stderr.decode()}")
    environment = {**os.environ, "LOCPATH": str(tmp_path), "PYTHONPATH": os.pathsep.join(sys.path)}
    command = [sys.executable, "-c", READ, str(case_file("C04", "numbers.urdf")), *FIELDS]
    read = subprocess.run(command, env=environment, capture_output=True, text=True, check=True)
    arrays = load_model(case_file("C04", "numbers.urdf")).arrays
    assert json.loads(read.stdout) == {name: arrays[name].tolist() for name in FIELDS}


def test_a_decimal_comma_is_an_error_that_names_the_element() -> None:
    with pytest.raises(ModelError, match=r"bad_comma\.urdf: mass at line 4: bad format in attribute 'value'"):
        load_model(case_file("C04", "bad_comma.urdf"))


@pytest.mark.parametrize(
    ("good", "bad", "element"),
    [
        ('value=" 1E0 "', 'value="1,5"', "mass"),
        ('value=" 1E0 "', 'value="abc"', "mass"),
        ('value=" 1E0 "', 'value=""', "mass"),
        ('value=" 1E0 "', 'value="nan"', "mass"),
        ('value=" 1E0 "', 'value="1 2"', "mass"),
        ('xyz="  .5', 'xyz="1 .5', "origin"),
        ('rpy="0  0   2.5e-1"', 'rpy="0 0"', "origin"),
        ('rpy="0  0   2.5e-1"', 'rpy="0 0 0,25"', "origin"),
        ('axis xyz=" 0 0  1 "', 'axis xyz="0 0 1 0"', "axis"),
        ('axis xyz=" 0 0  1 "', 'axis xyz="0 0 1x"', "axis"),
        ('iyy=".25"', 'iyy=",25"', "inertia"),
        ('ixx="2.5e-1"', 'ixx="2.5e"', "inertia"),
        ('lower="-.25"', 'lower="-,25"', "limit"),
        ('effort="1e1"', 'effort="10 Nm"', "limit"),
        ('velocity="10."', 'velocity="10,5"', "limit"),
        ('velocity="10."', 'velocity="fast"', "limit"),
    ],
)
def test_bad_text_is_an_error_that_names_the_element(good: str, bad: str, element: str) -> None:
    assert good in NUMBERS
    with pytest.raises(ModelError, match=rf"{element} at line \d: "):
        load_model(NUMBERS.replace(good, bad))

"""`revolute render` and `revolute view`."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import httpx
import numpy as np
import pytest
from PIL import Image

from revolute.cli import main

ROBOT = """
<robot name="arm">
  <link name="base">
    <inertial><mass value="1"/><inertia ixx="1" iyy="1" izz="1" ixy="0" ixz="0" iyz="0"/></inertial>
  </link>
  <link name="bar">
    <inertial><mass value="1"/><inertia ixx="1" iyy="1" izz="1" ixy="0" ixz="0" iyz="0"/></inertial>
    <collision><geometry><box size="0.4 0.1 0.1"/></geometry></collision>
  </link>
  <joint name="turn" type="continuous"><parent link="base"/><child link="bar"/><axis xyz="0 0 1"/></joint>
</robot>
"""


@pytest.fixture
def recorded(tmp_path: Path) -> Path:
    """Return the file of a rollout of a URDF with options, whose model file is gone."""
    robot, path = tmp_path / "arm.urdf", tmp_path / "arm.npz"
    robot.write_text(ROBOT)
    options = ["--base", "free", "--ground", "--no-contact"]
    assert main(["rollout", str(robot), "--steps", "5", "--save", str(path), *options]) == 0
    robot.unlink()
    return path


@pytest.mark.usefixtures("opengl")
def test_render(recorded: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    out = tmp_path / "arm.png"
    loss = json.dumps({"terms": [{"quantity": "qpos", "index": [7]}]})
    flags = ["--frames", "2", "--size", "64x48", "--camera", "track", "--azimuth", "90", "--loss", loss]
    assert main(["render", str(recorded), str(out), *flags]) == 0
    assert f"written: {out}" in capsys.readouterr().out
    strip = np.asarray(Image.open(out))
    assert strip.shape[1] == 2 * 64 + 6
    assert strip[30:, :64].std() > 5  # not empty


def test_a_file_that_is_no_trajectory(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    np.savez(tmp_path / "t.npz", qpos=[[0.0]])
    assert main(["render", str(tmp_path / "t.npz"), str(tmp_path / "t.png")]) == 1
    assert "path: expected a file of Trajectory.save" in capsys.readouterr().err


def test_view_serves_a_page_until_it_is_interrupted() -> None:
    pytest.importorskip("viser")
    command = [sys.executable, "-m", "revolute", "view", "cartpole", "--port", "18765"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
        try:
            assert process.stdout is not None
            address = process.stdout.readline().split()[0]
            assert "<!doctype html>" in httpx.get(address, trust_env=False, timeout=30).text.lower()
        finally:
            process.terminate()


def test_import_stays_light() -> None:
    heavy = ("mujoco", "PIL", "viser", "matplotlib", "imageio_ffmpeg", "trimesh")
    code = (
        f"import sys, revolute.trajectory, revolute.session; print([n for n in {heavy} if n in sys.modules])"
    )
    found = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert found.stdout.strip() == "[]"


@pytest.mark.parametrize(
    ("module", "missing"), [("render", "PIL"), ("view", "viser"), ("plot", "matplotlib.axes")]
)
def test_a_missing_extra_says_what_to_install(module: str, missing: str) -> None:
    code = f"import sys; sys.modules['{missing}'] = None; import revolute.{module}"
    found = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert f"pip install 'revolute[{module}]'" in found.stderr.splitlines()[-1]

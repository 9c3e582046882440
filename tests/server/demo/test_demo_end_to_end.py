"""`revolute demo` as a user runs it, but small; judged by its exit status and its files."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

PENDULUM = """
<mujoco>
  <compiler angle="radian"/>
  <worldbody>
    <body>
      <joint name="swing" axis="0 1 0"/>
      <geom type="capsule" fromto="0 0 0 0 0 -0.5" size="0.02" mass="1" contype="0" conaffinity="0"/>
    </body>
  </worldbody>
  {actuators}
</mujoco>
"""
MOTOR = '<actuator><motor name="motor" joint="swing"/></actuator>'
HOPPER = """
<robot name="hopper">
  <link name="trunk">
    <inertial><mass value="2"/><inertia ixx="0.02" iyy="0.02" izz="0.02" ixy="0" ixz="0" iyz="0"/></inertial>
    <collision><geometry><sphere radius="0.1"/></geometry></collision>
  </link>
  <joint name="hip" type="revolute">
    <parent link="trunk"/><child link="leg"/>
    <origin xyz="0 0 -0.1"/><axis xyz="1 0 0"/><limit lower="-1" upper="1" effort="20" velocity="10"/>
  </joint>
  <link name="leg">
    <inertial>
      <origin xyz="0 0 -0.1"/><mass value="0.5"/>
      <inertia ixx="0.002" iyy="0.002" izz="0.002" ixy="0" ixz="0" iyz="0"/>
    </inertial>
    <collision><origin xyz="0 0 -0.2"/><geometry><sphere radius="0.03"/></geometry></collision>
  </link>
</robot>
"""


def demo(*arguments: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "revolute", "demo", *arguments]
    return subprocess.run(command, capture_output=True, text=True, timeout=240, check=False)


def is_png(file: Path) -> bool:
    return file.read_bytes().startswith(b"\x89PNG\r\n\x1a\n")


def test_laikago_moves_aside_and_the_picture_is_written(tmp_path: Path) -> None:
    picture = tmp_path / "laikago.png"
    done = demo("--steps", "100", "--iterations", "5", "--out", str(picture))
    assert done.returncode == 0, done.stderr
    for row in ("server", "model", "forward", "backward", "checkpoints", "gradient check", "loss", "picture"):
        assert f"\n  {row}" in done.stdout
    assert "grpc://127.0.0.1:" in done.stdout
    assert "agrees" in done.stdout
    assert is_png(picture)


def test_a_picture_that_cannot_be_written_or_made(tmp_path: Path) -> None:
    picture = tmp_path / "none" / "a.png"
    done = demo("--out", str(picture))
    text = f"--out: expected a file that can be written, got '{picture}' (No such file or directory)"
    assert done.returncode == 2 and done.stderr == f"revolute demo: {text}\n"
    picture = tmp_path / "b.png"
    assert demo("nothing", "--out", str(picture)).returncode == 2
    assert not picture.exists()


@pytest.mark.parametrize(
    ("name", "text"), [("swing.xml", PENDULUM.format(actuators=MOTOR)), ("hopper.urdf", HOPPER)]
)
def test_a_file_of_the_user(tmp_path: Path, name: str, text: str) -> None:
    (tmp_path / name).write_text(text, encoding="utf-8")
    picture = tmp_path / "mine.png"
    done = demo(
        *("--model", str(tmp_path / name), "--steps", "40", "--iterations", "5", "--out", str(picture))
    )
    assert done.returncode == 0, done.stderr
    assert is_png(picture)


@pytest.mark.parametrize(
    ("name", "text", "said"),
    [
        ("no_motor.xml", PENDULUM.format(actuators=""), "at least one actuator"),
        ("torn.urdf", "<robot name='torn'>", "torn.urdf"),
    ],
)
def test_what_cannot_be_optimised_is_refused_in_one_line(
    tmp_path: Path, name: str, text: str, said: str
) -> None:
    (tmp_path / name).write_text(text, encoding="utf-8")
    done = demo(str(tmp_path / name))
    assert done.returncode == 2
    assert said in done.stderr
    assert len(done.stderr.strip().splitlines()) == 1


def test_a_file_that_is_not_there_is_named(tmp_path: Path) -> None:
    done = demo("--model", str(tmp_path / "nowhere.urdf"))
    assert done.returncode == 2
    assert "nowhere.urdf" in done.stderr
    assert "Traceback" not in done.stderr

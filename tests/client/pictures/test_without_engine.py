"""Pictures and the viewer in a process that has MuJoCo but neither engine nor server."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import httpx
import numpy as np
import pytest
from PIL import Image

import revolute
from testbed.server_process import ServerProcess

BLOCKED = """
import sys

class Blocked:
    def find_spec(self, name, path=None, target=None):
        if name.partition(".")[0] in ("revolute_engine", "revolute_server"):
            raise ImportError(name + " is blocked")

sys.meta_path.insert(0, Blocked())
"""

DRAW = """
import numpy as np
import revolute

sim = revolute.connect(sys.argv[1])
model = sim.load_model("laikago")
pose = model.keyframes["home"]
trajectory = sim.rollout(model, pose, model.qvel0, np.tile(pose[7:], (20, 1)))
trajectory.render(sys.argv[2], frames=2, size=(160, 120), contacts=True)
for name in ("revolute_engine", "revolute_server"):
    assert name not in sys.modules
"""

COMMAND = "from revolute.cli import main; sys.exit(main(sys.argv[1:]))"


@pytest.mark.usefixtures("opengl")
@pytest.mark.parametrize("way", ["grpc", "http"])
def test_a_trajectory_of_a_server_is_drawn(server: ServerProcess, way: str, tmp_path: Path) -> None:
    out = tmp_path / "home.png"
    command = [sys.executable, "-c", BLOCKED + DRAW, getattr(server, way), str(out)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=120, check=False)
    assert done.returncode == 0, done.stderr
    found = np.asarray(Image.open(out).convert("RGB")).astype(float)
    # the same picture as with the engine, but for the digits of the MJCF text
    with revolute.connect() as sim:
        model = sim.load_model("laikago")
        pose = model.keyframes["home"]
        trajectory = sim.rollout(model, pose, model.qvel0, np.tile(pose[7:], (20, 1)))
        trajectory.render(out, frames=2, size=(160, 120), contacts=True)
    expected = np.asarray(Image.open(out).convert("RGB")).astype(float)
    assert found.std() > 5
    assert np.abs(found - expected).mean() < 0.5


def test_the_command_shows_a_session_by_its_id(server: ServerProcess, over_grpc: revolute.Simulator) -> None:
    pytest.importorskip("viser")
    flags = ["--address", server.grpc, "--port", "18766"]
    with over_grpc.session(over_grpc.load_model("ant")) as session:
        command = [sys.executable, "-c", BLOCKED + COMMAND, "view", "--session", session.id, *flags]
        with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
            try:
                assert process.stdout is not None
                address = process.stdout.readline().split()[0]
                assert "<!doctype html>" in httpx.get(address, trust_env=False, timeout=30).text.lower()
            finally:
                process.terminate()


def test_nothing_to_view(capsys: pytest.CaptureFixture[str]) -> None:
    from revolute.cli import main

    assert main(["view"]) == 1
    assert "model: expected a trajectory, a robot's file or a name, or --session" in capsys.readouterr().err

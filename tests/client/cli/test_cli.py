"""The command line: every command runs for real, mistakes are one line and a status."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import revolute_engine
from revolute.cli import main
from testbed.server_process import ServerProcess


def _run(capsys: pytest.CaptureFixture[str], *arguments: str) -> tuple[int, str, str]:
    status = main(arguments)
    captured = capsys.readouterr()
    return status, captured.out, captured.err


@pytest.fixture(params=["in process", "grpc", "http"])
def connection(request: pytest.FixtureRequest) -> list[str]:
    """Return the flags for each way to reach an engine."""
    if request.param == "in process":
        return []
    server: ServerProcess = request.getfixturevalue("server")
    return ["--address", getattr(server, request.param)]


def test_models(connection: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    status, out, _ = _run(capsys, "models", *connection)
    assert status == 0
    assert {"laikago", "ant", "cartpole", "pendulum1"} <= set(out.split())


def test_info_of_the_engine(connection: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    status, out, _ = _run(capsys, "info", "--json", *connection)
    facts = json.loads(out)
    assert status == 0 and facts["api_versions"] == ["v1"] and facts["build"]["lanes"] >= 1


def test_info_of_a_model(connection: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    status, out, _ = _run(capsys, "info", "cartpole", "--timestep", "0.002", "--no-contact", *connection)
    assert status == 0
    assert ["timestep", "0.002"] in [line.split() for line in out.splitlines()]
    assert "contact False" in out


def test_rollout(connection: list[str], capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    np.save(tmp_path / "ctrl.npy", 0.1 * np.ones((2, 5, 12)))
    output = tmp_path / "out.npz"
    arguments = ["rollout", "laikago_torque", "--ctrl", str(tmp_path / "ctrl.npy"), "--output", str(output)]
    status, out, _ = _run(capsys, *arguments, *connection)
    assert status == 0 and "5 steps, 2 environments" in out and "diverged: 0" in out
    with np.load(output) as arrays:
        assert arrays["qpos"].shape == (2, 6, 19) and arrays["status"].tolist() == [0, 0]


def test_gradient(connection: list[str], capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    (tmp_path / "loss.json").write_text('{"terms": [{"quantity": "qpos", "index": [0], "target": 0.5}]}')
    np.savez(tmp_path / "in.npz", qvel=np.array([1.0, 0.0]), ctrl=np.zeros((10, 1)))
    output = tmp_path / "out.npz"
    arguments = ["gradient", "cartpole", "--loss", str(tmp_path / "loss.json"), "--wrt", "ctrl, body_mass"]
    files = ["--inputs", str(tmp_path / "in.npz"), "--output", str(output)]
    status, out, _ = _run(capsys, *arguments, *files, *connection)
    assert status == 0 and "d loss / d ctrl: shape [10, 1], norm " in out
    with np.load(output) as arrays:
        assert {"value", "status", "ctrl", "body_mass"} == set(arrays.files)
        assert np.linalg.norm(arrays["ctrl"]) > 0


def test_check_gradient(connection: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    arguments = ["check-gradient", "cartpole", "--steps", "20", "--no-contact", "--wrt", "ctrl, body_mass"]
    status, out, err = _run(capsys, *arguments, *connection)
    assert status == 0 and err == ""
    lines = out.splitlines()
    assert "20 steps, 3 directions, seed 0" in lines[0]
    assert [line.split()[:2] for line in lines if "right" in line] == [
        ["ctrl", "right"],
        ["body_mass", "right"],
    ]
    assert lines[-1].startswith("passed; worst: ")


def test_check_gradient_shows_its_progress_on_a_terminal(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    arguments = ["check-gradient", "cartpole", "--steps", "5", "--wrt", "ctrl, body_mass"]
    monkeypatch.setattr(sys.stderr, "isatty", lambda: True)
    _, out, err = _run(capsys, *arguments)
    clear = "\r\x1b[K"
    assert err == f"{clear}1 of 2: ctrl{clear}2 of 2: body_mass{clear}"
    assert "of 2" not in out


def test_check_gradient_as_json(
    connection: list[str], capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    np.savez(tmp_path / "in.npz", qvel=np.array([1.0, 0.0]), ctrl=np.zeros((5, 1)), gravity=[0.0, 0.0, -1.0])
    files = ["--inputs", str(tmp_path / "in.npz"), "--seed", "2", "--directions", "1", "--tolerance", "1e-4"]
    status, out, _ = _run(capsys, "check-gradient", "cartpole", "--json", *files, *connection)
    report = json.loads(out)
    assert status == 0 and report["passed"] is True
    assert (report["steps"], report["seed"], report["directions"], report["tolerance"]) == (5, 2, 1, 1e-4)
    assert {"qpos", "qvel", "ctrl", "gravity"} <= {check["name"] for check in report["inputs"]}


def test_a_wrong_gradient_is_a_status(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """A gradient that is off by a part in a thousand is found, and named."""
    right = revolute_engine.Engine.backward

    def wrong(*arguments: Any, **options: Any) -> revolute_engine.Gradient:
        found = right(*arguments, **options)
        arrays = {name: array * (1.001 if name == "ctrl" else 1.0) for name, array in found.arrays.items()}
        return revolute_engine.Gradient(arrays, found.status, found.diverged_step, found.report)

    monkeypatch.setattr(revolute_engine.Engine, "backward", wrong)
    status, out, _ = _run(capsys, "check-gradient", "cartpole", "--steps", "10", "--wrt", "qvel,ctrl")
    assert status == 1
    assert [line.split()[:2] for line in out.splitlines()[3:5]] == [["qvel", "right"], ["ctrl", "wrong"]]
    assert out.splitlines()[-1].startswith("failed; worst: ctrl[")


def test_warnings_of_a_load_are_lines(
    connection: list[str], capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    sphere = '<collision><geometry><sphere radius="0.1"/></geometry></collision></link>'
    joint = '<joint name="{0}{1}" type="continuous"><parent link="{0}"/><child link="{1}"/></joint>'
    inertia = (
        '<inertial><mass value="1"/><inertia ixx="1" iyy="1" izz="1" ixy="0" ixz="0" iyz="0"/></inertial>'
    )
    links = "".join(f'<link name="{name}">{inertia}{sphere}' for name in "abc")
    joints = joint.format("a", "b") + joint.format("b", "c")
    path = tmp_path / "chain.urdf"
    path.write_text(f'<robot name="chain">{links}{joints}</robot>')
    status, _, err = _run(capsys, "info", str(path), *connection)
    assert status == 0
    assert err.startswith("revolute: warning: chain.urdf: 2 pairs that overlap in the zero pose")
    assert err.count("\n") == 1


MISTAKES = {
    "model": (["rollout", "cartpoleee"], "source: expected XML text or the name of a built-in model"),
    "file": (
        ["rollout", "none.urdf"],
        "source: expected a readable file, XML text or a built-in name, got 'none.urdf'",
    ),
    "array": (
        ["rollout", "cartpole", "--ctrl", "none.npy"],
        "--ctrl: expected a readable .npy file, got 'none.npy' (No such file or directory)",
    ),
    "steps": (
        ["rollout", "cartpole", "--steps", "-1"],
        "--steps: expected a number of steps of at least 0, got -1",
    ),
    "loss": (
        ["gradient", "cartpole", "--loss", "{}"],
        "loss: expected an object with a list 'terms', got {}",
    ),
    "json": (
        ["gradient", "cartpole", "--loss", '{"a": NaN}'],
        "--loss: expected finite JSON numbers, got NaN",
    ),
    "wrt": (
        ["gradient", "cartpole", "--loss", '{"terms": [{"quantity": "qpos"}]}', "--wrt", "mass"],
        "wrt: expected names among",
    ),
    "check": (
        ["check-gradient", "cartpole", "--wrt", "mass"],
        "wrt: expected names among qpos, qvel, ctrl, geom_friction",
    ),
    "directions": (
        ["check-gradient", "cartpole", "--directions", "0"],
        "directions: expected a whole number of at least 1, got 0",
    ),
    "package": (["rollout", "cartpole", "--package", "x"], "--package: expected NAME=FOLDER, got 'x'"),
    "address": (["models", "--address", "nonsense"], "address: expected grpc://host:port"),
}


FILES = {
    "another kind": ("--ctrl", "a.txt", "expected a readable .npy file, got '{}' (another kind of file, or"),
    "several arrays": (
        "--ctrl",
        "a.npz",
        "expected an .npy file, got the .npz file '{}'; give it as --inputs",
    ),
    "one array": ("--inputs", "a.npy", "expected an .npz file, got the .npy file '{}'"),
    "cut": ("--inputs", "c.npz", "expected a readable .npz file, got '{}' ("),
    "damaged": ("--inputs", "d.npz", "expected a readable .npz file, got '{}' ("),
    "misspelt": ("--inputs", "b.npz", "expected members among qpos, qvel, ctrl, got 'controls'"),
}


@pytest.mark.parametrize("mistake", FILES)
def test_files_of_arrays(mistake: str, capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    (tmp_path / "a.txt").write_text("0 0 0")
    np.save(tmp_path / "a.npy", np.zeros((3, 1)))
    np.savez(tmp_path / "a.npz", ctrl=np.zeros((3, 1)))
    np.savez(tmp_path / "b.npz", controls=np.zeros((3, 1)))
    whole = (tmp_path / "a.npz").read_bytes()
    (tmp_path / "c.npz").write_bytes(whole[: len(whole) // 2])
    (tmp_path / "d.npz").write_bytes(whole.replace(b"NUMPY", b"numpy"))
    flag, name, text = FILES[mistake]
    status, out, err = _run(capsys, "rollout", "cartpole", flag, str(tmp_path / name))
    assert status == 1 and out == "" and err.count("\n") == 1
    assert err.startswith(f"revolute rollout: {flag}: {text.format(tmp_path / name)}")


@pytest.mark.parametrize("command", ["rollout", "gradient"])
def test_an_output_that_cannot_be_written_is_refused_before_the_simulation(
    command: str, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    loss = ["--loss", '{"terms": [{"quantity": "qpos"}]}'] if command == "gradient" else []
    output = tmp_path / "none" / "out.npz"
    status, out, err = _run(capsys, command, "cartpole", *loss, "--output", str(output))
    assert status == 1 and out == ""
    text = f"--output: expected a file that can be written, got '{output}' (No such file or directory)"
    assert err == f"revolute {command}: {text}\n"


def test_an_output_is_left_alone_by_a_command_that_fails(
    capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    old, new = tmp_path / "old.npz", tmp_path / "new.npz"
    old.write_text("kept")
    for output in (old, new):
        assert _run(capsys, "rollout", "none", "--output", str(output))[0] == 1
    assert old.read_text() == "kept" and not new.exists()


def test_help_of_rollout_names_every_policy(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit):
        main(["rollout", "--help"])
    assert {"every,", "interval=k,", "slots=s,", "none"} <= set(capsys.readouterr().out.split())


@pytest.mark.parametrize("mistake", MISTAKES)
def test_mistakes_are_one_line(mistake: str, capsys: pytest.CaptureFixture[str]) -> None:
    arguments, text = MISTAKES[mistake]
    status, out, err = _run(capsys, *arguments)
    assert status == 1 and out == ""
    assert err.startswith(f"revolute {arguments[0]}: {text}") and err.count("\n") == 1


def test_flags_that_argparse_refuses(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as caught:
        main(["rollout", "cartpole", "--timestep", "fast"])
    assert caught.value.code == 2
    assert "--timestep" in capsys.readouterr().err


def test_help_lists_every_command() -> None:
    done = subprocess.run(
        [sys.executable, "-m", "revolute", "--help"], capture_output=True, text=True, check=True
    )
    for command in ("demo", "serve", "info", "models", "rollout", "gradient", "check-gradient"):
        assert f"    {command}" in done.stdout


def test_serve_help_comes_from_the_server() -> None:
    command = [sys.executable, "-m", "revolute", "serve", "--help"]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    assert "--grpc-port" in done.stdout

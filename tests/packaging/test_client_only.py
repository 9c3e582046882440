"""The light client alone: installs without a compiler, imports fast, and gets the engine's bits from a
server."""

from __future__ import annotations

import json
import subprocess
import sys
import venv
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import revolute
from testbed.server_process import ServerProcess
from tests.packaging.client_job import job
from tests.robots import LAIKAGO_HEIGHT, gymnasium_ant, laikago_urdf

ROOT = Path(__file__).resolve().parents[2]
IMPORT_SECONDS = 0.5

SCRIPT = Path(__file__).with_name("client_job.py")

ROBOTS: dict[str, tuple[Any, dict[str, Any], float]] = {
    "laikago": (laikago_urdf, {"base": "free", "ground": True, "timestep": 1e-3}, LAIKAGO_HEIGHT),
    "ant": (gymnasium_ant, {}, 0.0),
}
"""Robots with the options to load them, and how far to lift them to stand on the ground."""


def _run(python: Path, *arguments: str) -> str:
    done = subprocess.run(
        [str(python), *arguments], capture_output=True, text=True, timeout=120, check=False, cwd=python.parent
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


@pytest.fixture(scope="module")
def python(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return the interpreter of an environment that has the light client and what it depends on, nothing
    else."""
    folder = tmp_path_factory.mktemp("client-only")
    venv.create(folder)
    interpreter = folder / "bin/python"
    pip = [sys.executable, "-m", "pip", "--python", interpreter, "--disable-pip-version-check"]
    install = ["install", "--quiet", "--only-binary=numpy,grpcio", ROOT / "client"]
    subprocess.run([*pip, *install], check=True, timeout=280)
    return interpreter


def test_nothing_heavy_is_installed(python: Path) -> None:
    code = "import json, importlib.metadata as m; print(json.dumps([d.name for d in m.distributions()]))"
    names = {name.lower().replace("_", "-") for name in json.loads(_run(python, "-c", code))}
    assert {"revolute", "numpy", "protobuf", "grpcio", "httpx"} <= names
    allowed = {
        "typing-extensions",
        "httpcore",
        "h11",
        "anyio",
        "idna",
        "certifi",
        "sniffio",
        "exceptiongroup",
    }
    assert names <= allowed | {"revolute", "numpy", "protobuf", "grpcio", "httpx"}


def test_import_is_fast(python: Path) -> None:
    code = "import time; began = time.perf_counter(); import revolute; print(time.perf_counter() - began)"
    _run(python, "-c", code)  # compiles the byte code
    seconds = sorted(float(_run(python, "-c", code)) for _ in range(5))
    assert seconds[2] < IMPORT_SECONDS, seconds


def test_the_engine_is_missed_politely(python: Path) -> None:
    code = "import revolute\ntry: revolute.connect()\nexcept revolute.UnavailableError as error: print(error)"
    text = _run(python, "-c", code)
    assert text.startswith("address: expected the engine in this process, got none")
    assert 'pip install "revolute[server]"' in text
    done = subprocess.run(
        [python.parent / "revolute", "serve"], capture_output=True, text=True, timeout=60, check=False
    )
    assert done.returncode == 1
    assert done.stderr.startswith("revolute serve: expected the package revolute-server, got none")


@pytest.mark.parametrize("robot", ROBOTS)
@pytest.mark.parametrize("transport", ["grpc", "http"])
@pytest.mark.filterwarnings("ignore::UserWarning")
def test_robots_over_the_network(
    robot: str,
    transport: str,
    python: Path,
    server: ServerProcess,
    in_process: revolute.Simulator,
    tmp_path: Path,
) -> None:
    find, options, lift = ROBOTS[robot]
    output = tmp_path / "results.npz"
    arguments = getattr(server, transport), str(find()), json.dumps(options), str(lift), str(output)
    _run(python, str(SCRIPT), *arguments)
    local = job(in_process, str(find()), options, lift)
    with np.load(output) as remote:
        assert set(remote.files) == set(local)
        for name in remote.files:
            assert remote[name].tobytes() == np.asarray(local[name]).tobytes(), name

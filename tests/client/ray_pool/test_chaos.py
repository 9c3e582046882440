"""SHAC on a pool whose workers and server are killed: windows and parameters of an undisturbed run."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

pytest.importorskip("torch.utils.tensorboard", reason="tensorboard is not installed", exc_type=ImportError)

ROOT = Path(__file__).resolve().parents[3]
ENVIRONMENT = {**os.environ, "RAY_USAGE_STATS_ENABLED": "0", "RAY_worker_niceness": "0"}

KILLS = r"(\d+) workers and (\d+) servers killed, (\d+) workers replaced"
WINDOWS = r"(\d+) windows, (\d+) control steps, (\d+) windows differ"


def _numbers(line: str, output: str) -> tuple[int, ...]:
    """Return the numbers of a line of the script; Ray's own lines may stand before and after it."""
    found = re.search(line, output)
    assert found, output
    return tuple(map(int, found.groups()))


@pytest.mark.slow
def test_kills_change_no_sample_and_no_parameter() -> None:
    """Short form of `python -m benchmarks.distributed.chaos`."""
    command = [sys.executable, "-m", "benchmarks.distributed.chaos"]
    options = ("--seconds", "20", "--worker-every", "4", "--server-every", "8", "--seed", "3")
    done = subprocess.run(
        [*command, *options], cwd=ROOT, env=ENVIRONMENT, capture_output=True, text=True, timeout=280
    )
    assert done.returncode == 0, done.stderr
    workers, servers, replaced = _numbers(KILLS, done.stdout)
    assert workers > 0 and servers > 0 and 0 < replaced <= workers
    count, samples, wrong = _numbers(WINDOWS, done.stdout)
    assert count > 0 and samples == 256 * 32 * count and wrong == 0
    parameters = re.search("parameters ([0-9a-f]{16}), undisturbed ([0-9a-f]{16})", done.stdout)
    assert parameters and parameters[1] == parameters[2]


@pytest.mark.slow
@pytest.mark.timeout(600)
def test_the_script_trains_the_same_on_workers(tmp_path: Path) -> None:
    """`--workers`: the gradient's sum has another order, so the numbers agree to rounding."""
    script = ROOT / "examples/rl/shac.py"
    options = ("--batch", "256", "--steps", str(256 * 32 * 3), "--critic-epochs", "1")
    found = []
    for name, workers in (("engine", ()), ("pool", ("--workers", "2"))):
        command = [sys.executable, str(script), "pendulum", *options, *workers, "--out", str(tmp_path / name)]
        done = subprocess.run(command, env=ENVIRONMENT, capture_output=True, text=True, timeout=280)
        assert done.returncode == 0, done.stderr
        lines = (tmp_path / name / "progress.jsonl").read_text(encoding="utf-8").splitlines()
        found.append([[json.loads(line)[key] for key in ("loss", "gradient_norm")] for line in lines])
    assert len(found[0]) == 3
    np.testing.assert_allclose(found[0], found[1], rtol=1e-9)

"""SHAC on a pool whose workers and server are killed: windows and parameters of an undisturbed run."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

pytest.importorskip("torch.utils.tensorboard", reason="tensorboard is not installed", exc_type=ImportError)

ROOT = Path(__file__).resolve().parents[3]


@pytest.mark.slow
def test_kills_change_no_sample_and_no_parameter() -> None:
    """Short form of `python -m benchmarks.distributed.chaos`."""
    command = [sys.executable, "-m", "benchmarks.distributed.chaos"]
    options = ("--seconds", "20", "--worker-every", "4", "--server-every", "8", "--seed", "3")
    environment = {**os.environ, "RAY_USAGE_STATS_ENABLED": "0"}
    done = subprocess.run(
        [*command, *options], cwd=ROOT, env=environment, capture_output=True, text=True, timeout=280
    )
    assert done.returncode == 0, done.stderr
    kills, windows, parameters = done.stdout.strip().splitlines()[-3:]
    workers, servers, replaced = map(int, re.findall(r"\d+", kills))
    assert workers > 0 and servers > 0 and 0 < replaced <= workers
    count, samples, wrong = map(int, re.findall(r"\d+", windows))
    assert count > 0 and samples == 256 * 32 * count and wrong == 0
    one, other = re.findall(r"[0-9a-f]{16}", parameters)
    assert one == other

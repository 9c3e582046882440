"""A pool on several nodes, simulated on this machine: the bits of one worker, also when a node is lost."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[3]


@pytest.mark.slow
def test_nodes_do_not_change_the_bits_and_may_be_lost(tmp_path: Path) -> None:
    command = [sys.executable, "-m", "benchmarks.distributed.nodes", "--quick", "--out", "nodes.json"]
    environment = {"PYTHONPATH": str(ROOT)}
    done = subprocess.run(
        command, cwd=tmp_path, env={**os.environ, **environment}, capture_output=True, text=True, timeout=280
    )
    assert done.returncode == 0, done.stderr
    (table,) = json.loads((tmp_path / "nodes.json").read_text(encoding="utf-8"))["tables"]
    one, two, lost = table["rows"]
    assert (one["nodes"], two["nodes"], lost["nodes"]) == (1, 2, "2, one of them lost")
    assert len({row["bits"] for row in table["rows"]}) == 1 and len(one["bits"]) == 16
    assert (one["replaced"], two["replaced"], lost["replaced"]) == (0, 0, 1)

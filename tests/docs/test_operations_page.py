"""docs/operations.md: its commands run, one after the other."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

PAGE = (Path(__file__).parents[2] / "docs/operations.md").read_text(encoding="utf-8")


def test_the_commands_run(tmp_path: Path) -> None:
    script = "set -eu\n" + "".join(re.findall(r"```bash\n(.*?)```", PAGE, re.DOTALL))
    path = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"
    done = subprocess.run(
        ["bash", "-c", script],
        cwd=tmp_path,
        env={**os.environ, "PATH": path},
        capture_output=True,
        text=True,
        timeout=120,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    assert (tmp_path / "motion.npz").exists() and (tmp_path / "restored.db").exists()
    assert "the log level is info now" in (tmp_path / "log.txt").read_text(encoding="utf-8")
    assert "2 of kind" in done.stdout or "1 of kind model" in done.stdout

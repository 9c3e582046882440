"""Runs a process with a limit on its processor time, which does not depend on other load.

The parent polls the child's processor time. The system's limit (RLIMIT_CPU) would make the child's clock as
coarse as the scheduler's ticks.
"""

from __future__ import annotations

import os
import subprocess
import tempfile
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

PATIENCE = 4  # wall-clock time over processor time
GLANCE = 0.05  # seconds between looks


@dataclass(frozen=True)
class Ended:
    """How a process ended.

    Attributes:
        returncode: its exit status.
        stdout: standard output, up to the end or the stop.
        stderr: standard error, up to the end or the stop.
        stopped: whether it exceeded its time limit.
    """

    returncode: int
    stdout: str
    stderr: str
    stopped: bool


def run_bounded(command: Sequence[str], folder: Path, env: Mapping[str, str], seconds: float) -> Ended:
    """Run a command until it ends or has used `seconds` of processor time.

    Args:
        command: program and arguments.
        folder: working directory.
        env: environment variables.
        seconds: processor time of the process; its wall-clock time may be PATIENCE times that.
    """
    with tempfile.TemporaryFile() as out, tempfile.TemporaryFile() as errors:
        process = subprocess.Popen(command, cwd=folder, env=env, stdout=out, stderr=errors)
        begin, stopped = time.monotonic(), False
        while process.poll() is None:
            used = max(processor_seconds(process.pid), (time.monotonic() - begin) / PATIENCE)
            if used > seconds:
                process.kill()
                stopped = True
                process.wait()
                break
            time.sleep(GLANCE)
        texts = []
        for file in (out, errors):
            file.seek(0)
            texts.append(file.read().decode("utf-8", "replace"))
        return Ended(process.returncode, texts[0], texts[1], stopped)


def processor_seconds(pid: int) -> float:
    """Return the processor time of a running process, or 0 if the system does not report it."""
    try:
        fields = Path(f"/proc/{pid}/stat").read_text("utf-8").rpartition(")")[2].split()
    except OSError:
        return 0.0
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")  # user and system time

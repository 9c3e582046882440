"""Timing with medians, and a description of the machine."""

from __future__ import annotations

import os
import platform
import statistics
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any


@dataclass(frozen=True)
class Timing:
    """Seconds of one call over several repeats."""

    median: float
    fastest: float
    slowest: float
    repeats: int

    def per(self, count: int) -> dict[str, float | int]:
        """Return microseconds per item for a call that handles `count` items, ready for JSON."""
        scale = 1e6 / count
        return {
            "median_us": self.median * scale,
            "fastest_us": self.fastest * scale,
            "slowest_us": self.slowest * scale,
            "repeats": self.repeats,
        }


def interleaved(
    calls: Mapping[str, Callable[[], object]], repeats: int, clock: Callable[[], float] = time.process_time
) -> dict[str, Timing]:
    """Time several calls in turn, so that other load on the machine affects all of them equally.

    Args:
        calls: calls by name; each runs once without timing first.
        repeats: number of timed rounds.
        clock: returns seconds; by default the processor time of this process, which does not include waiting
            for a core. Calls that use several threads need the wall clock.
    """
    for call in calls.values():
        call()
    seconds: dict[str, list[float]] = {name: [] for name in calls}
    for _ in range(repeats):
        for name, call in calls.items():
            start = clock()
            call()
            seconds[name].append(clock() - start)
    return {
        name: Timing(statistics.median(values), min(values), max(values), repeats)
        for name, values in seconds.items()
    }


def process_seconds(process: int) -> float:
    """Return the processor time of another process so far, in s (Linux)."""
    fields = Path(f"/proc/{process}/stat").read_text(encoding="utf-8").rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def machine() -> dict[str, Any]:
    """Describe this machine: processor, cores, load, and the versions that were measured."""
    import mujoco
    import numpy

    import revolute
    from revolute_engine import native

    return {
        "processor": _processor(),
        "cores": os.cpu_count(),
        "load_before": os.getloadavg()[0],
        "system": f"{platform.system()} {platform.machine()}",
        "python": platform.python_version(),
        "numpy": numpy.__version__,
        "mujoco": mujoco.__version__,
        "revolute": revolute.__version__,
        "instruction_set": native.isa,
        "lanes": native.lanes,
    }


def _processor() -> str:
    """Return the processor's name from Linux, else from Python."""
    try:
        for line in Path("/proc/cpuinfo").read_text(encoding="utf-8").splitlines():
            if line.startswith("model name"):
                return line.partition(":")[2].strip()
    except OSError:
        pass
    return platform.processor() or platform.machine()

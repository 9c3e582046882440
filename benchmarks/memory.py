"""Peak memory of a call, as Linux counts it for this process."""

from __future__ import annotations

import ctypes
import gc
from collections.abc import Callable
from pathlib import Path
from typing import TypeVar

Result = TypeVar("Result")
_STATUS, _CLEAR = Path("/proc/self/status"), Path("/proc/self/clear_refs")


def resident(field: str = "VmRSS") -> float:
    """Return megabytes (1e6 bytes) of resident memory; `VmHWM` is the peak since the last reset."""
    for line in _STATUS.read_text("utf-8").splitlines():
        if line.startswith(field + ":"):
            return int(line.split()[1]) * 1024 / 1e6
    raise ValueError(f"field: expected a field of {_STATUS}, got {field!r}")


def return_free_memory() -> None:
    """Give memory that was freed back to the system, so that its use again is counted (glibc only)."""
    trim = getattr(ctypes.CDLL(None), "malloc_trim", None)
    if trim is not None:
        trim(0)


def with_peak(call: Callable[[], Result]) -> tuple[Result, float]:
    """Return what a call returns, and the peak of its memory above that before it, in megabytes."""
    gc.collect()
    return_free_memory()
    _CLEAR.write_text("5")  # resets the peak
    before = resident()
    result = call()
    return result, max(0.0, resident("VmHWM") - before)

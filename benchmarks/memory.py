"""Peak memory of a call: the one definition that all tables use.

*Peak* is how far the resident memory of the process rises during a call above what it was before, pages of
program code left out. Results of the call are in it; its inputs, which were there before, are not. Linux
counts it (`VmHWM`, reset before the call). Bytes asked of the allocator would count room that is never
touched, and miss what the allocator keeps. Of a peak that is over before the call ends, Linux's count may
lack up to 32 pages per core: 0.26 MB on two cores.

Free memory is given back before the call, so that its use again counts. NumPy asks for pages of 2 MB for
arrays above 4 MB, which are resident as a whole when one byte is; the environment SMALL_PAGES has it not ask.
"""

from __future__ import annotations

import ctypes
import gc
from collections.abc import Callable
from pathlib import Path
from typing import TypeVar

Result = TypeVar("Result")
SMALL_PAGES = {"NUMPY_MADVISE_HUGEPAGE": "0"}
_STATUS, _CLEAR = Path("/proc/self/status"), Path("/proc/self/clear_refs")


def resident(field: str = "VmRSS") -> float:
    """Return megabytes (1e6 bytes) of resident memory.

    Args:
        field: `VmRSS` for now, `VmHWM` for the peak since the last reset, `RssFile` for pages of files.
    """
    for line in _STATUS.read_text("utf-8").splitlines():
        if line.startswith(field + ":"):
            return int(line.split()[1]) * 1024 / 1e6
    raise ValueError(f"field: expected a field of {_STATUS}, got {field!r}")


def return_free_memory() -> None:
    """Give memory that was freed back to the system, so that its use again is counted (glibc only)."""
    gc.collect()
    trim = getattr(ctypes.CDLL(None), "malloc_trim", None)
    if trim is not None:
        trim(0)


def with_peak(call: Callable[[], Result]) -> tuple[Result, float]:
    """Return what a call returns, and its peak in megabytes."""
    return_free_memory()
    _CLEAR.write_text("5")  # resets the peak
    before, code = resident(), resident("RssFile")
    result = call()
    return result, max(0.0, resident("VmHWM") - before - max(0.0, resident("RssFile") - code))

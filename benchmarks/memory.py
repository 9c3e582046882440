"""Peak memory of a call, as all tables define it.

The peak is the largest increase of the process's resident memory during a call, without pages of program
code. It includes the results of the call, but not its inputs. Linux measures it (`VmHWM`, reset before the
call). The sizes of allocations would be misleading: they count untouched memory, and miss memory that the
allocator keeps. Linux may miss up to 32 pages per core of a peak in the middle of a call: 0.26 MB on two
cores.

Free memory is returned to the system before the call, so that its reuse counts. For arrays above 4 MB, NumPy
requests pages of 2 MB, which are resident as a whole; the environment variables SMALL_PAGES prevent that.
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
    """Return freed memory to the system, so that its reuse is counted (glibc only)."""
    gc.collect()
    trim = getattr(ctypes.CDLL(None), "malloc_trim", None)
    if trim is not None:
        trim(0)


def with_peak(call: Callable[[], Result]) -> tuple[Result, float]:
    """Return the result of a call, and its peak memory in MB."""
    return_free_memory()
    _CLEAR.write_text("5")  # resets the peak
    before, code = resident(), resident("RssFile")
    result = call()
    return result, max(0.0, resident("VmHWM") - before - max(0.0, resident("RssFile") - code))

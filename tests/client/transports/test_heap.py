"""Memory of large arrays stays with the process from one call to the next."""

import platform
import subprocess
import sys

import pytest

PROBE = """
import resource, sys
import numpy as np
from revolute.contract.codec.heap import keep_freed_memory

def faults(size):
    before = resource.getrusage(resource.RUSAGE_SELF).ru_minflt
    for _ in range(20):
        arrays = [np.ones(size // 8) for _ in range(4)]
        del arrays
    return resource.getrusage(resource.RUSAGE_SELF).ru_minflt - before

if sys.argv[1] == "yes":
    keep_freed_memory()
faults(800_000)
print(faults(800_000))
"""


@pytest.mark.skipif(platform.libc_ver()[0] != "glibc", reason="a matter of glibc")
def test_freed_arrays_are_used_again() -> None:
    found = {}
    for kept in ("yes", "no"):
        probe = subprocess.run(
            [sys.executable, "-c", PROBE, kept], capture_output=True, text=True, check=True
        )
        found[kept] = int(probe.stdout)
    # 20 rounds of 4 arrays of 195 pages
    assert found["no"] > 5000
    assert found["yes"] < 500

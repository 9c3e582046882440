"""The short form of benchmarks/service/leak.py: memory does not grow with calls, and a leak would be seen."""

from __future__ import annotations

import pytest

from benchmarks.service import leak
from testbed.server_process import running_server

CALLS, CYCLES = 4000, 300
LIMIT = 4e6
"""Bytes; the planted leak is twice as much."""


@pytest.mark.parametrize("planted", [False, True])
def test_memory_over_many_calls(planted: bool) -> None:
    with running_server(module=leak.LEAKY if planted else "revolute_server") as server:
        report = leak.run(server, CALLS, CYCLES)
    assert not any(report.left.values()), report.left
    assert not report.failed
    assert (report.growth > LIMIT) is planted, report.growth

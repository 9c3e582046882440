"""SIGTERM under load: the short form of `python -m benchmarks.service.drain`."""

from __future__ import annotations

import pytest

from benchmarks.service.drain import drain_once


@pytest.mark.parametrize("seed", range(4))
def test_every_call_is_answered_or_refused_as_draining(seed: int) -> None:
    found = drain_once(seed)
    assert found.good, found
    assert found.answered > 0
    # whoever calls a draining server is told so
    assert found.refused > 0

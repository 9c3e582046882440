"""Requests made from the OpenAPI description get answers that it describes, and never a fault."""

from __future__ import annotations

import pytest

from benchmarks.service.incidents import incidents
from benchmarks.service.openapi_fuzzing import fuzz
from testbed.long_form import repeats
from testbed.server_process import running_server


@pytest.mark.parametrize("sharpen", [False, True], ids=["as it is", "with ids that are there"])
def test_described_requests(sharpen: bool) -> None:
    # little memory, so that a batch of millions is refused and not computed
    with running_server("--memory", "256MiB") as server:
        report = fuzz(server.http, repeats(2, 5), 1, sharpen=sharpen, seconds=200.0)
        assert report.cases >= 300
        assert not report.failures, report.output[-6000:]
        assert server.process.poll() is None
        assert not incidents(server.log.read_text())

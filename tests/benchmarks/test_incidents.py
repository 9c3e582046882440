"""Faults are found in a server's log, each with its whole stack."""

from __future__ import annotations

import io
import logging

from benchmarks.service.incidents import incidents
from revolute_server.observe import logs
from revolute_server.observe.incidents import public_error


def _fail(text: str) -> None:
    raise ValueError(text)


def test_every_incident_is_found_with_its_stack() -> None:
    output, log = io.StringIO(), logging.getLogger("revolute.server")
    handler = logging.StreamHandler(output)
    handler.setFormatter(logs.Text())
    log.addHandler(handler)
    try:
        for text in ("first", "second"):
            log.warning("something else")
            try:
                _fail(text)
            except ValueError as error:
                public_error(error, "SessionService.Step")
    finally:
        log.removeHandler(handler)
    first, second = incidents(output.getvalue())
    assert "in SessionService.Step" in first and first.endswith("ValueError: first")
    assert "in _fail" in second and second.endswith("ValueError: second")
    assert incidents("2026-01-01 00:00:00,000 INFO revolute.access: incident") == []

"""How often tests repeat what chance decides: seldom in CI, often in the long form, `make test-long`."""

from __future__ import annotations

import os

LONG = os.environ.get("REVOLUTE_LONG_TESTS") == "1"


def repeats(short: int, long: int) -> int:
    """Return how many cases, calls or examples a test makes."""
    return long if LONG else short

"""The folders of the cases: model files and expected numbers."""

import json
from pathlib import Path
from typing import Any


def case_file(case: str, name: str) -> Path:
    """Return the path of a case's file."""
    return Path(__file__).parent / case / name


def expected(case: str) -> dict[str, Any]:
    """Return a case's expected numbers."""
    return json.loads(case_file(case, "expected.json").read_text())

"""The folders of the cases: model files and expected numbers."""

import json
import re
from pathlib import Path
from typing import Any

CASES = Path(__file__).parents[1] / "tests" / "cases"


def case_file(case: str, name: str) -> Path:
    """Return the path of a case's file."""
    return CASES / case / name


def expected(case: str) -> dict[str, Any]:
    """Return a case's expected numbers."""
    return json.loads(case_file(case, "expected.json").read_text())


def with_option(text: str, **attributes: object) -> str:
    """Return an MJCF text whose <option> has these attributes."""
    found = re.search(r"<option([^>]*?)/>", text)
    assert found is not None
    kept = re.sub(rf'\s(?:{"|".join(attributes)})="[^"]*"', "", found[1]) if attributes else found[1]
    added = "".join(f' {name}="{value}"' for name, value in attributes.items())
    return text.replace(found[0], f"<option{kept}{added}/>")

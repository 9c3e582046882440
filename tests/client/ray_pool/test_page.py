"""The code of docs/ray.md runs."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

PAGE = Path(__file__).resolve().parents[3] / "docs/ray.md"


@pytest.mark.slow
def test_the_example_runs(ray_cluster: None) -> None:
    (block,) = re.findall(r"```python\n(.*?)```", PAGE.read_text(encoding="utf-8"), re.DOTALL)
    names: dict[str, object] = {}
    exec(compile(block, str(PAGE), "exec"), names)
    assert names["gradient"].ctrl.shape == (1024, 50, 12)  # type: ignore[attr-defined]

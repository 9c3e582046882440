"""docs/extending.md: the files that it tells a reader to change are there."""

from __future__ import annotations

from pathlib import Path

ROOT = Path(__file__).parents[2]
PAGE = (ROOT / "docs/extending.md").read_text(encoding="utf-8")
ENDINGS = (".cpp", ".hpp", ".md", ".proto", ".py", ".sh")


def test_the_named_files_exist() -> None:
    quoted = [
        text for text in PAGE.split("`")[1::2] if "/" in text and " " not in text and text.endswith(ENDINGS)
    ]
    paths = [
        text.replace("I/", "engine/include/revolute/", 1) if text.startswith("I/") else text
        for text in quoted
    ]
    assert len(set(paths)) > 25
    assert [path for path in paths if not (ROOT / path).is_file()] == []

"""Adds to the site what the docs link to in the rest of the repository, README.md as its first page.

Pages keep links that work where they lie, e.g. `../examples/hop.py`. On the site a file of `docs/` has its
path without that folder, README.md is index.md, and every other file has its path in the repository.
"""

from __future__ import annotations

import posixpath
import re
from pathlib import Path
from typing import Any

from mkdocs.structure.files import File, Files

ROOT = Path(__file__).resolve().parents[1]
LINK = re.compile(r"(\]\()([^)\s#:]+)(#[^)\s]*)?(\))")
HOME = ("README.md", "index.md")
DECISIONS = ("docs/decisions", "decisions/index.md")
"""A folder, and the page that lists what is in it."""


def on_files(files: Files, *, config: Any) -> Files:
    """Add the home page and, page by page, the files that pages link to."""
    pages = [_in_repository(file.src_uri) for file in files.documentation_pages()]
    known = {*pages, HOME[0], DECISIONS[0]}
    files.append(File.generated(config, DECISIONS[1], content=_decisions()))
    _add(files, HOME[0], config)
    waiting = [*pages, HOME[0]]
    while waiting:
        page = waiting.pop()
        for target in _targets(page):
            if target not in known and not target.startswith("docs/"):
                known.add(target)
                _add(files, target, config)
                waiting += [target] if target.endswith(".md") else []
    return files


def on_page_markdown(markdown: str, *, page: Any, **_others: Any) -> str:
    """Rewrite links from places in the repository to places on the site."""
    place = _in_repository(page.file.src_uri)
    here = posixpath.dirname(page.file.src_uri) or "."

    def moved(found: re.Match[str]) -> str:
        target = _target(place, found[2])
        if target is None:
            return found[0]
        return f"{found[1]}{posixpath.relpath(_on_site(target), here)}{found[3] or ''}{found[4]}"

    return LINK.sub(moved, markdown)


def _decisions() -> str:
    """Return the list of decisions."""
    lines = ["# Decisions", ""]
    for path in sorted((ROOT / DECISIONS[0]).glob("*.md")):
        title = path.read_text(encoding="utf-8").partition("\n")[0].removeprefix("# ")
        lines.append(f"* [{title}]({path.name})")
    return "\n".join(lines)


def _add(files: Files, place: str, config: Any) -> None:
    files.append(File.generated(config, _on_site(place), abs_src_path=str(ROOT / place)))


def _in_repository(source: str) -> str:
    """Return the place in the repository of a file of the site."""
    if source == HOME[1]:
        return HOME[0]
    return f"docs/{source}" if (ROOT / "docs" / source).exists() else source


def _on_site(place: str) -> str:
    return {HOME[0]: HOME[1], DECISIONS[0]: DECISIONS[1]}.get(place, place.removeprefix("docs/"))


def _target(place: str, link: str) -> str | None:
    """Return the file that a link of a page names; None if there is none."""
    target = posixpath.normpath(posixpath.join(posixpath.dirname(place), link))
    is_there = (ROOT / target).is_file() or target == DECISIONS[0]
    return target if is_there and not target.startswith("..") else None


def _targets(place: str) -> list[str]:
    text = (ROOT / place).read_text(encoding="utf-8")
    return [target for found in LINK.finditer(text) if (target := _target(place, found[2])) is not None]

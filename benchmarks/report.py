"""Updates tables and plots of benchmarks/results/performance.md: `python -m benchmarks.report`.

Reads benchmarks/results/performance/results.json; `--results build/bench.json` replaces that file first. On
the page, a table is between the comments `<!-- table NAME -->` and `<!-- end -->`, the machine between
`<!-- machine -->` and `<!-- end -->`. Tables that are not in the results stay unchanged.
"""

from __future__ import annotations

import argparse
import re
import shutil
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from .plots import draw
from .run import describe
from .script import ROOT, read_report
from .table import Table

PAGE = ROOT / "benchmarks" / "results" / "performance.md"
FOLDER = ROOT / "benchmarks" / "results" / "performance"
RESULTS = FOLDER / "results.json"


def rendered(page: str, host: dict[str, Any], tables: Sequence[Table]) -> str:
    """Return the page with updated machine and tables."""
    texts = {f"table {table.name}": table.markdown() for table in tables} | {"machine": describe(host)}

    def block(match: re.Match[str]) -> str:
        text = texts.get(match["name"], match["text"])
        return f"<!-- {match['name']} -->\n{text}<!-- end -->"

    return re.sub(r"<!-- (?P<name>[\w ]+) -->\n(?P<text>.*?)<!-- end -->", block, page, flags=re.DOTALL)


def main() -> None:
    """Copy the results, update the page, and draw the plots."""
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks.report",
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument(
        "--results", type=Path, help="report of `make bench` to take; default: the one in benchmarks/results"
    )
    arguments = parser.parse_args()
    FOLDER.mkdir(exist_ok=True)
    if arguments.results:
        shutil.copyfile(arguments.results, RESULTS)
    host, tables = read_report(RESULTS)
    PAGE.write_text(rendered(PAGE.read_text("utf-8"), host, tables), "utf-8")
    drawn = draw(tables, FOLDER)
    print(f"{PAGE.relative_to(ROOT)} and {', '.join(path.name for path in drawn)} written")


if __name__ == "__main__":
    main()

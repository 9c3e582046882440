"""Writes the tables of the docs that follow from the code: options of loading, model parameters.

    python docs/tables.py           write them
    python docs/tables.py --check   exit with 1 when one is out of date

A table stands between the lines `<!-- table: NAME -->` and `<!-- end of table -->`.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from pathlib import Path

from revolute.contract.load_options import OPTIONS
from revolute_engine.parameters import PARAMETERS

DOCS = Path(__file__).parent
END = "<!-- end of table -->"


def options_table() -> list[str]:
    """Return a row per option of `load_model`."""
    rows = [
        f"| `{name}` | {option.default_text} | {option.expected} | {option.text} |"
        for name, option in OPTIONS.items()
    ]
    return ["| option | default | values | what it does |", "|---|---|---|---|", *rows]


def parameters_table() -> list[str]:
    """Return a row per model parameter."""
    rows = []
    for name, parameter in PARAMETERS.items():
        shape = f"[{', '.join(map(str, parameter.axes))}]"
        model = f'"{parameter.contact_model}"' if parameter.contact_model else "both"
        rows.append(f"| `{name}` | {shape} | {parameter.text} | {model} |")
    return ["| parameter | shape | what it is | contact model |", "|---|---|---|---|", *rows]


TABLES: dict[str, tuple[str, Callable[[], list[str]]]] = {
    "options": ("algorithm.md", options_table),
    "parameters": ("gradients.md", parameters_table),
}
"""Page and rows of each table."""


def with_table(page: str, name: str, rows: list[str]) -> str:
    """Return a page with a table's rows replaced."""
    begin = f"<!-- table: {name} -->"
    before, found, rest = page.partition(begin)
    _, ended, after = rest.partition(END)
    if not found or not ended:
        raise ValueError(f"expected the lines '{begin}' and '{END}', got a page without")
    return "\n".join([before + begin, *rows, END + after])


def main(arguments: list[str]) -> int:
    """Write or check the tables; returns the exit status."""
    stale = []
    for name, (file, rows) in TABLES.items():
        path = DOCS / file
        page = path.read_text(encoding="utf-8")
        wanted = with_table(page, name, rows())
        if page == wanted:
            continue
        stale.append(f"docs/{file}: table '{name}'")
        if "--check" not in arguments:
            path.write_text(wanted, encoding="utf-8")
    if stale and "--check" in arguments:
        print(f"{', '.join(stale)}: out of date; run python docs/tables.py", file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))

"""Command-line options and output of all benchmark scripts."""

from __future__ import annotations

import argparse
import json
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from .measure import machine
from .table import Table

ROOT = Path(__file__).resolve().parents[1]


@dataclass(frozen=True)
class Effort:
    """Amount of measurement.

    Args:
        repeats: number of timed rounds; the median is reported.
        quick: whether to run the shortest form, which tests the script but gives meaningless results.
    """

    repeats: int = 9
    quick: bool = False

    def steps(self, full: int) -> int:
        """Return the number of steps of a rollout: `full`, or fewer in a quick run."""
        return min(full, 10) if self.quick else full

    def some(self, values: Sequence[Any]) -> Sequence[Any]:
        """Return all values, or the first two in a quick run."""
        return values[:2] if self.quick else values


Measure = Callable[[Effort], list[Table]]


def add_effort(parser: argparse.ArgumentParser) -> None:
    """Add the options that make an Effort."""
    parser.add_argument(
        "--repeats", type=int, default=Effort.repeats, help="timed rounds, default %(default)s"
    )
    parser.add_argument("--quick", action="store_true", help="shortest form of everything, to see it run")


def effort(arguments: argparse.Namespace) -> Effort:
    """Return the Effort for the options."""
    return Effort(1 if arguments.quick else arguments.repeats, arguments.quick)


def script(name: str, description: str | None, measure: Measure) -> None:
    """Run one benchmark from the command line: print its tables, write them where `--out` says.

    Args:
        name: module, for the usage line.
        description: its docstring.
        measure: makes the tables.
    """
    parser = argparse.ArgumentParser(
        prog=f"python -m {name}",
        description=description,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    add_effort(parser)
    parser.add_argument("--out", type=Path, help="also write the tables there, as JSON")
    arguments = parser.parse_args()
    host = machine()
    tables = measure(effort(arguments))
    print("\n".join(table.markdown() for table in tables))
    if arguments.out:
        write_report(arguments.out, host, tables)


def write_report(path: Path, host: dict[str, Any], tables: Sequence[Table]) -> None:
    """Write tables and the machine that they belong to as JSON."""
    path.parent.mkdir(parents=True, exist_ok=True)
    document = {"machine": host, "tables": [table.to_dict() for table in tables]}
    path.write_text(json.dumps(document, indent=1, ensure_ascii=False) + "\n", "utf-8")


def read_report(path: Path) -> tuple[dict[str, Any], list[Table]]:
    """Return machine and tables of a report."""
    document = json.loads(path.read_text("utf-8"))
    return document["machine"], [Table.from_dict(table) for table in document["tables"]]

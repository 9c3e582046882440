"""Tables of results: rows of named values, written as JSON and as Markdown."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass, field
from typing import Any

Value = str | int | float | None
Row = dict[str, Value]


@dataclass
class Table:
    """One table of a report.

    Args:
        name: short name without spaces; it marks the table in benchmarks/results/performance.md.
        caption: one or two sentences on what was run, and the units.
        columns: heading of each column, by the name of its value in the rows.
        rows: values by name; a missing value or None prints as a dash.
    """

    name: str
    caption: str
    columns: dict[str, str]
    rows: list[Row] = field(default_factory=list)

    def to_dict(self) -> dict[str, Any]:
        """Return the table in JSON types."""
        return asdict(self)

    @classmethod
    def from_dict(cls, document: dict[str, Any]) -> Table:
        """Return the table that `to_dict` wrote."""
        return cls(**document)

    def markdown(self) -> str:
        """Return the caption and the table as Markdown."""
        lines = [self.caption, "", _line(list(self.columns.values())), "|" + "---|" * len(self.columns)]
        lines += [_line([_text(row.get(name)) for name in self.columns]) for row in self.rows]
        return "\n".join(lines) + "\n"

    def numbers(self, name: str, **where: Value) -> list[float]:
        """Return the numbers of a column in the rows with the given values."""
        rows = [row for row in self.rows if all(row.get(key) == value for key, value in where.items())]
        return [float(row[name]) for row in rows if isinstance(row.get(name), (int, float))]  # type: ignore[arg-type]


def _line(cells: Sequence[str]) -> str:
    return "| " + " | ".join(cells) + " |"


def _text(value: Value) -> str:
    """Format a value with about three digits."""
    if value is None:
        return "–"
    if not isinstance(value, float):
        return str(value)
    if value == 0:
        return "0"
    if abs(value) >= 1e5 or abs(value) < 1e-3:
        return f"{value:.1e}"
    if abs(value) >= 100:
        return f"{value:.0f}"
    return f"{value:.3g}"

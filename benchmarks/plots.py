"""The plots of benchmarks/results/performance.md, as small SVG files."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from .table import Row, Table

BLUE, ORANGE = "#1f6fb2", "#d9762b"


def draw(tables: Sequence[Table], folder: Path) -> list[Path]:
    """Draw the plots of the given tables, and return the files."""
    by_name = {table.name: table for table in tables}
    plots = {"batch": plot_batch, "peers": plot_peers, "autodiff_robot": plot_autodiff}
    return [plot(by_name[name], folder / f"{name}.svg") for name, plot in plots.items() if name in by_name]


def plot_batch(table: Table, path: Path) -> Path:
    """Time per environment step over the batch."""
    figure, axes = _figure(6.4, 3.2)
    for column, colour, label in (("forward_us", BLUE, "forward"), ("backward_us", ORANGE, "backward")):
        for threads, style in ((1, "o-"), (2, "s--")):
            rows = [row for row in table.rows if row.get("threads") == threads and row.get(column)]
            axes.plot(
                [row["batch"] for row in rows],
                [row[column] for row in rows],
                style,
                color=colour,
                label=f"{label}, {threads} thread{'s' if threads > 1 else ''}",
            )
    axes.set(xscale="log", yscale="log", xlabel="environments in the batch", ylabel="µs per environment step")
    axes.set_xscale("log", base=2)
    axes.legend(frameon=False, fontsize=8)
    return _save(figure, path)


def plot_peers(table: Table, path: Path) -> Path:
    """Forward and backward time of every peer's rows that have a figure."""
    rows = [row for row in table.rows if row.get("forward_us") or row.get("backward_us")][::-1]
    figure, axes = _figure(7.6, 0.5 + 0.36 * len(rows))
    for offset, column, colour in ((0.19, "forward_us", BLUE), (-0.19, "backward_us", ORANGE)):
        places = [i + offset for i, row in enumerate(rows) if row.get(column)]
        values = [row[column] for row in rows if row.get(column)]
        axes.barh(places, values, height=0.36, color=colour, label=column.removesuffix("_us"))
    for i, row in enumerate(rows):
        if _is_wrong(row):
            axes.text(_longest(row) * 1.15, i, "wrong gradient", va="center", fontsize=7, color="#a02020")
    axes.set_yticks(range(len(rows)), [f"{row['peer']}: {row['what']}" for row in rows], fontsize=7)
    axes.set(xscale="log", xlabel="µs per step")
    axes.legend(frameon=False, fontsize=8)
    return _save(figure, path)


def plot_autodiff(table: Table, path: Path) -> Path:
    """Time per step and memory over the number of steps, for tools that differentiate the engine's step."""
    figure, (time, memory) = _figure(8.4, 3.2, columns=2)
    for tool in dict.fromkeys(row["tool"] for row in table.rows):
        rows = [row for row in table.rows if row["tool"] == tool and row.get("memory_mb") is not None]
        if not rows:
            continue
        steps = [row["steps"] for row in rows]
        time.plot(steps, [_total(row) for row in rows], "o-", label=tool)
        memory.plot(steps, [row["memory_mb"] for row in rows], "o-", label=tool)
    time.set(xscale="log", yscale="log", xlabel="steps", ylabel="µs per step, forward + backward")
    memory.set(xscale="log", yscale="log", xlabel="steps", ylabel="peak memory, MB")
    time.legend(frameon=False, fontsize=8)
    return _save(figure, path)


def _is_wrong(row: Row) -> bool:
    error = row.get("gradient_error")
    return isinstance(error, float) and not error < 0.5


def _times(row: Row) -> list[float]:
    return [float(row[name]) for name in ("forward_us", "backward_us") if row.get(name)]  # type: ignore[arg-type]


def _longest(row: Row) -> float:
    return max(_times(row))


def _total(row: Row) -> float:
    return sum(_times(row))


def _figure(width: float, height: float, columns: int = 1) -> tuple[Any, Any]:
    """Return a figure and its axes, with text kept as text so that the files stay small."""
    import matplotlib

    matplotlib.use("agg")
    matplotlib.rcParams.update({"svg.fonttype": "none", "svg.hashsalt": "revolute", "font.size": 9})
    from matplotlib import pyplot

    return pyplot.subplots(1, columns, figsize=(width, height), layout="constrained")


def _save(figure: Any, path: Path) -> Path:
    """Write the same bytes for the same figures."""
    from matplotlib import pyplot

    figure.savefig(path, metadata={"Date": None})
    pyplot.close(figure)
    return path

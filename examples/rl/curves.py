"""Draws the returns of runs over their wall time or environment steps.

    python examples/rl/curves.py curves.svg SHAC=runs/ant PPO=runs/ppo --x steps

A run is its folder or its `progress.jsonl`. Bands are the standard deviation over episodes.
"""

from __future__ import annotations

import argparse
import json
from pathlib import Path

import matplotlib
import numpy as np

matplotlib.use("svg")
import matplotlib.pyplot as plt

UNITS = {
    "seconds": ("wall time in minutes", 60.0),
    "processor_seconds": ("processor time in minutes", 60.0),
    "steps": ("million environment steps", 1e6),
}


def evaluations(path: Path) -> list[dict[str, float]]:
    """Return the lines of a log that have a return."""
    file = path / "progress.jsonl" if path.is_dir() else path
    lines = (json.loads(line) for line in file.read_text(encoding="utf-8").splitlines())
    return [line for line in lines if "return" in line]


def main() -> None:
    """Draw."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("picture", type=Path)
    parser.add_argument("runs", nargs="+", help="NAME=FOLDER; runs of one name get one colour")
    parser.add_argument("--x", choices=UNITS, default="seconds")
    args = parser.parse_args()
    label, unit = UNITS[args.x]
    figure, axes = plt.subplots(figsize=(6, 3.2), layout="constrained")
    colours: dict[str, str] = {}
    for run in args.runs:
        name, _, folder = run.partition("=")
        lines = evaluations(Path(folder))
        x, mean, deviation = (
            np.array([line[key] for line in lines]) for key in (args.x, "return", "return_deviation")
        )
        known = name in colours
        colour = colours.setdefault(name, f"C{len(colours)}")
        axes.plot(x / unit, mean, color=colour, label=None if known else name)
        axes.fill_between(x / unit, mean - deviation, mean + deviation, color=colour, alpha=0.15, lw=0)
    axes.set(xlabel=label, ylabel="return")
    axes.grid(alpha=0.3)
    axes.legend()
    figure.savefig(args.picture)


if __name__ == "__main__":
    main()

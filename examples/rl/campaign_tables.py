"""Makes the CSV and tables of benchmarks/results/rl and the pictures of docs/rl.md from `campaign.py`'s runs.

python examples/rl/campaign_tables.py /tmp/campaign --csv curves.csv --pictures docs
"""

from __future__ import annotations

import argparse
import csv
import json
from collections.abc import Iterator
from pathlib import Path

import matplotlib.pyplot as plt

GOALS = dict(enumerate((0.49, 1.93, 4.28, 7.81, 12.31, 17.78, 24.34), start=1))
"""The paper's largest returns, by the number of links."""
KINDS = {"enhanced": "policy enhancement", "mbpo": "MBPO"}
ANTS = {
    "mbpo": "MBPO",
    "samples": "MBPO, 9 samples within 0.1",
    "near samples": "MBPO, 9 samples within 0.01",
    "sac": "SAC",
    "ppo": "PPO",
}
ROWS = 25

Curve = list[dict[str, float]]


def curves(folder: Path) -> Iterator[tuple[str, str, int, Curve]]:
    """Yield task, kind, seed and the rows with a return of each finished run."""
    for done in sorted(folder.glob("*/*/*/done")):
        task, kind, seed = done.parts[-4:-1]
        lines = (done.parent / "progress.jsonl").read_text(encoding="utf-8").splitlines()
        yield task, kind, int(seed), [row for row in map(json.loads, lines) if "return" in row]


def write_csv(file: Path, found: list[tuple[str, str, int, Curve]]) -> None:
    """Write at most `ROWS` rows of each curve."""
    names = ("steps", "return", "best", "processor_seconds")
    with file.open("w", newline="", encoding="utf-8") as out:
        writer = csv.writer(out, lineterminator="\n")
        writer.writerow(("task", "kind", "seed", *names))
        for task, kind, seed, rows in found:
            stride = -(-len(rows) // ROWS)
            for row in rows[::-stride][::-1]:
                writer.writerow((task, kind, seed, *(f"{row[n]:.5g}" if n in row else "" for n in names)))


def pendulum_table(found: list[tuple[str, str, int, Curve]]) -> Iterator[str]:
    """Yield the lines of the table of the chains."""
    yield "| links | bound | paper | policy enhancement: best of each seed | steps to the paper's | MBPO |"
    yield "|---|---|---|---|---|---|"
    for links, goal in GOALS.items():
        runs = {kind: [c for t, k, _, c in found if (t, k) == (f"pendulum{links}", kind)] for kind in KINDS}
        best = {kind: [f"{each[-1]['best']:.2f}" for each in runs[kind]] for kind in KINDS}
        reached = [next((r["steps"] for r in c if r["best"] >= goal), None) for c in runs["enhanced"]]
        steps = ", ".join("–" if at is None else f"{at:.0f}" for at in reached)
        cells = (
            links,
            f"{links**2 / 2:g}",
            goal,
            ", ".join(best["enhanced"]),
            steps,
            ", ".join(best["mbpo"]),
        )
        yield f"| {' | '.join(map(str, cells))} |"


def ant_table(found: list[tuple[str, str, int, Curve]]) -> Iterator[str]:
    """Yield the lines of the table of Ant: mean return of all evaluations of a run."""
    yield "| algorithm | mean return over the run, by seed | last return, by seed | processor s |"
    yield "|---|---|---|---|"
    for kind, name in ANTS.items():
        runs = [c for t, k, _, c in found if (t, k) == ("ant", kind)]
        if runs:
            means = ", ".join(f"{sum(r['return'] for r in c) / len(c):.0f}" for c in runs)
            ends = ", ".join(f"{c[-1]['return']:.0f}" for c in runs)
            seconds = max(c[-1]["processor_seconds"] for c in runs)
            yield f"| {name} | {means} | {ends} | {seconds:.0f} |"


def pictures(folder: Path, found: list[tuple[str, str, int, Curve]]) -> None:
    """Draw the curves of the chains, relative to the bound, and of Ant."""
    colors = {"enhanced": "#2a7d3f", "mbpo": "#b04a3a", "sac": "#3a6fb0", "ppo": "#888888"}
    colors |= {"samples": "#2a7d3f", "near samples": "#8cc63f"}
    figure, axes = plt.subplots(1, 4, figsize=(9, 2.2), sharey=True)
    for axis, links in zip(axes, (1, 3, 5, 7), strict=True):
        bound = links**2 / 2
        for task, kind, _, rows in found:
            if task == f"pendulum{links}":
                steps, best = zip(*((r["steps"] / 1000, r["best"] / bound) for r in rows), strict=True)
                axis.plot(steps, best, color=colors[kind], linewidth=1, label=KINDS[kind])
        axis.axhline(GOALS[links] / bound, color="black", linewidth=0.6, linestyle=":")
        axis.set(title=f"{links} links", xlabel="1000 steps", ylim=(-0.5, 1.05))
    axes[0].set_ylabel("best return / bound")
    _legend(axes[-1])
    figure.savefig(folder / "rl_pendulum.svg", bbox_inches="tight")
    figure, axis = plt.subplots(figsize=(4.5, 2.4))
    for task, kind, _, rows in found:
        if task == "ant" and kind in ANTS:
            steps, returns = zip(*((r["steps"] / 1000, r["return"]) for r in rows), strict=True)
            axis.plot(steps, returns, color=colors[kind], linewidth=1, label=ANTS[kind])
    axis.set(xlabel="1000 steps", ylabel="return")
    _legend(axis)
    figure.savefig(folder / "rl_ant_samples.svg", bbox_inches="tight")


def _legend(axis: plt.Axes) -> None:
    """Name each kind once."""
    lines, names = axis.get_legend_handles_labels()
    unique = dict(zip(names, lines, strict=True))
    axis.legend(unique.values(), unique.keys(), fontsize=6)


def main() -> None:
    """Write everything."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("folder", type=Path)
    parser.add_argument("--csv", type=Path, required=True)
    parser.add_argument("--pictures", type=Path, required=True)
    args = parser.parse_args()
    plt.rcParams["svg.hashsalt"] = "revolute"
    found = list(curves(args.folder))
    write_csv(args.csv, found)
    pictures(args.pictures, found)
    print("\n".join([*pendulum_table(found), "", *ant_table(found)]))


if __name__ == "__main__":
    main()

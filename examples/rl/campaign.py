"""Trains everything that docs/rl.md shows about policy and sample enhancement, run after run in one process.

    python examples/rl/campaign.py --out /tmp/campaign pendulum ant baselines

A finished run is not repeated, and an interrupted one goes on. `campaign_tables.py` makes CSV, tables and pictures
of it.
"""

from __future__ import annotations

import argparse
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

import pendulum

Main = Callable[[Sequence[str]], None]
LINKS = range(1, 8)


def pendulums(seeds: Sequence[int]) -> Iterator[tuple[str, Main, list[str]]]:
    """Yield name, script and flags of the chains' runs, 10 000 environment steps per link as in the paper."""
    for seed in seeds:
        for links in LINKS:
            flags = ["--links", str(links), "--steps", str(10_000 * links)]
            yield f"pendulum{links}/enhanced/{seed}", pendulum.main, [*flags, "--enhance"]
    for seed in seeds:
        for links in LINKS:
            flags = ["--links", str(links), "--steps", str(10_000 * links)]
            yield f"pendulum{links}/mbpo/{seed}", pendulum.main, flags


PARTS = {"pendulum": pendulums}


def main() -> None:
    """Run the parts that are named."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--out", type=Path, required=True)
    parser.add_argument("--seeds", type=int, nargs="+", default=[0, 1, 2])
    parser.add_argument("parts", nargs="*", choices=[*PARTS, []], default=list(PARTS))
    args = parser.parse_args()
    for part in args.parts:
        for name, script, flags in PARTS[part](args.seeds):
            folder = args.out / name
            if (folder / "done").exists():
                continue
            resume = ["--resume"] if (folder / "state.pt").exists() else []
            seed = name.rsplit("/", 1)[1]
            script([*flags, "--seed", seed, "--threads", "1", "--out", str(folder), *resume])
            (folder / "done").touch()


if __name__ == "__main__":
    main()

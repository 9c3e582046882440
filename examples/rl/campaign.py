"""Trains what benchmarks/results/rl/tables.md shows of enhancement, one run after the other.

    python examples/rl/campaign.py --out /tmp/campaign chains ants

A finished run is not repeated, and an interrupted one continues. `campaign_tables.py` makes CSV, tables and
pictures of it.
"""

from __future__ import annotations

import argparse
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

import ant_samples
import pendulum

Main = Callable[[Sequence[str]], None]
LINKS = range(1, 8)


Runs = Iterator[tuple[str, Main, list[str]]]
"""Names, scripts and flags."""


def chains() -> Runs:
    """Policy enhancement, with 10 000 environment steps per link as in the paper."""
    for links in LINKS:
        flags = ["--links", str(links), "--steps", str(10_000 * links), "--enhance"]
        # a short budget has more rounds with fewer chains
        flags += ["--envs", "2" if links <= 3 else "4"]
        yield f"pendulum{links}/enhanced", pendulum.main, flags


def plain_chains() -> Runs:
    """MBPO with the same steps."""
    for links in LINKS:
        flags = ["--links", str(links), "--steps", str(10_000 * links)]
        yield f"pendulum{links}/mbpo", pendulum.main, [*flags, "--envs", "8", "--updates", "0.05"]


def ants() -> Runs:
    """MBPO without and with sample enhancement."""
    yield "ant/mbpo", ant_samples.main, []
    yield "ant/samples", ant_samples.main, ["--samples", "9", "--radius", "0.1"]


def small_ants() -> Runs:
    """Sample enhancement as near as in the paper."""
    yield "ant/near samples", ant_samples.main, ["--samples", "9", "--radius", "0.01"]


def other_ants() -> Runs:
    """The algorithms without a model."""
    yield "ant/ppo", ant_samples.main, ["--algorithm", "ppo"]
    yield "ant/sac", ant_samples.main, ["--algorithm", "sac"]


PARTS = {each.__name__: each for each in (chains, ants, other_ants, plain_chains, small_ants)}


def main() -> None:
    """Run the parts that are named, or all."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--out", type=Path, required=True)
    parser.add_argument("--seeds", type=int, nargs="+", default=[0, 1, 2])
    parser.add_argument("parts", nargs="*", help=f"among {', '.join(PARTS)}")
    args = parser.parse_args()
    for part in args.parts or PARTS:
        for seed in args.seeds:
            for name, script, flags in PARTS[part]():
                folder = args.out / name / str(seed)
                if (folder / "done").exists():
                    continue
                resume = ["--resume"] if (folder / "state.pt").exists() else []
                script([*flags, "--seed", str(seed), "--threads", "1", "--out", str(folder), *resume])
                (folder / "done").touch()


if __name__ == "__main__":
    main()

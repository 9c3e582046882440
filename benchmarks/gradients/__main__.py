"""`python -m benchmarks.gradients [figure ...]`: prints the figures of benchmarks/results/gradients.md."""

from __future__ import annotations

import argparse
import importlib

FIGURES = (
    "standing",
    "contact_models",
    "contact_laws",
    "contact_scenes",
    "horizon",
    "sliding",
    "impact",
    "kink",
)


def main() -> None:
    """Print the figures that were asked for."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.gradients", description=__doc__)
    parser.add_argument("figures", nargs="*", help=f"any of {', '.join(FIGURES)}; by default all of them")
    names = parser.parse_args().figures or FIGURES
    for name in names:
        if name not in FIGURES:
            parser.error(f"figures: expected any of {', '.join(FIGURES)}, got {name!r}")
        figure = importlib.import_module(f".{name}", __package__)
        print(f"### {name}\n\n{figure.table()}\n", flush=True)


if __name__ == "__main__":
    main()

"""`make bench`: runs all benchmarks, or the named parts; writes build/bench.json and build/bench.md.

Benchmarks assert nothing, because results depend on the machine. `python -m benchmarks.report` copies them to
benchmarks/results/performance.md. `--parts ours` measures only revolute; `peers` and `autodiff` install the
software for comparison.
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from .autodiff import tables as autodiff
from .measure import machine
from .ours import (
    batch,
    chain,
    contact,
    contacts,
    cost,
    first_call,
    instruction_sets,
    memory,
    policies,
    robots,
    step,
)
from .peers import compare
from .script import ROOT, Effort, Measure, add_effort, effort, read_report, write_report
from .table import Table

OURS: dict[str, Measure] = {
    "step": step.measure,
    "batch": batch.measure,
    "instruction_sets": instruction_sets.measure,
    "robots": robots.measure,
    "contact": contact.measure,
    "chain": chain.measure,
    "contacts": contacts.measure,
    "cost": cost.measure,
    "memory": memory.measure,
    "policies": policies.measure,
    "first_call": first_call.measure,
}
PARTS: dict[str, Measure] = {**OURS, "peers": compare.measure, "autodiff": autodiff.measure}
GROUPS = {"ours": list(OURS), "all": list(PARTS)}


def measure(parts: Sequence[str], wanted: Effort) -> list[Table]:
    """Run these parts. A failed part becomes a table with the reason."""
    tables: list[Table] = []
    for part in parts:
        begin = time.perf_counter()
        try:
            tables += PARTS[part](wanted)
        except Exception as error:
            reason = f"{type(error).__name__}: {error}"
            tables.append(Table(part, "not measured", {"note": "why"}, [{"note": " ".join(reason.split())}]))
        print(f"{part}: {time.perf_counter() - begin:.0f} s", flush=True)
    return tables


def merged(path: Path, host: dict[str, Any], tables: list[Table]) -> list[Table]:
    """Merge tables into the report of this machine; they replace tables with the same name."""
    if not path.is_file():
        return tables
    before, kept = read_report(path)
    if before["processor"] != host["processor"]:
        raise SystemExit(f"--merge: expected figures of this machine, got those of {before['processor']!r}")
    new = {table.name: table for table in tables}
    return [new.pop(table.name, table) for table in kept] + list(new.values())


def markdown(host: dict[str, Any], tables: Sequence[Table]) -> str:
    """Return machine and tables as Markdown."""
    return "\n".join([describe(host), *(f"## {table.name}\n\n{table.markdown()}" for table in tables)])


def describe(host: dict[str, Any]) -> str:
    """Describe the machine in one sentence."""
    return (
        f"{host['processor']}, {host['cores']} cores, {host['system']}; instruction set "
        f"{host['instruction_set']} ({host['lanes']} lanes); Python {host['python']}, "
        f"MuJoCo {host['mujoco']}; load before the run {host['load_before']:.1f}.\n"
    )


def main() -> None:
    """Measure, print the tables and write both files."""
    parser = argparse.ArgumentParser(
        prog="make bench", description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    add_effort(parser)
    parser.add_argument("--parts", nargs="+", choices=[*GROUPS, *PARTS], default=["all"], help="default: all")
    parser.add_argument("--out", type=Path, default=ROOT / "build" / "bench.json", help="JSON; .md beside it")
    parser.add_argument("--merge", action="store_true", help="keep the other tables that --out has already")
    arguments = parser.parse_args()
    host = machine()
    chosen = dict.fromkeys(name for part in arguments.parts for name in GROUPS.get(part, [part]))
    tables = measure(list(chosen), effort(arguments))
    if arguments.merge:
        tables = merged(arguments.out, host, tables)
    write_report(arguments.out, host, tables)
    text = markdown(host, tables)
    arguments.out.with_suffix(".md").write_text(text, "utf-8")
    print("\n" + text)


if __name__ == "__main__":
    main()

"""Compares instruction counts of a forward and a backward step with the checked-in counts.

Counts show changes that are too small for timing. Requires valgrind (Debian: valgrind); the build uses
x86-64-v3, because valgrind lacks AVX-512. Counts depend on the compiler: with another compiler, count before
and after your change. The exit status is 1 if a count grew by more than GROWTH. `--update` writes the counts
to counts.json; commit that file with the change that caused them.
"""

from __future__ import annotations

import argparse
import json
import re
import shutil
import subprocess
import tempfile
from pathlib import Path
from typing import Any

import numpy as np

import revolute_engine

from ..autodiff.build import tool
from ..laikago import START, Scene, controls
from ..script import ROOT

FOLDER = ROOT / "build" / "instructions"
COUNTS = Path(__file__).with_name("counts.json")
GROWTH = 0.02  # what new code may cost without a word; another patch level of the compiler moves less
SHORT, LONG = 5, 25
PACK = 4  # lanes of x86-64-v3
CASES = {
    "one robot, forward": ("standing", "forward", 1),
    "one robot, backward": ("standing", "backward", 1),
    "one robot, no contacts, forward": ("free", "forward", 1),
    "one robot, no contacts, backward": ("free", "backward", 1),
    "pack of four, forward, per robot": ("standing", "forward", PACK),
    "pack of four, backward, per robot": ("standing", "backward", PACK),
}


def write_model(path: Path, model: revolute_engine.Model) -> None:
    """Write a model's arrays, start and controls as the driver reads them."""
    values = {**model.arrays, "start": START, "controls": controls(LONG)}
    lines = []
    for name, value in values.items():
        numbers = np.atleast_1d(np.asarray(value, dtype=float)).ravel()
        lines.append(" ".join([name, str(numbers.size), *(f"{number:.17g}" for number in numbers)]))
    path.write_text("\n".join(lines) + "\n", "utf-8")


def build() -> Path:
    """Build the driver and return it."""
    source = str(Path(__file__).parent)
    configure = [
        tool("cmake"),
        "-S",
        source,
        "-B",
        str(FOLDER),
        "-G",
        "Ninja",
        f"-DCMAKE_MAKE_PROGRAM={tool('ninja')}",
    ]
    for command in (configure, [tool("cmake"), "--build", str(FOLDER)]):
        subprocess.run(command, check=True, capture_output=True, text=True, timeout=1200)
    return FOLDER / "instructions"


def count(driver: Path, model: Path, what: str, batch: int, steps: int) -> int:
    """Return the instructions of one run."""
    out = model.with_name("callgrind.out")
    command = ["valgrind", "--tool=callgrind", f"--callgrind-out-file={out}", str(driver)]
    done = subprocess.run(
        [*command, str(model), what, str(batch), str(steps)],
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
    )
    found = re.search(r"Collected : (\d+)", done.stderr)
    if done.returncode != 0 or not found:
        raise RuntimeError(f"valgrind: expected a count, got {done.stderr[-500:]!r}")
    return int(found.group(1))


def measure() -> dict[str, int]:
    """Return instructions per step and robot, by case; backward counts are of that pass alone."""
    driver = build()
    with tempfile.TemporaryDirectory() as folder:
        models = {}
        for name, contact in (("standing", True), ("free", False)):
            models[name] = Path(folder) / name
            write_model(models[name], Scene(LONG, contact=contact).model)
        out: dict[str, int] = {}
        for case, (model, what, batch) in CASES.items():
            run = (driver, models[model], what, batch)
            between = count(*run, LONG) - count(*run, SHORT)
            out[case] = round(between / (LONG - SHORT) / batch)
            if what == "backward":  # whose run has a rollout first
                out[case] -= out[case.replace("backward", "forward")]
    return out


def compiler() -> str:
    """Return the compiler's name and version, as CMake found it."""
    cache = (FOLDER / "CMakeCache.txt").read_text("utf-8")
    found = re.search(r"CMAKE_CXX_COMPILER:\w+=(.*)", cache)
    path = found.group(1) if found else "c++"
    done = subprocess.run([path, "--version"], capture_output=True, text=True, timeout=60, check=False)
    return done.stdout.splitlines()[0] if done.stdout else path


def report(counts: dict[str, int], before: dict[str, int]) -> str:
    """Return the comparison as Markdown."""
    lines = ["| instructions per step | checked in | now | change |", "|---|---|---|---|"]
    for case, now in counts.items():
        old = before.get(case)
        change = f"{100 * (now / old - 1):+.2f} %" if old else "new"
        lines.append(f"| {case} | {old if old else '–'} | {now} | {change} |")
    return "\n".join(lines)


def regressions(counts: dict[str, int], before: dict[str, int]) -> list[str]:
    """Return the cases that take more than GROWTH more instructions than before."""
    return [case for case, now in counts.items() if now > (1 + GROWTH) * before.get(case, now)]


def _checked_in() -> dict[str, Any]:
    """Return what counts.json has."""
    if not COUNTS.is_file():
        return {"counts": {}, "compiler": "none"}
    document: dict[str, Any] = json.loads(COUNTS.read_text("utf-8"))
    return document


def main() -> None:
    """Count, compare, and update where asked."""
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks.instructions",
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("--update", action="store_true", help=f"write the counts into {COUNTS.name}")
    arguments = parser.parse_args()
    if shutil.which("valgrind") is None:
        parser.error(
            "valgrind: expected on the path, got none; install it (Debian: apt-get install valgrind)"
        )
    before = _checked_in()
    counts = measure()
    print(report(counts, before["counts"]))
    print(f"\nchecked in with {before['compiler']}; now {compiler()}")
    if arguments.update:
        document = {"compiler": compiler(), "counts": counts}
        COUNTS.write_text(json.dumps(document, indent=2) + "\n", "utf-8")
    elif worse := regressions(counts, before["counts"]):
        raise SystemExit(f"more instructions than are checked in: {'; '.join(worse)}")


if __name__ == "__main__":
    main()

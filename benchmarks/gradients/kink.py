"""Measures how a bias with a kink at zero gap would affect a standing robot (docs/decisions/0003).

Builds a variant of the engine in which the depth that is corrected completely is zero, so the slope of the
bias changes at the gap at which contacts rest. The variant runs in a separate process. Requires a compiler
and pybind11.
"""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
import sysconfig
import tempfile
from pathlib import Path

import numpy as np

from revolute_engine import Engine

from .differences import compare, final_state_cotangents
from .scenes import settled

ROOT = Path(__file__).resolve().parents[2]
DEPTH = "Real(10) * h * h"
HORIZONS = (1, 10, 50, 200)
DIRECTIONS = 8


def measure() -> list[list[float]]:
    """Return for each horizon the error of the gradient by qpos, and how much a difference's sides differ.

    The start is the standing robot after 1 s, with its toes resting on the floor.
    """
    rows = []
    for steps in HORIZONS:
        model, start = settled(steps)
        bars = final_state_cotangents(model, steps, np.random.default_rng(steps))
        found = compare(Engine(threads=1), model, start, "qpos", bars, DIRECTIONS, seed=4)
        rows.append([found.error, found.sidedness])
    return rows


def build_with_kink(folder: Path) -> Path:
    """Build the variant into a folder; return the extension module."""
    import pybind11

    shutil.copytree(ROOT / "engine", folder / "engine", ignore=shutil.ignore_patterns("*.so", "__pycache__"))
    source = folder / "engine/include/revolute/stages/constraint_row.hpp"
    text = source.read_text()
    if text.count(DEPTH) != 1:
        raise RuntimeError(f"{source.name}: expected '{DEPTH}' once, as the depth that a step gives back")
    source.write_text(text.replace(DEPTH, "Real(0)"))
    library = folder / f"_engine_generic{sysconfig.get_config_var('EXT_SUFFIX')}"
    flags = [
        "-std=gnu++17",
        "-O2",
        "-ffp-contract=off",
        "-fPIC",
        "-shared",
        "-fvisibility=hidden",
        "-Wno-psabi",
    ]
    includes = [sysconfig.get_path("include"), pybind11.get_include(), str(folder / "engine/include")]
    sources = [*map(str, sorted(folder.glob("engine/*/*.cpp")))]
    command = ["c++", *flags, *(f"-I{path}" for path in includes), *sources, "-pthread", "-o", str(library)]
    subprocess.run(command, check=True)
    return library


def table() -> str:
    """Return the table that compares the engine with the variant."""
    with tempfile.TemporaryDirectory() as folder:
        library = build_with_kink(Path(folder))
        command = [sys.executable, "-m", "benchmarks.gradients.variant", str(library)]
        done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=True)
    lines = [
        "| steps | error | sides differ by | error, kink at zero | sides differ by |",
        "|---|---|---|---|---|",
    ]
    for steps, shipped, variant in zip(HORIZONS, measure(), json.loads(done.stdout), strict=True):
        cells = [f"{value:.0e}" for value in (*shipped, *variant)]
        lines.append(f"| {steps} | " + " | ".join(cells) + " |")
    return "\n".join(lines)

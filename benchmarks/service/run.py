"""Runs every part of benchmarks/service one after the other, each within a time, and writes what they found.

    python -m benchmarks.service.run [--parts fuzz,peers] [--long] [--seconds 300] [--out service.json]

A part is a module of this folder that can be run by itself; what it prints and its exit status are kept. The
results go to --out, and as a table to a file of the same name with .md. Exit status 1 if a part failed.
"""

from __future__ import annotations

import argparse
import contextlib
import json
import os
import platform
import signal
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

FOLDER = Path(__file__).parent
ROOT = FOLDER.parents[1]

SHORT = {
    "cancel": ["--count", "100"],
    "drain": ["--rounds", "10"],
    "fuzz": ["--messages", "20000", "--cases", "2000"],
    "interleavings": ["--orders", "100"],
    "kills": ["--kills", "20"],
    "leak": ["--calls", "20000", "--cycles", "2000"],
    "lost_replies": ["--mutations", "500"],
    "overload": ["--seconds", "5"],
    "peers": ["--seconds", "2"],
}
"""Arguments for a run of minutes; with --long, and for parts that are not named, a part's own defaults."""

_SHOWN = 40
"""Lines of a part's output in the table's file."""


def parts() -> list[str]:
    """Return the names of the parts."""
    modules = sorted(path for path in FOLDER.glob("*.py") if path.name != Path(__file__).name)
    return [
        path.stem for path in modules if '\nif __name__ == "__main__":' in path.read_text(encoding="utf-8")
    ]


def run(part: str, arguments: list[str], seconds: float) -> dict[str, Any]:
    """Run one part and return what it printed and found, its exit status and time; None for out of time."""
    with tempfile.TemporaryDirectory() as folder:
        out = Path(folder, "results.json")
        found = _run(part, [*arguments, "--out", str(out)], seconds)
        # what a part writes from time to time is kept when its time is over
        if out.exists():
            found["results"] = json.loads(out.read_text(encoding="utf-8"))
    return {"arguments": arguments, **found}


def _run(part: str, arguments: list[str], seconds: float) -> dict[str, Any]:
    print(f"{part} {' '.join(arguments)}", file=sys.stderr, flush=True)
    began = time.monotonic()
    command = [sys.executable, "-m", f"benchmarks.service.{part}", *arguments]
    # a group of its own, so that the servers that it starts can be ended with it
    process = subprocess.Popen(
        command,
        cwd=ROOT,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        encoding="utf-8",
        start_new_session=True,
    )
    try:
        output, errors = process.communicate(timeout=seconds)
        status: int | None = process.returncode
    except subprocess.TimeoutExpired:
        status = None
    finally:
        with contextlib.suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGKILL)
    if status is None:
        output, errors = process.communicate()
    found: dict[str, Any] = {
        "status": status,
        "seconds": round(time.monotonic() - began, 1),
        "output": output,
    }
    if status != 0:
        found["errors"] = errors[-4000:]
    return found


def table(results: dict[str, dict[str, Any]]) -> str:
    """Write the results as Markdown."""
    lines = ["| part | result | seconds |", "|---|---|---|"]
    for part, found in results.items():
        verdict = {0: "passed", None: "out of time"}.get(found["status"], f"failed, status {found['status']}")
        lines.append(f"| {part} {' '.join(found['arguments'])} | {verdict} | {found['seconds']} |")
    for part, found in results.items():
        lines += ["", f"## {part}", "", *_quoted(found["output"].strip())]
    return "\n".join(lines)


def _quoted(text: str) -> list[str]:
    """Return a table as it is and anything else as a block of a bounded number of lines."""
    if text.startswith("|"):
        return [text]
    lines = text.splitlines()
    cut = [f"… {len(lines) - _SHOWN} lines more"] if len(lines) > _SHOWN else []
    return ["```", *lines[:_SHOWN], *cut, "```"]


def main(argv: list[str] | None = None) -> int:
    """Run the parts and write their results."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--parts", help=f"which, with commas between (default: {','.join(parts())})")
    parser.add_argument("--long", action="store_true", help="the forms that take hours")
    parser.add_argument("--seconds", type=float, default=300.0, help="most time for each part")
    parser.add_argument("--out", type=Path, default=Path("service.json"))
    chosen = parser.parse_args(argv)
    names = chosen.parts.split(",") if chosen.parts else parts()
    unknown = sorted(set(names) - set(parts()))
    if unknown:
        parser.error(f"parts: expected some of {', '.join(parts())}, got {', '.join(unknown)}")
    results = {name: run(name, [] if chosen.long else SHORT.get(name, []), chosen.seconds) for name in names}
    document = {"machine": platform.platform(), "python": platform.python_version(), "parts": results}
    chosen.out.write_text(json.dumps(document, indent=1) + "\n", encoding="utf-8")
    chosen.out.with_suffix(".md").write_text(table(results) + "\n", encoding="utf-8")
    print(table(results))
    return int(any(found["status"] != 0 for found in results.values()))


if __name__ == "__main__":
    sys.exit(main())

"""How a part that counts what went wrong ends: one line of figures, a file of JSON, an exit status."""

from __future__ import annotations

import argparse
import json
import signal
import sys
from pathlib import Path
from typing import Any


def parser(description: str | None, seconds: float = 7200.0) -> argparse.ArgumentParser:
    """Return a parser with the flags that all these parts have, and have SIGTERM end the part as an interrupt
    would: with the servers that it has started.

    Args:
        description: docstring of the part.
        seconds: after which a part ends with what it has, if it can.
    """
    signal.signal(signal.SIGTERM, lambda number, _frame: sys.exit(128 + number))
    found = argparse.ArgumentParser(
        description=description, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    found.add_argument("--out", type=Path, help="file for the results as JSON")
    found.add_argument("--seconds", type=float, default=seconds, help="most time, default %(default)g")
    return found


def write(out: Path | None, results: dict[str, Any]) -> None:
    """Write results as JSON, whole or not at all; a long run does so from time to time."""
    if out is None:
        return
    draft = out.with_name(f".{out.name}.draft")
    draft.write_text(json.dumps(results, indent=1) + "\n", encoding="utf-8")
    draft.replace(out)


def finish(out: Path | None, summary: str, results: dict[str, Any], wrong: list[str]) -> int:
    """Print the figures, write the results, and return the exit status.

    Args:
        out: file for the results, None for none.
        summary: the figures in one line.
        results: all that was found.
        wrong: what must not be, in words; times are not judged, since they are the machine's, too.

    Returns:
        1 if anything is wrong.
    """
    print(f"{summary}; {'WRONG: ' + '; '.join(wrong) if wrong else 'nothing wrong'}", flush=True)
    write(out, {"summary": summary, "wrong": wrong, **results})
    return int(bool(wrong))

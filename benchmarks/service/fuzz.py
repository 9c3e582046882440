"""The long form of tests/server/fuzz: how much damage the server takes.

    python -m benchmarks.service.fuzz [--messages 1000000] [--cases 20000] [--seed 1] [--out fuzz.json]

Starts servers of its own on loopback, and exits with 1 if one crashed or answered with a fault.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import sys
import time
from pathlib import Path
from typing import Any

from tests.server.processes import running_server

from . import message_fuzzing, openapi_fuzzing
from .incidents import incidents

_OPERATIONS = 22
"""About how many the description has; a run of schemathesis is given its examples per operation."""


def messages(count: int, seed: int, seconds: float) -> dict[str, Any]:
    """Send damaged messages over gRPC, `count` or as many as fit into the time."""
    found: dict[str, Any] = {"messages": 0, "codes": {}, "faults": []}
    began = time.monotonic()
    with running_server() as server:
        found["first_seed"] = seed
        while found["messages"] < count and time.monotonic() - began < seconds and not found["faults"]:
            share = min(10_000, count - found["messages"])
            report = asyncio.run(message_fuzzing.fuzz(server.grpc_target, share, seed))
            seed += 1
            found["messages"] += report.sent
            found["faults"] += report.faults
            for code, number in report.codes.items():
                found["codes"][code] = found["codes"].get(code, 0) + number
            print(f"{found['messages']} messages, {len(found['faults'])} faults", file=sys.stderr, flush=True)
        found["crashed"] = server.process.poll() is not None
        found["incidents"] = incidents(server.log.read_text())
    return {**found, "seconds": round(time.monotonic() - began, 1)}


def cases(count: int, seed: int, seconds: float) -> dict[str, Any]:
    """Send requests made from the OpenAPI description."""
    began = time.monotonic()
    found: dict[str, Any] = {"cases": 0, "failures": []}
    with running_server("--memory", "256MiB") as server:
        while found["cases"] < count and time.monotonic() - began < seconds:
            for sharpen in (False, True):
                examples = max(5, min(200, (count - found["cases"]) // _OPERATIONS // 2))
                report = openapi_fuzzing.fuzz(
                    server.http, examples, seed, sharpen=sharpen, seconds=max(60.0, seconds)
                )
                found["cases"] += report.cases
                found["failures"] += report.failures
                print(
                    f"{found['cases']} cases, {len(found['failures'])} failures", file=sys.stderr, flush=True
                )
            seed += 1
        found["crashed"] = server.process.poll() is not None
        found["incidents"] = incidents(server.log.read_text())
    return {**found, "seconds": round(time.monotonic() - began, 1)}


def main(argv: list[str] | None = None) -> int:
    """Run both and write what was found."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--messages", type=int, default=1_000_000)
    parser.add_argument("--cases", type=int, default=20_000)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--seconds", type=float, default=3600.0, help="most time for each of the two")
    parser.add_argument("--out", type=Path)
    chosen = parser.parse_args(argv)
    found = {
        "openapi": cases(chosen.cases, chosen.seed, chosen.seconds),
        "grpc": messages(chosen.messages, chosen.seed, chosen.seconds),
    }
    text = json.dumps(found, indent=1)
    if chosen.out:
        chosen.out.write_text(text + "\n", encoding="utf-8")
    print(text)
    broken = any(part["crashed"] or part["incidents"] for part in found.values())
    return int(broken or bool(found["openapi"]["failures"]) or bool(found["grpc"]["faults"]))


if __name__ == "__main__":
    sys.exit(main())

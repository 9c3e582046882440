"""The long form of tests/server/fuzz: sends damaged messages to a server.

    python -m benchmarks.service.fuzz [--messages 1000000] [--cases 20000] [--seed 1] [--out fuzz.json]

Starts servers of its own on loopback, and exits with 1 if one crashed or answered with a fault, whose stack
from the server's log is among the results. Every ten thousand messages have a seed of their own, so that a
run can be split, continued where it was stopped, and a fault be found again: the results have the next
seed.
"""

from __future__ import annotations

import asyncio
import sys
import time
from collections.abc import Callable
from typing import Any

from testbed.server_process import running_server

from . import message_fuzzing, openapi_fuzzing, verdict
from .incidents import incidents

SHARE = 10_000
"""Messages of one seed."""

_OPERATIONS = 22
"""About how many the description has; a run of schemathesis is given its examples per operation."""

_MOST_EXAMPLES = 100

Note = Callable[[dict[str, Any]], None]
"""Told what was found up to now."""


def messages(count: int, seed: int, seconds: float, note: Note) -> dict[str, Any]:
    """Send damaged messages over gRPC, `count` or as many as fit into the time; stop at a fault."""
    found: dict[str, Any] = {"messages": 0, "codes": {}, "faults": [], "incidents": [], "next_seed": seed}
    began = time.monotonic()
    with running_server() as server:
        while found["messages"] < count and time.monotonic() - began < seconds and not found["faults"]:
            share = min(SHARE, count - found["messages"])
            report = asyncio.run(message_fuzzing.fuzz(server.grpc_target, share, found["next_seed"]))
            found["next_seed"] += 1
            found["messages"] += report.sent
            found["faults"] += report.faults
            for code, number in report.codes.items():
                found["codes"][code] = found["codes"].get(code, 0) + number
            found["crashed"] = server.process.poll() is not None
            found["incidents"] = incidents(server.log.read_text())
            found["seconds"] = round(time.monotonic() - began, 1)
            note(found)
    return found


def cases(count: int, seed: int, seconds: float, note: Note) -> dict[str, Any]:
    """Send requests made from the OpenAPI description, `count` or as many as fit into the time."""
    found: dict[str, Any] = {"cases": 0, "failures": [], "incidents": [], "next_seed": seed}
    began = time.monotonic()
    with running_server("--memory", "256MiB") as server:
        while found["cases"] < count and time.monotonic() - began < seconds:
            for sharpen in (False, True):
                examples = max(5, min(_MOST_EXAMPLES, (count - found["cases"]) // _OPERATIONS // 2))
                report = openapi_fuzzing.fuzz(
                    server.http, examples, found["next_seed"], sharpen=sharpen, seconds=max(60.0, seconds)
                )
                found["cases"] += report.cases
                found["failures"] += report.failures
            found["next_seed"] += 1
            found["crashed"] = server.process.poll() is not None
            found["incidents"] = incidents(server.log.read_text())
            found["seconds"] = round(time.monotonic() - began, 1)
            note(found)
    return found


def main(argv: list[str] | None = None) -> int:
    """Run both and write what was found."""
    parser = verdict.parser(__doc__)
    parser.add_argument("--messages", type=int, default=1_000_000)
    parser.add_argument("--cases", type=int, default=20_000)
    parser.add_argument("--seed", type=int, default=1)
    chosen = parser.parse_args(argv)
    results: dict[str, Any] = {}

    def noting(part: str) -> Note:
        def note(found: dict[str, Any]) -> None:
            results[part] = found
            verdict.write(chosen.out, results)
            print(_summary(results), file=sys.stderr, flush=True)

        return note

    if chosen.cases:
        cases(chosen.cases, chosen.seed, chosen.seconds, noting("openapi"))
    if chosen.messages:
        messages(chosen.messages, chosen.seed, chosen.seconds, noting("grpc"))
    return verdict.finish(chosen.out, _summary(results), results, _wrong(results))


def _summary(results: dict[str, Any]) -> str:
    """Return the figures in one line."""
    text = []
    if found := results.get("openapi"):
        text.append(
            f"{found['cases']} cases of schemathesis in {found['seconds']:.0f} s: "
            f"{len(found['failures'])} failures, {len(found['incidents'])} internal errors"
        )
    if found := results.get("grpc"):
        codes = sorted(found["codes"].items(), key=lambda item: -item[1])
        text.append(
            f"{found['messages']} damaged messages in {found['seconds']:.0f} s: "
            f"{len(found['faults'])} faults, {len(found['incidents'])} internal errors "
            f"({', '.join(f'{n} {code}' for code, n in codes)})"
        )
    return "; ".join(text)


def _wrong(results: dict[str, Any]) -> list[str]:
    """Return what must not be, in words; the results have the rest."""
    wrong = []
    for part, found in results.items():
        wrong += [f"{part}: the server crashed"] if found["crashed"] else []
        wrong += [f"{part}: {incident.splitlines()[-1]}" for incident in found["incidents"][:3]]
        wrong += [f"{part}: {failure}" for failure in found.get("failures", ())[:3]]
        wrong += [f"{part}: {fault['rpc']} {fault['error']}" for fault in found.get("faults", ())[:3]]
    return wrong


if __name__ == "__main__":
    sys.exit(main())

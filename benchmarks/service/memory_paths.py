"""Measures the speed-up of calls by each memory optimisation.

    python -m benchmarks.service.memory_paths [--repeats 5] [--quick] [--out memory_paths.json]

shared memory: client and server on one machine exchange arrays in memory that both see (gRPC).
reused buffers: arrays above 32 MiB arrive in the memory of earlier ones, on both sides.
kept heap: a gRPC client's C library keeps the memory of arrays of a megabyte for the next call.

Each client is a process of its own; those with and without take turns. The quickest call of each counts,
which other programs disturbed least. A way that gains less than a tenth of every call here is not worth its
code.
"""

from __future__ import annotations

import json
import subprocess
import sys
import time
from collections.abc import Callable

import numpy as np

import revolute
from revolute.contract.codec import buffers
from revolute.transports import grpc, offered_memory
from testbed.cart import CART
from testbed.server_process import running_server

from ..laikago import POSE, START, TIMESTEP
from ..script import Effort, script
from ..table import Row, Table

RESET, ROLLOUT = "Reset, {} MB each way", "Rollout of 2000 steps"
ROWS = (
    ("shared memory", "grpc", RESET.format(0.8)),
    ("shared memory", "grpc", RESET.format(80)),
    ("shared memory", "grpc", ROLLOUT),
    ("reused buffers", "grpc", RESET.format(80)),
    ("reused buffers", "http", RESET.format(80)),
    ("kept heap", "grpc", RESET.format(0.8)),
    ("kept heap", "grpc", ROLLOUT),
)
"""Way, transport and call."""

_FLAGS = ("--max-batch", "100000000", "--threads", "1")
_CALLS = {0.8: 40, 80: 6}
"""Timed calls of one client, by megabytes; a rollout is timed as often as the small ones."""


def measure(effort: Effort) -> list[Table]:
    """Return the table of all ways."""
    table = Table(
        "memory_paths",
        "One client and one server on one machine; the quickest calls in milliseconds.",
        {
            "way": "way",
            "transport": "transport",
            "call": "call",
            "with_ms": "with",
            "without_ms": "without",
            "gain": "gain",
        },
    )
    with (
        running_server(*_FLAGS) as server,
        running_server(*_FLAGS, module="benchmarks.service.forgetful_server") as forgetful,
    ):
        for way, transport, call in effort.some(ROWS):
            taken: dict[str, list[float]] = {way: [], "": []}
            for _ in range(effort.repeats):
                for left_out in taken:
                    source = forgetful if left_out == "reused buffers" else server
                    taken[left_out] += _client(getattr(source, transport), call, left_out, effort.quick)
            with_ms, without_ms = min(taken[""]), min(taken[way])
            row: Row = {"way": way, "transport": transport, "call": call}
            row |= {"with_ms": with_ms, "without_ms": without_ms}
            table.rows.append({**row, "gain": f"{100 * (1 - with_ms / without_ms):.0f} %"})
    return [table]


def _client(address: str, call: str, left_out: str, quick: bool) -> list[float]:
    """Time calls in a process of their own."""
    command = [sys.executable, "-m", __spec__.name, "client", address, call, left_out, str(int(quick))]
    return json.loads(subprocess.check_output(command))


def time_calls(address: str, call: str, left_out: str, quick: bool) -> list[float]:
    """Return the milliseconds of each of some calls.

    Args:
        address: the server.
        call: of ROWS.
        left_out: way that is switched off in this process; empty for none.
        quick: whether two calls are enough.
    """
    if left_out == "shared memory":
        offered_memory.AVAILABLE = False
    elif left_out == "reused buffers":
        buffers.LARGE = sys.maxsize
    elif left_out == "kept heap":
        grpc.keep_freed_memory = lambda: None  # type: ignore[assignment]
    with revolute.connect(address) as simulator:
        run, count = _prepared(simulator, call)
        taken: list[float] = []
        for _ in range(2 + (2 if quick else count)):
            began = time.perf_counter()
            run()
            taken.append(1e3 * (time.perf_counter() - began))
    return taken[2:]


def _prepared(simulator: revolute.Simulator, call: str) -> tuple[Callable[[], object], int]:
    """Return a call that can be timed, and how often it is."""
    if call == ROLLOUT:
        laikago = simulator.load_model("laikago", timestep=TIMESTEP)
        ctrl = np.tile(POSE, (2000, 1))
        return lambda: simulator.rollout(laikago, START, np.zeros(laikago.nv), ctrl, states="all"), 40
    size = next(size for size in _CALLS if call == RESET.format(size))
    carts = int(size * 1e6 / 16)
    session = simulator.session(simulator.load_model(CART), carts)
    state = np.ones((carts, 1)), np.zeros((carts, 1))
    return lambda: session.reset(*state), _CALLS[size]


if __name__ == "__main__":
    if sys.argv[1:2] == ["client"]:
        address, call, left_out, quick = sys.argv[2:]
        print(json.dumps(time_calls(address, call, left_out, bool(int(quick)))))
    else:
        script("benchmarks.service.memory_paths", __doc__, measure)

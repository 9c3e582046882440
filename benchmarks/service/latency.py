"""Measures the overhead of the service over the engine: small calls, large arrays, long rollouts.

    python -m benchmarks.service.latency [--repeats 9] [--quick] [--out latency.json]

One server on loopback, one blocking client, beside a bare grpc.aio echo and the engine in this process in
the same run; calls are interleaved. Small calls in this process are measured in processor time, which other
programs disturb less. What a long call costs beyond the physics depends on what is kept: the
table of overheads has rollouts of at least 10 ms, each kept in the default store (an SQLite file), in memory,
and not at all (checkpoints "none"), with the processor time of both sides beside the wall clock.
"""

from __future__ import annotations

import statistics
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from typing import Any

import grpc
import numpy as np

import revolute
from testbed.cart import CART
from testbed.server_process import ServerProcess, running_server

from ..laikago import POSE, START, TIMESTEP
from ..script import Effort, script
from ..table import Row, Table

_ECHO = """
import asyncio, grpc

async def echo(request, context):
    return request

async def main():
    server = grpc.aio.server()
    methods = {"Echo": grpc.unary_unary_rpc_method_handler(echo)}
    server.add_generic_rpc_handlers((grpc.method_handlers_generic_handler("bare.Service", methods),))
    print(server.add_insecure_port("127.0.0.1:0"), flush=True)
    await server.start()
    await server.wait_for_termination()

asyncio.run(main())
"""

SMALL_CALLS = 400
BLOCKS, IN_BLOCK = 100, 50
"""Small calls in this process are timed in blocks, because one takes only microseconds."""

SIZES = (0.8e6, 8e6, 80e6)
"""Bytes of an array that travels there and back."""

ROLLOUT_STEPS = (2000, 8000)
"""One Laikago takes 10 ms for the first on a fast core, so that all rows are what the goal is about."""

STORES = {"SQLite": (), "memory": ("--store", "memory:")}


@contextmanager
def bare_echo() -> Iterator[Callable[[bytes], bytes]]:
    """Start a grpc.aio server that returns what it gets, and yield a call of it."""
    process = subprocess.Popen([sys.executable, "-c", _ECHO], stdout=subprocess.PIPE)
    try:
        assert process.stdout is not None
        port = int(process.stdout.readline())
        with grpc.insecure_channel(f"127.0.0.1:{port}") as channel:
            call: Any = channel.unary_unary("/bare.Service/Echo")
            yield call
    finally:
        process.kill()
        process.wait()


def percentiles(calls: Mapping[str, Callable[[], object]], repeats: int) -> dict[str, tuple[float, float]]:
    """Time calls in turn and return the median and the 99th percentile of each in milliseconds."""
    taken: dict[str, list[float]] = {name: [] for name in calls}
    for turn in range(repeats + 1):
        for name, call in calls.items():
            began = time.perf_counter()
            call()
            if turn:
                taken[name].append(1e3 * (time.perf_counter() - began))
    return {
        name: (statistics.median(values), float(np.quantile(values, 0.99))) for name, values in taken.items()
    }


def small_calls(address: Mapping[str, str], effort: Effort) -> Table:
    """Compare small calls with the echo."""
    table = Table(
        "small_calls",
        "Calls that compute nothing or one step, one client on loopback; milliseconds.",
        {"call": "call", "median_ms": "median", "p99_ms": "99 %", "echoes": "medians of the echo"},
    )
    with (
        bare_echo() as echo,
        revolute.connect(address["grpc"]) as over_grpc,
        revolute.connect(address["http"]) as over_http,
    ):
        model = over_grpc.load_model("laikago", timestep=TIMESTEP)
        session, in_memory = over_grpc.session(model), over_grpc.session(model, durable=False)
        calls: dict[str, Callable[[], object]] = {
            "bare grpc.aio echo": lambda: echo(b"x"),
            "ListModels (gRPC)": over_grpc.models,
            "GetServerInfo (gRPC)": over_grpc.server_info,
            "GetState (gRPC)": session.state,
            "Step, one robot (gRPC)": lambda: session.step(POSE),
            "Step, one robot, durable=False (gRPC)": lambda: in_memory.step(POSE),
            "GetServerInfo (HTTP)": over_http.server_info,
        }
        found = percentiles(calls, effort.steps(SMALL_CALLS))
        echoed = found["bare grpc.aio echo"][0]
        for name, (median, late) in found.items():
            table.rows.append({"call": name, "median_ms": median, "p99_ms": late, "echoes": median / echoed})
    return table


def calls_in_process(effort: Effort) -> Table:
    """Measure the processor time of small calls in this process."""
    table = Table(
        "calls_in_process",
        f"Small calls in this process, one environment and one thread; microseconds of processor time, the "
        f"tenth percentile of blocks of {IN_BLOCK} calls.",
        {"call": "call", "cartpole": "cart-pole", "laikago": "Laikago"},
    )
    taken: dict[str, Row] = {}
    with revolute.connect(threads=1) as simulator:
        for robot in ("cartpole", "laikago"):
            model = simulator.load_model(robot)
            for name, call in _small_calls(simulator, model).items():
                blocks = [_processor_time(call, IN_BLOCK) for _ in range(effort.steps(BLOCKS))]
                taken.setdefault(name, {"call": name})[robot] = 1e6 * float(np.quantile(blocks, 0.1))
    table.rows += taken.values()
    return table


def _small_calls(
    simulator: revolute.Simulator, model: revolute.ModelHandle
) -> dict[str, Callable[[], object]]:
    """Return calls by name that compute little."""
    session, ctrl = simulator.session(model), np.zeros((10, model.nu))
    start = model.qpos0, model.qvel0
    trajectory = simulator.rollout(model, *start, ctrl)
    bar = np.ones_like(trajectory.qpos)
    loss = revolute.Term("qpos", target=np.zeros(model.nq))
    return {
        "Session.state": session.state,
        "Session.step": lambda: session.step(ctrl[0]),
        "Session.reset": session.reset,
        "open and close a session": lambda: simulator.session(model).close(),
        "rollout, 1 step": lambda: simulator.rollout(model, *start, ctrl[:1]),
        "rollout, 10 steps": lambda: simulator.rollout(model, *start, ctrl),
        "Trajectory.backward, 10 steps": lambda: trajectory.backward(bar),
        "value_and_gradient, 10 steps": lambda: simulator.value_and_gradient(model, *start, ctrl, loss),
    }


def _processor_time(call: Callable[[], object], times: int) -> float:
    """Return the processor time of one of several calls in seconds."""
    began = time.process_time()
    for _ in range(times):
        call()
    return (time.process_time() - began) / times


def large_arrays(address: Mapping[str, str], effort: Effort) -> Table:
    """Send states there and back: Reset of many carts has as many numbers in its request as in its answer."""
    table = Table(
        "large_arrays",
        "Reset of a session of carts: float64 of the request, and as many of the answer; milliseconds.",
        {"transport": "transport", "megabytes": "MB each way", "median_ms": "median"},
    )
    for transport in ("grpc", "http"):
        with revolute.connect(address[transport]) as simulator:
            model = simulator.load_model(CART)
            for size in effort.some(SIZES):
                carts = int(size / 16)
                with simulator.session(model, carts) as session:
                    state = np.ones((carts, 1)), np.zeros((carts, 1))
                    calls: dict[str, Callable[[], object]] = {"there": lambda s=session, a=state: s.reset(*a)}  # type: ignore[misc]
                    found = percentiles(calls, effort.repeats)
                row: Row = {"transport": transport, "megabytes": size / 1e6, "median_ms": found["there"][0]}
                table.rows.append(row)
    return table


def overhead(store: str, server: ServerProcess, effort: Effort) -> list[Row]:
    """Compare rollouts of one robot over the network with those in this process."""
    rows: list[Row] = []
    with revolute.connect(threads=1) as local, revolute.connect(server.grpc) as over_grpc:
        ways = {"local_ms": local, "grpc_ms": over_grpc}
        models = {name: way.load_model("laikago", timestep=TIMESTEP) for name, way in ways.items()}
        for steps in effort.some(ROLLOUT_STEPS):
            ctrl = np.tile(POSE, (effort.steps(steps), 1))
            for kept in ("every", "none"):

                def call(name: str, ctrl: np.ndarray = ctrl, kept: str = kept) -> Callable[[], object]:
                    model, qvel = models[name], np.zeros(models[name].nv)
                    return lambda: ways[name].rollout(
                        model, START, qvel, ctrl, checkpoints=kept, states="all"
                    )

                calls = {name: call(name) for name in ways}
                repeats = 3 * effort.repeats
                found = percentiles(calls, repeats)
                local_ms, grpc_ms = found["local_ms"][0], found["grpc_ms"][0]
                rows.append(
                    {
                        "kept": store if kept == "every" else "nothing",
                        "steps": steps,
                        "local_ms": local_ms,
                        "grpc_ms": grpc_ms,
                        "overhead": f"{100 * (grpc_ms / local_ms - 1):.0f} %",
                        **processor_times(calls["local_ms"], calls["grpc_ms"], server, repeats),
                    }
                )
    return rows


def processor_times(
    local: Callable[[], object], served: Callable[[], object], server: ServerProcess, repeats: int
) -> Row:
    """Return the processor time of one call in milliseconds: in process, of the client, of the server."""
    times: list[float] = []
    before = 0.0
    for call in (local, served):
        before, began = server.cpu_seconds(), time.process_time()
        for _ in range(repeats):
            call()
        times.append(1e3 * (time.process_time() - began) / repeats)
    spent = 1e3 * (server.cpu_seconds() - before) / repeats
    return {"local_cpu": times[0], "client_cpu": times[1], "server_cpu": spent}


def measure(effort: Effort) -> list[Table]:
    """Return the tables of small calls, small calls in process, large arrays and long rollouts."""
    costs = Table(
        "overhead",
        "Rollouts of one standing Laikago, all states returned, one engine thread; medians in milliseconds.",
        {
            "kept": "kept in",
            "steps": "steps",
            "local_ms": "in process",
            "grpc_ms": "gRPC",
            "overhead": "gRPC adds",
            "local_cpu": "processor time in process",
            "client_cpu": "of the client",
            "server_cpu": "of the server",
        },
    )
    tables: list[Table] = []
    for store, flags in STORES.items():
        with running_server("--max-batch", "100000000", "--threads", "1", *flags) as server:
            if not tables:
                address = {"grpc": server.grpc, "http": server.http}
                tables = [
                    small_calls(address, effort),
                    calls_in_process(effort),
                    large_arrays(address, effort),
                ]
            costs.rows += overhead(store, server, effort)
    return [*tables, costs]


if __name__ == "__main__":
    script("benchmarks.service.latency", __doc__, measure)

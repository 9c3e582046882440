"""Compares many workers with one robot each to one batch of as many robots in this process.

    python -m benchmarks.service.workers [--repeats 9] [--quick] [--out workers.json]

64 clients in four processes ask one server on loopback, each for one Laikago at a time; the server computes
their calls together. Clients, server and engine share this machine's cores, so the table has the processor
time of the server beside the throughput.
"""

from __future__ import annotations

import multiprocessing
import statistics
import threading
import time
from collections.abc import Callable
from typing import Any

import numpy as np

import revolute
from tests.server.processes import ServerProcess, running_server

from ..laikago import POSE, START, TIMESTEP
from ..script import Effort, script
from ..table import Table

WORKERS, PROCESSES = 64, 4
STEPS = (100, 1000, 4000)
SECONDS = 4.0

Job = Callable[[revolute.Simulator, Any, int], Callable[[], object]]


def rollout(simulator: revolute.Simulator, model: Any, steps: int) -> Callable[[], object]:
    """Return a call that simulates and gets all states, and deletes the trajectory before it."""
    ctrl, qvel = np.tile(POSE, (steps, 1)), np.zeros(model.nv)

    return lambda: simulator.rollout(model, START, qvel, ctrl)


def step(simulator: revolute.Simulator, model: Any, steps: int) -> Callable[[], object]:
    """Return a call that advances a session with one control held."""
    session = simulator.session(model)
    session.reset(START, np.zeros(model.nv))
    return lambda: session.step(POSE, steps)


def gradient(simulator: revolute.Simulator, model: Any, steps: int) -> Callable[[], object]:
    """Return a call that simulates and differentiates a loss by all controls."""
    ctrl, qvel = np.tile(POSE, (steps, 1)), np.zeros(model.nv)
    loss = revolute.Loss([revolute.Term("qpos", target=0.1, index=[1])])
    return lambda: simulator.value_and_gradient(model, START, qvel, ctrl, loss, wrt=("ctrl",))


JOBS: dict[str, Job] = {"rollout": rollout, "step": step, "gradient": gradient}


def _client(address: str, job: str, steps: int, count: int, start: Any, done: Any) -> None:
    """Let `count` threads call until time is over, and report how many calls ended within it."""
    calls = [0] * count
    ready = threading.Barrier(count + 1)

    def work(place: int) -> None:
        with revolute.connect(address) as simulator:
            model = simulator.load_model("laikago", timestep=TIMESTEP)
            call = JOBS[job](simulator, model, steps)
            call()
            ready.wait()
            start.wait()
            end = time.monotonic() + SECONDS
            while True:
                call()
                if time.monotonic() > end:
                    return
                calls[place] += 1

    threads = [threading.Thread(target=work, args=(place,)) for place in range(count)]
    for thread in threads:
        thread.start()
    ready.wait()
    done.put(0)
    for thread in threads:
        thread.join()
    done.put(sum(calls))


def served(server: ServerProcess, job: str, steps: int) -> tuple[float, float]:
    """Return robot steps per second of all workers, and the server's processor time per robot step in µs."""
    context = multiprocessing.get_context("spawn")
    start, done = context.Event(), context.Queue()
    share = WORKERS // PROCESSES
    processes = [
        context.Process(target=_client, args=(server.grpc, job, steps, share, start, done))
        for _ in range(PROCESSES)
    ]
    for process in processes:
        process.start()
    for _ in processes:
        done.get(timeout=120)
    used = server.cpu_seconds()
    start.set()
    calls = sum(done.get(timeout=120) for _ in processes)
    used = server.cpu_seconds() - used
    for process in processes:
        process.join()
    taken = calls * steps
    return taken / SECONDS, 1e6 * used / max(1, taken)


def in_process(job: str, steps: int, repeats: int) -> float:
    """Return robot steps per second of one batch in this process, on all cores."""
    with revolute.connect() as simulator:
        model = simulator.load_model("laikago", timestep=TIMESTEP)
        ctrl, qvel = np.tile(POSE, (WORKERS, steps, 1)), np.zeros(model.nv)
        loss = revolute.Loss([revolute.Term("qpos", target=0.1, index=[1])])
        session = simulator.session(model, WORKERS)
        session.reset(START, qvel)
        calls: dict[str, Callable[[], object]] = {
            "rollout": lambda: simulator.rollout(model, START, qvel, ctrl),
            "step": lambda: session.step(POSE, steps),
            "gradient": lambda: simulator.value_and_gradient(model, START, qvel, ctrl, loss, wrt=("ctrl",)),
        }
        taken = []
        for turn in range(repeats + 1):
            began = time.perf_counter()
            calls[job]()
            if turn:
                taken.append(time.perf_counter() - began)
    return WORKERS * steps / statistics.median(taken)


def measure(effort: Effort) -> list[Table]:
    """Return the table over kinds of calls and their lengths."""
    table = Table(
        "workers",
        f"{WORKERS} workers with one standing Laikago each, in {PROCESSES} processes, over gRPC.",
        {
            "job": "call",
            "steps": "steps per call",
            "served": "robot steps/s, served",
            "batch": "robot steps/s, one batch in process",
            "share": "share",
            "cpu_us": "server's processor µs per step",
        },
    )
    with running_server() as server:
        for job in JOBS:
            for steps in effort.some(STEPS):
                before = in_process(job, steps, effort.repeats)
                rate, cpu = served(server, job, steps)
                batch = statistics.mean((before, in_process(job, steps, effort.repeats)))
                table.rows.append(
                    {
                        "job": job,
                        "steps": steps,
                        "served": rate,
                        "batch": batch,
                        "share": f"{100 * rate / batch:.0f} %",
                        "cpu_us": cpu,
                    }
                )
                print(table.rows[-1], flush=True)
    return [table]


if __name__ == "__main__":
    script("benchmarks.service.workers", __doc__, measure)

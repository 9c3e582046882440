"""Compares many workers to one batch of all their robots in this process.

    python -m benchmarks.service.workers [--repeats 9] [--quick] [--out workers.json]

64 clients in four processes ask one server on loopback, each for one Laikago at a time, or for the gradient
of a policy over a window of 64 ants, by the policy's weights; the server computes their calls together if it
can. Clients, server and engine share this machine's cores, so the table has the processor time of the server
beside the throughput, and that of the batch.
"""

from __future__ import annotations

import multiprocessing
import statistics
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

import revolute
from testbed.server_process import ServerProcess, running_server

from ..laikago import POSE, START, TIMESTEP
from ..script import Effort, script
from ..table import Table
from .closed_loops import ANTS, CONTROLS, HOLD, ant_calls

WORKERS, PROCESSES = 64, 4
STEPS = (100, 1000, 4000)
SECONDS = 8.0


@dataclass(frozen=True)
class Job:
    """A kind of call.

    Attributes:
        make: takes a simulator, a number of robots and a number of steps, and returns the call.
        robots: robots of each worker.
        steps: lengths of the call.
    """

    make: Callable[[revolute.Simulator, int, int], Callable[[], object]]
    robots: int = 1
    steps: tuple[int, ...] = STEPS


def rollout(simulator: revolute.Simulator, robots: int, steps: int) -> Callable[[], object]:
    """Return a call that simulates and gets all states, and deletes the trajectory before it."""
    model = simulator.load_model("laikago", timestep=TIMESTEP)
    ctrl, qvel = np.tile(POSE, (robots, steps, 1)), np.zeros(model.nv)
    return lambda: simulator.rollout(model, START, qvel, ctrl)


def step(simulator: revolute.Simulator, robots: int, steps: int) -> Callable[[], object]:
    """Return a call that advances a session with one control held."""
    model = simulator.load_model("laikago", timestep=TIMESTEP)
    session = simulator.session(model, robots)
    session.reset(START, np.zeros(model.nv))
    return lambda: session.step(POSE, steps)


def gradient(simulator: revolute.Simulator, robots: int, steps: int) -> Callable[[], object]:
    """Return a call that simulates and differentiates a loss by all controls."""
    model = simulator.load_model("laikago", timestep=TIMESTEP)
    ctrl, qvel = np.tile(POSE, (robots, steps, 1)), np.zeros(model.nv)
    loss = revolute.Loss([revolute.Term("qpos", target=0.1, index=[1])])
    return lambda: simulator.value_and_gradient(model, START, qvel, ctrl, loss, wrt=("ctrl",))


def policy(simulator: revolute.Simulator, robots: int, steps: int) -> Callable[[], object]:
    """Return a call that differentiates a policy's loss over a window by its weights."""
    assert steps == CONTROLS * HOLD
    return ant_calls(simulator, ants=robots)[0]


JOBS = {
    "rollout": Job(rollout),
    "step": Job(step),
    "gradient": Job(gradient),
    "policy": Job(policy, robots=ANTS, steps=(CONTROLS * HOLD,)),
}


def _client(address: str, job: str, steps: int, count: int, start: Any, done: Any) -> None:
    """Let `count` threads call until time is over, and report how many calls they made."""
    calls = [0] * count
    ready = threading.Barrier(count + 1)

    def work(place: int) -> None:
        with revolute.connect(address) as simulator:
            call = JOBS[job].make(simulator, JOBS[job].robots, steps)
            call()
            ready.wait()
            start.wait()
            end = time.monotonic() + SECONDS
            while time.monotonic() < end:
                call()
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
    used, began = server.cpu_seconds(), time.monotonic()
    start.set()
    calls = sum(done.get(timeout=120) for _ in processes)
    used, seconds = server.cpu_seconds() - used, time.monotonic() - began
    for process in processes:
        process.join()
    taken = calls * steps * JOBS[job].robots
    return taken / seconds, 1e6 * used / max(1, taken)


def in_process(job: str, steps: int, repeats: int) -> tuple[float, float]:
    """Return robot steps per second of one batch in this process, on all cores, and processor µs per step."""
    robots = WORKERS * JOBS[job].robots
    with revolute.connect() as simulator:
        call = JOBS[job].make(simulator, robots, steps)
        call()
        taken, used = [], time.process_time()
        for _ in range(repeats):
            began = time.perf_counter()
            call()
            taken.append(time.perf_counter() - began)
        used = (time.process_time() - used) / repeats
    return robots * steps / statistics.median(taken), 1e6 * used / (robots * steps)


def measure(effort: Effort) -> list[Table]:
    """Return the table over kinds of calls and their lengths."""
    table = Table(
        "workers",
        f"{WORKERS} workers with one standing Laikago each, or with a policy of {ANTS} ants, in {PROCESSES} "
        "processes, over gRPC.",
        {
            "job": "call",
            "steps": "steps per call",
            "served": "robot steps/s, served",
            "batch": "robot steps/s, one batch in process",
            "share": "share",
            "cpu_us": "server's processor µs per step",
            "batch_us": "processor µs per step, in process",
        },
    )
    with running_server() as server:
        for job in JOBS:
            for steps in effort.some(JOBS[job].steps):
                before, _ = in_process(job, steps, effort.repeats)
                rate, cpu = served(server, job, steps)
                after, alone = in_process(job, steps, effort.repeats)
                batch = statistics.mean((before, after))
                table.rows.append(
                    {
                        "job": job,
                        "steps": steps,
                        "served": rate,
                        "batch": batch,
                        "share": f"{100 * rate / batch:.0f} %",
                        "cpu_us": cpu,
                        "batch_us": alone,
                    }
                )
                print(table.rows[-1], flush=True)
    return [table]


if __name__ == "__main__":
    script("benchmarks.service.workers", __doc__, measure)

"""Speed of a pool: two workers beside one, and one worker beside the engine in this process."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence

import numpy as np
import ray

import revolute
from revolute.ray import RolloutPool

from ..measure import interleaved, process_seconds
from ..script import Effort, script
from ..table import Table

BATCH, STEPS = 1024, 100
COLUMNS = {
    "call": "call",
    "engine_ms": "engine ms",
    "one_ms": "one worker ms",
    "two_ms": "two workers ms",
    "overhead": "one worker ÷ engine",
    "speedup": "one ÷ two workers",
    "engine_cpu_ms": "engine, processor ms",
    "driver_cpu_ms": "driver of one worker",
    "worker_cpu_ms": "one worker",
    "cpu_overhead": "both ÷ engine",
}


def measure(effort: Effort) -> list[Table]:
    """Return the table of the calls that a pool divides."""
    ray.init(address="local", num_cpus=4, include_dashboard=False, log_to_driver=False)
    table = Table(
        "pool",
        f"{BATCH} Laikagos, {STEPS} steps, one thread for each engine; medians of one run, and means of "
        "processor times, which do not include waiting for a core.",
        COLUMNS,
    )
    with revolute.connect(threads=1) as engine, RolloutPool(1) as one, RolloutPool(2) as two:
        simulators = {"engine": engine, "one": one, "two": two}
        calls = {name: calls_of(simulator, effort) for name, simulator in simulators.items()}
        for verb in ("rollout", "value_and_gradient"):
            found = interleaved(
                {name: call[verb] for name, call in calls.items()}, effort.repeats, time.perf_counter
            )
            engine_s, one_s, two_s = (found[name].median for name in calls)
            alone, _ = processor_ms(calls["engine"][verb], effort.repeats)
            driver, worker = processor_ms(calls["one"][verb], effort.repeats, one.worker_processes())
            table.rows.append(
                {
                    "call": verb,
                    "engine_ms": 1e3 * engine_s,
                    "one_ms": 1e3 * one_s,
                    "two_ms": 1e3 * two_s,
                    "overhead": one_s / engine_s,
                    "speedup": one_s / two_s,
                    "engine_cpu_ms": alone,
                    "driver_cpu_ms": driver,
                    "worker_cpu_ms": worker,
                    "cpu_overhead": (driver + worker) / alone,
                }
            )
    ray.shutdown()
    return [table]


def processor_ms(call: Callable[[], object], repeats: int, others: Sequence[int] = ()) -> tuple[float, float]:
    """Return the mean processor time of a call in this process, and in others given by number."""
    own, rest = time.process_time(), sum(map(process_seconds, others))
    for _ in range(repeats):
        call()
    own, rest = time.process_time() - own, sum(map(process_seconds, others)) - rest
    return 1e3 * own / repeats, 1e3 * rest / repeats


def calls_of(
    simulator: revolute.Simulator, effort: Effort, batch: int = BATCH
) -> dict[str, Callable[[], object]]:
    """Return the calls to time."""
    model = simulator.load_model("laikago")
    rng = np.random.default_rng(0)
    qpos = np.repeat(model.keyframes["home"][None], batch, 0)
    qvel = 0.01 * rng.standard_normal((batch, model.nv))
    held = qpos[:, None, -model.nu :]
    ctrl = held + 0.02 * rng.standard_normal((batch, effort.steps(STEPS), model.nu))
    loss = revolute.Term("qvel", when="running")

    def rollout() -> object:
        return simulator.rollout(model, qpos, qvel, ctrl)

    def value_and_gradient() -> object:
        return simulator.value_and_gradient(model, qpos, qvel, ctrl, loss, wrt=["ctrl", "body_mass"])

    return {"rollout": rollout, "value_and_gradient": value_and_gradient}


if __name__ == "__main__":
    script("benchmarks.distributed.scale", __doc__, measure)

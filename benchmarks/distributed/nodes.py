"""A pool of one worker on each of several nodes, which are simulated on this machine.

    python -m benchmarks.distributed.nodes [--repeats 9] [--quick] [--out nodes.json]

Each node has a Ray daemon and an object store of its own, so arrays go from node to node as between machines.
The nodes share this machine's cores: the processor time of a call, of driver, workers and daemons, shows what
more nodes cost. The last row loses a node during its calls. Every row must have the same bits.
"""

from __future__ import annotations

import hashlib
import os
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from statistics import median
from typing import Any

import numpy as np
import ray
from ray.cluster_utils import Cluster

import revolute
from revolute.ray import RolloutPool

from ..measure import process_seconds
from ..script import Effort, script
from ..table import Table

BATCH, STEPS = 512, 64
STORE = 256 * 1024**2
NODE: dict[str, Any] = {"num_cpus": 1, "object_store_memory": STORE}
COLUMNS = {
    "nodes": "nodes",
    "ms": "ms",
    "cpu_ms": "processor ms",
    "replaced": "workers replaced",
    "bits": "SHA-256 of the results",
}


@contextmanager
def cluster(nodes: int) -> Iterator[Cluster]:
    """Start a head without cores and some nodes of one core each, and connect to them."""
    head = {"num_cpus": 0, "object_store_memory": STORE, "include_dashboard": False}
    made = Cluster(initialize_head=True, head_node_args=head)
    try:
        for _ in range(nodes):
            made.add_node(**NODE)
        made.wait_for_nodes()
        ray.init(address=made.address, log_to_driver=False)
        yield made
    finally:
        ray.shutdown()
        made.shutdown()


def results(simulator: revolute.Simulator) -> str:
    """Return a hash of trajectories, their gradients, and the gradients of one call."""
    model = simulator.load_model("laikago")
    rng = np.random.default_rng(0)
    qpos = np.repeat(model.keyframes["home"][None], BATCH, 0)
    qvel = 0.01 * rng.standard_normal((BATCH, model.nv))
    ctrl = qpos[:, None, -model.nu :] + 0.02 * rng.standard_normal((BATCH, STEPS, model.nu))
    wrt = ["ctrl", "body_mass"]
    trajectory = simulator.rollout(model, qpos, qvel, ctrl)
    first = trajectory.backward(np.ones_like(trajectory.qpos), wrt=wrt)
    value, second = simulator.value_and_gradient(
        model, qpos, qvel, ctrl, revolute.Term("qvel", when="running"), wrt=wrt
    )
    arrays = (
        trajectory.qpos,
        trajectory.qvel,
        value,
        *(each[name] for each in (first, second) for name in wrt),
    )
    return hashlib.sha256(b"".join(array.tobytes() for array in arrays)).hexdigest()[:16]


def processor_seconds() -> float:
    """Return the processor time of this process and of all its descendants that live."""
    return sum(_of_tree(os.getpid()))


def _of_tree(process: int) -> Iterator[float]:
    try:
        yield process_seconds(process)
        children = Path(f"/proc/{process}/task/{process}/children").read_text(encoding="utf-8").split()
    except OSError:
        return
    for child in children:
        yield from _of_tree(int(child))


def row(nodes: int, repeats: int, *, losing: bool = False) -> dict[str, Any]:
    """Measure a pool of as many workers as nodes; with `losing` a node is lost, and a spare one is there."""
    with cluster(nodes) as made, RolloutPool(nodes) as pool:
        found, taken, used = {results(pool)}, [], []
        lost = threading.Timer(0.05, made.remove_node, (made.list_all_nodes()[-1], False))
        if losing:
            made.add_node(**NODE)
        for number in range(repeats):
            if losing and number == 0:
                lost.start()
            began, before = time.perf_counter(), processor_seconds()
            found.add(results(pool))
            taken.append(time.perf_counter() - began)
            used.append(processor_seconds() - before)
        if losing:
            lost.join()
        return {
            "nodes": f"{nodes}, one of them lost" if losing else nodes,
            "ms": 1e3 * median(taken),
            "cpu_ms": None if losing else 1e3 * median(used),
            "replaced": pool.replaced,
            "bits": " ".join(sorted(found)),
        }


def measure(effort: Effort) -> list[Table]:
    """Return the table over numbers of nodes."""
    table = Table(
        "nodes",
        f"One worker with one thread on each node: rollout of {BATCH} Laikagos over {STEPS} steps, its "
        "backward pass, and value_and_gradient of the same; medians.",
        COLUMNS,
    )
    for nodes in effort.some((1, 2, 4, 8)):
        table.rows.append(row(nodes, effort.repeats))
    table.rows.append(row(2, effort.repeats, losing=True))
    if len({found["bits"] for found in table.rows}) != 1:
        raise SystemExit(f"the results differ:\n{table.markdown()}")
    return [table]


if __name__ == "__main__":
    script("benchmarks.distributed.nodes", __doc__, measure)

"""Trains a policy on a pool of workers while workers and their server are killed at random.

Each iteration is one call: the gradient of a policy's loss over short windows of many environments. The same
training without any kill must end with the same weights, bit for bit: a sample that was lost, counted twice
or zero would change them.
"""

from __future__ import annotations

import argparse
import contextlib
import hashlib
import os
import random
import signal
import tempfile
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import ray
from ray.exceptions import RayActorError

import revolute
from revolute.ray import RolloutPool
from tests.server.processes import ServerProcess, running_server

ENVIRONMENTS, WINDOW, HOLD, HIDDEN = 256, 32, 2, 32
RETRIES = 30  # outlast the start of a server on a busy machine


def train(
    simulator: revolute.Simulator, seed: int, seconds: float, iterations: int | None
) -> tuple[int, str]:
    """Train by Adam for some time, or for a number of iterations.

    Returns:
        The number of iterations, and a hash of the weights.
    """
    model = simulator.load_model("cartpole")
    rng = np.random.default_rng(seed)
    shapes = ((HIDDEN, 4), (HIDDEN,), (1, HIDDEN), (1,))
    weights = np.concatenate([0.3 * rng.standard_normal(shape).ravel() for shape in shapes])
    mean, square = np.zeros_like(weights), np.zeros_like(weights)
    effort = revolute.Term("ctrl", weight=1e-3, when="running")
    loss = revolute.Loss([revolute.Term("qpos", when="running", weight=[0.1, 1.0]), effort])
    end, count = time.monotonic() + seconds, 0
    while count < iterations if iterations is not None else time.monotonic() < end:
        qpos = model.qpos0 + 0.3 * rng.standard_normal((ENVIRONMENTS, model.nq))
        qvel = 0.3 * rng.standard_normal((ENVIRONMENTS, model.nv))
        noise = 0.05 * rng.standard_normal((ENVIRONMENTS, WINDOW, model.nu))
        policy = revolute.MLP(split(weights, shapes), ["qpos", "qvel"], scale=5.0)
        _, found = simulator.value_and_gradient(
            model, qpos, qvel, noise, loss, hold=HOLD, policy=policy, wrt=["policy.weights"], clip=1e3
        )
        gradient = found["policy.weights"] / ENVIRONMENTS
        count += 1
        mean = 0.9 * mean + 0.1 * gradient
        square = 0.99 * square + 0.01 * gradient**2
        weights = weights - 3e-3 * (mean / (1 - 0.9**count)) / (np.sqrt(square / (1 - 0.99**count)) + 1e-8)
    return count, hashlib.sha256(weights.tobytes()).hexdigest()


def split(vector: np.ndarray, shapes: Any) -> list[np.ndarray]:
    """Return the layers of a vector of weights."""
    ends = np.cumsum([int(np.prod(shape)) for shape in shapes])
    return [part.reshape(shape) for part, shape in zip(np.split(vector, ends[:-1]), shapes, strict=True)]


class Server:
    """A server on a store of its own that can be killed, and starts again at the same address."""

    def __init__(self, folder: Path) -> None:
        self._flags = ["--store", f"sqlite:///{folder}/store.db"]
        self._running = contextlib.ExitStack()
        self._process = self._start()
        self.address = self._process.grpc
        self._flags += ["--grpc-port", self.address.rpartition(":")[2]]

    def _start(self) -> ServerProcess:
        return self._running.enter_context(running_server(*self._flags))

    def kill(self) -> None:
        """Kill the server, and start it again."""
        self._process.stop(signal.SIGKILL)
        self._process = self._start()

    def close(self) -> None:
        """End the server."""
        self._running.close()


@contextlib.contextmanager
def killing(every: float, kill: Any) -> Iterator[list[float]]:
    """Kill again and again during the block; yields the times."""
    over, times = threading.Event(), []

    def work() -> None:
        while not over.wait(every):
            with contextlib.suppress(RayActorError, ProcessLookupError):
                kill()
                times.append(time.monotonic())

    thread = threading.Thread(target=work)
    thread.start()
    try:
        yield times
    finally:
        over.set()
        thread.join()


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seconds", type=float, default=300.0)
    parser.add_argument("--workers", type=int, default=2)
    parser.add_argument("--worker-every", type=float, default=10.0, metavar="SECONDS")
    parser.add_argument("--server-every", type=float, default=60.0, metavar="SECONDS")
    parser.add_argument("--seed", type=int, default=0)
    options = parser.parse_args()
    chance = random.Random(options.seed)
    ray.init(address="local", num_cpus=options.workers, include_dashboard=False, log_to_driver=False)
    with tempfile.TemporaryDirectory() as folder:
        server = Server(Path(folder))
        with RolloutPool(options.workers, server.address, retries=RETRIES) as pool:

            def kill_worker() -> None:
                os.kill(chance.choice(pool.worker_processes()), signal.SIGKILL)

            with (
                killing(options.worker_every, kill_worker) as workers,
                killing(options.server_every, server.kill) as servers,
            ):
                count, disturbed = train(pool, options.seed, options.seconds, None)
            replaced = pool.replaced
        server.close()
    with RolloutPool(options.workers) as pool:
        _, undisturbed = train(pool, options.seed, 0.0, count)
    print(f"{count} iterations of {ENVIRONMENTS} windows; {len(workers)} workers and {len(servers)} servers")
    print(f"killed, {replaced} workers replaced; weights {disturbed[:16]}, undisturbed {undisturbed[:16]}")
    if disturbed != undisturbed:
        raise SystemExit("the weights differ")


if __name__ == "__main__":
    main()

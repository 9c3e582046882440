"""Trains a policy on a pool of workers while workers and their server are killed at random.

    python -m benchmarks.distributed.chaos [--seconds 300] [--worker-every 10] [--server-every 60]

The training is SHAC (examples/rl/shac.py) on windows of cart-poles, which the workers divide. The same
training without any kill must have the same states, rewards and gradients in every window, and end with the
same parameters, bit for bit: a sample that was lost, counted twice or zero would change them.
"""

from __future__ import annotations

import argparse
import contextlib
import hashlib
import importlib
import os
import random
import signal
import sys
import tempfile
import threading
import time
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import ray
from ray.exceptions import RayActorError

import revolute
from revolute.ray import RolloutPool
from testbed.server_process import ServerProcess, running_server

ROOT = Path(__file__).resolve().parents[2]
FLAGS = ("cartpole", "--out", "-", "--batch", "256", "--horizon", "32", "--critic-epochs", "2")
RETRIES = 30  # outlast the start of a server on a busy machine


@dataclass
class Training:
    """What a training did.

    Attributes:
        windows: a hash of the states, rewards and gradient of each window.
        samples: control steps of all environments.
        parameters: a hash of the parameters at the end.
    """

    windows: list[str] = field(default_factory=list)
    samples: int = 0
    parameters: str = ""


def train(simulator: revolute.Simulator, seed: int, seconds: float, windows: int | None) -> Training:
    """Train for some time, or for a number of windows."""
    sys.path.insert(0, str(ROOT / "examples/rl"))
    common, shac = (importlib.import_module(name) for name in ("common", "shac"))
    learner = shac.Shac(simulator, shac.flags().parse_args(FLAGS), common.seed_all(seed))
    gradient, found = learner.gradient, Training()

    def recorded(noise: Any) -> Any:
        window, numbers = gradient(noise)
        bars = [parameter.grad for parameter in learner.actor.parameters()]
        found.windows.append(_hash([window.features, window.rewards, *bars]))
        found.samples += window.rewards.numel()
        return window, numbers

    learner.gradient = recorded
    end = time.monotonic() + seconds
    while len(found.windows) < windows if windows is not None else time.monotonic() < end:
        learner.update(1.0)
    found.parameters = _hash([*learner.actor.parameters(), *learner.critic.parameters()])
    return found


def _hash(tensors: list[Any]) -> str:
    return hashlib.sha256(b"".join(tensor.detach().numpy().tobytes() for tensor in tensors)).hexdigest()[:16]


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
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
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
                disturbed = train(pool, options.seed, options.seconds, None)
            replaced = pool.replaced
        server.close()
    with RolloutPool(options.workers) as pool:
        undisturbed = train(pool, options.seed, 0.0, len(disturbed.windows))
    pairs = zip(disturbed.windows, undisturbed.windows, strict=True)
    wrong = sum(one != other for one, other in pairs)
    print(f"{len(workers)} workers and {len(servers)} servers killed, {replaced} workers replaced")
    print(f"{len(disturbed.windows)} windows, {disturbed.samples} control steps, {wrong} windows differ")
    print(f"parameters {disturbed.parameters}, undisturbed {undisturbed.parameters}")
    if wrong or disturbed != undisturbed:
        raise SystemExit("the trainings differ")


if __name__ == "__main__":
    main()

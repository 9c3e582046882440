"""Computes gradients in several processes, each with its own engine, or all on one server."""

import multiprocessing
import sys
from typing import Any

import numpy as np

import revolute

worker: Any = None


class Worker:
    """Each process's simulator and model."""

    def __init__(self, address: str | None) -> None:
        # one thread per worker, so that workers do not compete for cores; a server has its own setting
        self.sim = revolute.connect(address, threads=None if address else 1)
        self.model = self.sim.load_model("pendulum3")

    def gradient(self, seed: int) -> revolute.Gradient:
        """Return the gradient of a random motion's end by its controls. A trajectory could not be pickled."""
        ctrl = np.random.default_rng(seed).normal(0, 0.1, (200, self.model.nu))
        loss = revolute.Term("qpos", index=[0])
        return self.sim.value_and_gradient(
            self.model, self.model.qpos0, self.model.qvel0, ctrl, loss, wrt=["ctrl"]
        )[1]


def start(address: str | None) -> None:
    """Connect, once in each process."""
    global worker
    worker = Worker(address)


def gradient(seed: int) -> revolute.Gradient:
    """Compute a gradient with this process's worker."""
    found: revolute.Gradient = worker.gradient(seed)
    return found


if __name__ == "__main__":
    where = sys.argv[1] if len(sys.argv) > 1 else None
    with multiprocessing.Pool(2, initializer=start, initargs=(where,)) as pool:
        gradients = pool.map(gradient, range(8))
    print(len(gradients), "gradients, mean norm", np.mean([np.linalg.norm(each.ctrl) for each in gradients]))

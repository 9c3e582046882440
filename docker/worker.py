"""A worker with the light client: moves a cart with a pole to a place, one gradient after the other.

Stands for the part of a training job that runs on many machines. Each round asks the server for a loss and
its gradient by all controls and takes one step down it. Settings come from the environment:

    REVOLUTE_ADDRESS   server, "grpc://host:port" or "http://host:port"
    REVOLUTE_TOKEN     bearer token, if the server wants one; REVOLUTE_TOKEN_FILE names a file with it
    WORKER_ROUNDS      rounds before it ends; 0 goes on until it is stopped
    WORKER_PAUSE       seconds between rounds
"""

from __future__ import annotations

import os
import signal
import threading
from pathlib import Path

import numpy as np

import revolute

TARGET = 0.4  # metres: where the cart shall end
STEPS = 50
RATE = 100.0  # of the descent, newtons per unit of the gradient

RETRY_SECONDS = 2.0

stopping = threading.Event()


def main() -> None:
    """Ask for gradients until the rounds are through or SIGTERM comes."""
    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, lambda *_: stopping.set())
    rounds = int(os.environ.get("WORKER_ROUNDS", "0"))
    pause = float(os.environ.get("WORKER_PAUSE", "1"))
    address = os.environ.get("REVOLUTE_ADDRESS", "grpc://127.0.0.1:50051")
    loss = revolute.Loss([revolute.Term("qpos", index=[0], target=[TARGET], when="final")])
    simulator = connected(address)
    if simulator is None:
        return
    with simulator:
        model = simulator.load_model("cartpole")
        ctrl = np.zeros((STEPS, model.nu))
        done = 0
        while not stopping.is_set() and (rounds == 0 or done < rounds):
            value, gradient = simulator.value_and_gradient(
                model, model.qpos0, model.qvel0, ctrl, loss, wrt=["ctrl"]
            )
            ctrl -= RATE * gradient.ctrl
            done += 1
            print(f"round {done}: loss {float(value):.6f}, |gradient| {np.linalg.norm(gradient.ctrl):.3g}")
            if rounds == 0 or done < rounds:
                stopping.wait(pause)


def connected(address: str) -> revolute.Simulator | None:
    """Connect, as soon as the server is there; None if the worker is stopped before."""
    while not stopping.is_set():
        try:
            return revolute.connect(address, token=token())
        except revolute.UnavailableError as error:
            if error.permanent:
                raise
            print(f"waits: {error}")
            stopping.wait(RETRY_SECONDS)
    return None


def token() -> str | None:
    """Return the bearer token; None for a server that asks for none."""
    file = os.environ.get("REVOLUTE_TOKEN_FILE")
    return Path(file).read_text(encoding="utf-8").strip() if file else os.environ.get("REVOLUTE_TOKEN")


if __name__ == "__main__":
    main()

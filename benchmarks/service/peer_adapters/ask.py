"""Asks every server the same questions in turn and prints what it took, as JSON.

    python -m benchmarks.service.peer_adapters.ask SECONDS NAME=ADDRESS...

SECONDS bounds the time per question and server; names are revolute-grpc, revolute-http, tesseract, umbridge.
"""

from __future__ import annotations

import json
import sys
import threading
import time
from collections.abc import Callable
from typing import Any, Protocol

import numpy as np

import revolute
from benchmarks.service.peer_adapters import engine

Array = np.ndarray
MOST_REPEATS = 300
CLIENTS = 4


class Server(Protocol):
    """One server, as its own client asks it."""

    def rollout(self, name: str, ctrl: Array) -> Array: ...

    def gradient(self, name: str, ctrl: Array) -> Array: ...


class Here:
    """The engine in this process, for what the physics alone takes."""

    def rollout(self, name: str, ctrl: Array) -> Array:
        return engine.rollout(name, ctrl)

    def gradient(self, name: str, ctrl: Array) -> Array:
        return engine.gradient(name, ctrl)


class Revolute:
    """Our server."""

    def __init__(self, address: str) -> None:
        self._simulator = revolute.connect(address)
        self._models = {name: self._simulator.load_model(source) for name, source in engine.SOURCES.items()}

    def rollout(self, name: str, ctrl: Array) -> Array:
        chosen = self._models[name]
        with self._simulator.rollout(chosen, chosen.qpos0, chosen.qvel0, ctrl) as trajectory:
            return trajectory.qpos

    def gradient(self, name: str, ctrl: Array) -> Array:
        chosen = self._models[name]
        return self._simulator.value_and_gradient(
            chosen, chosen.qpos0, chosen.qvel0, ctrl, engine.LOSS, wrt=["ctrl"]
        )[1].ctrl


class Tesseract:
    """tesseract-core, served by its runtime."""

    def __init__(self, address: str) -> None:
        from tesseract_core import Tesseract as Client

        self._client = Client.from_url(address)

    def rollout(self, name: str, ctrl: Array) -> Array:
        return self._client.apply({"name": name, "ctrl": ctrl})["qpos"]

    def gradient(self, name: str, ctrl: Array) -> Array:
        return self._client.vector_jacobian_product(
            {"name": name, "ctrl": ctrl}, ["ctrl"], ["qpos"], {"qpos": _bar(name, len(ctrl))}
        )["ctrl"]


class UmBridge:
    """UM-Bridge over HTTP, as between machines."""

    def __init__(self, address: str) -> None:
        import umbridge

        self._model = umbridge.HTTPModel(address, "rollout")

    def rollout(self, name: str, ctrl: Array) -> Array:
        config = {"model": name, "steps": len(ctrl)}
        found = self._model([ctrl.ravel().tolist()], config)
        return np.reshape(found[0], (len(ctrl) + 1, -1))

    def gradient(self, name: str, ctrl: Array) -> Array:
        config = {"model": name, "steps": len(ctrl)}
        sens = _bar(name, len(ctrl)).ravel().tolist()
        return np.reshape(self._model.gradient(0, 0, [ctrl.ravel().tolist()], sens, config), ctrl.shape)


KINDS: dict[str, Callable[[str], Server]] = {
    "revolute-grpc": Revolute,
    "revolute-http": Revolute,
    "tesseract": Tesseract,
    "umbridge": UmBridge,
}

QUESTIONS: dict[str, tuple[str, str, int]] = {
    "gradient by 10 controls": ("gradient", "cartpole", 10),
    "rollout of 1000 steps": ("rollout", "laikago", 1000),
    "gradient by 0.8 MB of controls": ("gradient", "cart", 100),
    "gradient by 80 MB of controls": ("gradient", "cart", 10_000),
}
"""What is asked: verb, model, steps."""


def _bar(name: str, steps: int) -> Array:
    """Return the cotangents of engine.LOSS."""
    bar = np.zeros((steps + 1, engine.model(name).nq))
    bar[-1] = 1.0
    return bar


def measure(servers: dict[str, Server], question: str, seconds: float) -> dict[str, Any]:
    """Ask one question of all servers in turn, and compare the answers."""
    verb, name, steps = QUESTIONS[question]
    nu = engine.model(name).nu
    pose = np.tile([0.0, 0.1, -0.8], 4) if name == "laikago" else 0.0
    ctrl = pose + 0.01 * np.random.default_rng(5).normal(size=(steps, nu))
    expected = getattr(Here(), verb)(name, ctrl)
    found: dict[str, Any] = {label: {"milliseconds": []} for label in servers}
    for label, server in list(servers.items()):
        try:
            answer = np.asarray(getattr(server, verb)(name, ctrl))  # also warms it up
            found[label]["same bits"] = bool(answer.tobytes() == expected.tobytes())
        except Exception as error:
            found[label] = {"failed": f"{type(error).__name__}: {str(error)[:160]}"}
    end = time.monotonic() + seconds * len(servers)
    for _ in range(MOST_REPEATS):
        for label, server in servers.items():
            if "failed" in found[label]:
                continue
            began = time.perf_counter()
            getattr(server, verb)(name, ctrl)
            found[label]["milliseconds"].append(1e3 * (time.perf_counter() - began))
        if time.monotonic() > end:
            break
    return {label: _summary(one) for label, one in found.items()}


def _summary(found: dict[str, Any]) -> dict[str, Any]:
    if "failed" in found:
        return found
    times = np.array(found.pop("milliseconds"))
    return {
        **found,
        "calls": len(times),
        "p50_ms": float(np.quantile(times, 0.5)),
        "p99_ms": float(np.quantile(times, 0.99)),
    }


def throughput(kind: Callable[[str], Server], address: str, question: str, seconds: float) -> float:
    """Return the calls per second that CLIENTS clients get together."""
    verb, name, steps = QUESTIONS[question]
    ctrl = np.zeros((steps, engine.model(name).nu))
    counts = [0] * CLIENTS
    begin = threading.Barrier(CLIENTS + 1)
    end = [0.0]

    def ask(index: int) -> None:
        server = kind(address)
        getattr(server, verb)(name, ctrl)
        begin.wait()
        while time.monotonic() < end[0]:
            getattr(server, verb)(name, ctrl)
            counts[index] += 1

    threads = [threading.Thread(target=ask, args=(index,)) for index in range(CLIENTS)]
    for thread in threads:
        thread.start()
    end[0] = float("inf")
    begin.wait()
    began = time.monotonic()
    end[0] = began + seconds
    for thread in threads:
        thread.join()
    return sum(counts) / (time.monotonic() - began)


def main(seconds: float, *places: str) -> None:
    """Ask everything and print the results as JSON."""
    addresses = dict(place.split("=", 1) for place in places)
    servers: dict[str, Server] = {"in process": Here()}
    servers |= {label: KINDS[label](address) for label, address in addresses.items()}
    results = {}
    for question in QUESTIONS:
        print(question, file=sys.stderr, flush=True)
        results[question] = measure(servers, question, seconds)
        if question in ("gradient by 10 controls", "rollout of 1000 steps"):
            for label, address in addresses.items():
                if "failed" not in results[question][label]:
                    rate = throughput(KINDS[label], address, question, min(seconds, 5.0))
                    results[question][label]["calls_per_second"] = rate
    print(json.dumps(results))


if __name__ == "__main__":
    main(float(sys.argv[1]), *sys.argv[2:])

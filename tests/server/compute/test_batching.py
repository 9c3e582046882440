"""Many clients at once: their calls are computed together, and each gets what it would get alone."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import numpy as np
import pytest

import revolute
from revolute.contract.codec.documents import read_message
from revolute.contract.codec.parts import assemble
from testbed.server_process import ServerProcess, running_server
from testbed.wire import GrpcWire

CLIENTS = 12
STEPS = 150
POSE = np.tile([0.0, 0.1, -0.8], 4)
START = np.concatenate([[0, 0, 0.458476, 1, 0, 0, 0], POSE])


@pytest.fixture(scope="module")
def busy() -> Iterator[ServerProcess]:
    """Return a server with one worker, so that calls queue up and are gathered."""
    with running_server("--workers", "1", "--threads", "1") as running:
        yield running


def controls(client: int) -> np.ndarray:
    return POSE + np.random.default_rng(client).normal(0, 0.03, (STEPS, 12))


def at_once(address: str, work: Callable[[revolute.Simulator, Any, int], Any]) -> list[Any]:
    """Let every client connect, wait for all others, and then do its work."""
    together = threading.Barrier(CLIENTS)

    def client(number: int) -> Any:
        with revolute.connect(address) as simulator:
            model = simulator.load_model("laikago", timestep=2e-3)
            together.wait(60.0)
            return work(simulator, model, number)

    with ThreadPoolExecutor(CLIENTS) as threads:
        return list(threads.map(client, range(CLIENTS)))


def one_after_the_other(work: Callable[[revolute.Simulator, Any, int], Any]) -> list[Any]:
    with revolute.connect(threads=1) as simulator:
        model = simulator.load_model("laikago", timestep=2e-3)
        return [work(simulator, model, number) for number in range(CLIENTS)]


def rollout_and_gradients(simulator: revolute.Simulator, model: Any, client: int) -> list[np.ndarray]:
    params = {"geom_friction": model.geom_friction * (0.2 + 0.05 * client)} if client % 3 == 0 else None
    with simulator.rollout(model, START, np.zeros(model.nv), controls(client), params=params) as trajectory:
        bar = np.cos(np.arange(trajectory.qpos.size) + client).reshape(trajectory.qpos.shape)
        pulled = trajectory.backward(bar, wrt=["ctrl", "qpos", "geom_friction"])
        loss = revolute.Loss([revolute.Term("qpos", index=[0, 1]), revolute.Term("ctrl", when="running")])
        value, gradient = simulator.value_and_gradient(
            model, START, np.zeros(model.nv), controls(client), loss, params=params
        )
        return [trajectory.qpos, trajectory.qvel, *pulled.values(), np.asarray(value), *gradient.values()]


def steps(simulator: revolute.Simulator, model: Any, client: int) -> list[np.ndarray]:
    with simulator.session(model, batch=1 + client % 2) as session:
        session.reset(START, np.zeros(model.nv))
        for ctrl in controls(client)[:6]:
            state = session.step(ctrl, 20)
        assert state.step_count == 120
        return [state.qpos, state.qvel]


@pytest.mark.parametrize("work", [rollout_and_gradients, steps])
@pytest.mark.parametrize("transport", ["grpc", "http"])
def test_each_client_gets_the_bits_of_a_call_alone(
    busy: ServerProcess, work: Callable[..., list[np.ndarray]], transport: str
) -> None:
    found, alone = at_once(getattr(busy, transport), work), one_after_the_other(work)
    for client, expected in zip(found, alone, strict=True):
        for array, same in zip(client, expected, strict=True):
            np.testing.assert_array_equal(array, same)


def test_who_leaves_a_pack_disturbs_nobody_and_may_go_on(busy: ServerProcess) -> None:
    """Steps of three sessions gather behind another call; one caller cancels while they are computed."""
    steps = 100_000
    wire = GrpcWire(busy.grpc_target)
    with revolute.connect(busy.grpc) as simulator:
        model = simulator.load_model("laikago", timestep=2e-3)
        sessions = [simulator.session(model, 1) for _ in range(4)]
        for session in sessions:
            session.reset(START, np.zeros(model.nv))
        before = _packs(busy)

        def start(session: revolute.Session, count: int) -> Any:
            return wire.start("Step", {"session_id": session.id, "ctrl": POSE, "steps": count})

        first = start(sessions[0], 4 * steps)
        # the others must find the worker taken
        while _packs(busy) < before + 1:
            time.sleep(0.001)
        gathered = [start(session, steps) for session in sessions[1:]]
        while busy.metric("revolute_queue_length") < len(gathered):
            time.sleep(0.001)
        list(first)
        while _packs(busy) < before + 2:
            time.sleep(0.001)
        gathered[1].cancel()
        # the one that left may go on while the others are still under way
        assert sessions[2].reset(START, np.zeros(model.nv)).step_count == 0
        states = [read_message(*assemble(call)) for call in (gathered[0], gathered[2])]
        assert _packs(busy) == before + 2
    wire.close()
    with revolute.connect(threads=1) as simulator:
        alone = simulator.session(simulator.load_model("laikago", timestep=2e-3), 1)
        alone.reset(START, np.zeros(model.nv))
        expected = alone.step(POSE, steps)
    for state in states:
        np.testing.assert_array_equal(state["qpos"], expected.qpos)
        np.testing.assert_array_equal(state["qvel"], expected.qvel)


def _packs(server: ServerProcess) -> float:
    """Return how often the server has computed environments of one or more calls together."""
    return server.metric("revolute_batch_environments_count")

"""Several callers: on one session they take turns, on many they do not disturb each other (case E11)."""

from __future__ import annotations

import threading

import numpy as np
import pytest

import revolute
from testbed.server_process import ServerProcess

from .test_long_trajectories import CART

H = 1e-3
CALLERS, CALLS = 8, 40


@pytest.fixture(params=["grpc", "http"])
def address(request: pytest.FixtureRequest, server: ServerProcess) -> str:
    return {"grpc": server.grpc, "http": server.http}[request.param]


def in_threads(work: list[threading.Thread]) -> None:
    for thread in work:
        thread.start()
    for thread in work:
        thread.join(120.0)
        assert not thread.is_alive()


def test_callers_of_one_session_take_turns_and_no_read_is_torn(address: str) -> None:
    with revolute.connect(address) as simulator:
        session = simulator.session(simulator.load_model(CART))
        torn: list[revolute.State] = []
        done = threading.Event()

        def step() -> None:
            for _ in range(CALLS):
                session.step([1.0])

        def read() -> None:
            while not done.is_set():
                state = session.state()
                k = state.step_count
                x, v = H * H * k * (k + 1) / 2, H * k
                if not np.allclose([state.qpos[0, 0], state.qvel[0, 0]], [x, v], rtol=1e-12, atol=0):
                    torn.append(state)

        reader = threading.Thread(target=read)
        reader.start()
        in_threads([threading.Thread(target=step) for _ in range(CALLERS)])
        done.set()
        reader.join(30.0)
        assert torn == []
        state = session.state()
        assert state.step_count == CALLERS * CALLS
        alone = simulator.session(session.model)
        expected = alone.step([1.0], steps=CALLERS * CALLS)
        np.testing.assert_array_equal(state.qpos, expected.qpos)
        np.testing.assert_array_equal(state.qvel, expected.qvel)


def test_closing_while_others_step_is_not_found_for_them(address: str) -> None:
    with revolute.connect(address) as simulator:
        session = simulator.session(simulator.load_model(CART))
        ends: list[type[BaseException]] = []

        def step() -> None:
            try:
                while True:
                    session.step([1.0], steps=20)
            except revolute.RevoluteError as error:
                ends.append(type(error))

        callers = [threading.Thread(target=step) for _ in range(4)]
        for caller in callers:
            caller.start()
        threading.Event().wait(0.1)
        session.close()
        for caller in callers:
            caller.join(30.0)
        assert ends == [revolute.NotFoundError] * 4


def test_concurrent_clients_get_what_each_would_get_alone(address: str) -> None:
    results: dict[int, np.ndarray] = {}

    def work(number: int) -> None:
        random = np.random.default_rng(number)
        ctrl = random.normal(size=(2, 500, 1))
        with revolute.connect(address) as simulator:
            model = simulator.load_model(CART)
            for _ in range(5):
                with simulator.rollout(model, [0.0], [0.0], ctrl) as trajectory:
                    results[number] = trajectory.qpos

    in_threads([threading.Thread(target=work, args=(number,)) for number in range(12)])
    with revolute.connect() as simulator:
        model = simulator.load_model(CART)
        for number, found in results.items():
            ctrl = np.random.default_rng(number).normal(size=(2, 500, 1))
            np.testing.assert_array_equal(found, simulator.rollout(model, [0.0], [0.0], ctrl).qpos)
    assert len(results) == 12

"""Sessions end with their lease and trajectories when nobody uses them, and say so afterwards."""

from __future__ import annotations

import time
from collections.abc import Iterator

import numpy as np
import pytest

import revolute
from revolute.contract.errors import ArgumentError, NotFoundError
from testbed.cart import CART
from testbed.server_process import ServerProcess, running_server


@pytest.fixture(scope="module")
def short() -> Iterator[ServerProcess]:
    flags = ("--lease", "1.5", "--max-lease", "5", "--trajectory-ttl", "1.5", "--threads", "1")
    with running_server(*flags) as server:
        yield server


def until_gone(question: object, seconds: float = 20.0) -> NotFoundError:
    """Ask again and again, slower than a lease lasts, until there is nothing to ask."""
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        time.sleep(2.5)
        try:
            question()  # type: ignore[operator]
        except NotFoundError as error:
            return error
    raise AssertionError("it is still there")


def test_a_session_that_is_not_used_ends_and_says_why(short: ServerProcess) -> None:
    with revolute.connect(short.grpc) as simulator:
        session = simulator.session(simulator.load_model(CART))
        assert session.lease == 1.5
        error = until_gone(session.state)
        assert "lease of 1.5 s ended" in str(error)
        assert session.id not in [info.session_id for info in simulator.sessions()]
        # it is deleted a moment after its lease has ended
        end = time.monotonic() + 20.0
        while short.metric("revolute_sessions") != len(simulator.sessions()):
            assert time.monotonic() < end
            time.sleep(0.1)


@pytest.mark.parametrize("use", ["keep_alive", "step", "state"])
def test_each_use_renews_the_lease(short: ServerProcess, use: str) -> None:
    with revolute.connect(short.grpc) as simulator:
        session = simulator.session(simulator.load_model(CART))
        call = {"keep_alive": session.keep_alive, "state": session.state, "step": lambda: session.step([1.0])}
        for _ in range(5):
            time.sleep(0.6)
            call[use]()
        session.close()


def test_a_client_may_ask_for_another_lease(short: ServerProcess) -> None:
    with revolute.connect(short.grpc) as simulator:
        model = simulator.load_model(CART)
        with simulator.session(model, lease=4.5) as session:
            assert session.lease == 4.5 and 3 < session.info().expires_in <= 5
            with session.fork(lease=2.5) as copy:
                assert copy.lease == 2.5
        with pytest.raises(ArgumentError, match="lease: expected above 0 and at most 5 s, got 6"):
            simulator.session(model, lease=6.0)


def test_a_trajectory_that_is_not_used_expires(short: ServerProcess) -> None:
    with revolute.connect(short.grpc) as simulator:
        trajectory = simulator.rollout(simulator.load_model(CART), [0.0], [0.0], np.ones((3, 1)))
        error = until_gone(lambda: trajectory.backward(np.ones((4, 1))))
        assert "--trajectory-ttl" in str(error)
        trajectory.detach()

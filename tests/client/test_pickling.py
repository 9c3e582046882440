"""What travels between processes, and what says that it does not."""

from __future__ import annotations

import copy
import pickle
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pytest

import revolute
from testbed.server_process import ServerProcess

START = [0.0, 0.1], [0.0, 0.0]
CTRL = np.full((5, 1), 0.3)
COPIES: tuple[Callable[[Any], Any], ...] = (pickle.dumps, copy.copy, copy.deepcopy)


@pytest.fixture(params=["in process", "grpc", "http"])
def sim(request: pytest.FixtureRequest) -> Iterator[revolute.Simulator]:
    local = request.param == "in process"
    address = None if local else getattr(request.getfixturevalue("server"), request.param)
    with revolute.connect(address) as simulator:
        yield simulator


def test_what_belongs_to_a_process_says_what_to_do(sim: revolute.Simulator) -> None:
    model = sim.load_model("cartpole")
    trajectory = sim.rollout(model, *START, CTRL)
    with sim.session(model) as session, sim.stream_rollout(model, *START, CTRL) as stream:
        instead: dict[Any, str] = {
            sim: r"call revolute\.connect\(\) in each process",
            session: r"Simulator\.open_session",
            trajectory: r"Simulator\.trajectory",
            stream: r"Simulator\.trajectory",
        }
        for one, advice in instead.items():
            for duplicate in COPIES:
                with pytest.raises(TypeError, match=f"^cannot pickle or copy <revolute .*{advice}"):
                    duplicate(one)


def test_numbers_travel(sim: revolute.Simulator) -> None:
    model = sim.load_model("cartpole")
    trajectory = sim.rollout(model, *START, CTRL)
    gradient = trajectory.backward(np.ones(trajectory.qpos.shape))
    there = pickle.loads(pickle.dumps(gradient))
    assert all(np.array_equal(there[name], gradient[name]) for name in ("qpos", "qvel", "ctrl"))
    assert there.report == gradient.report and {"qpos", "qvel", "ctrl", "status"} <= set(dir(there))
    with sim.session(model) as session:
        state = session.state()
        assert np.array_equal(pickle.loads(pickle.dumps(state)).qpos, state.qpos)
    jvp = trajectory.jvp(ctrl_tan=CTRL)
    assert np.array_equal(pickle.loads(pickle.dumps(jvp)).qpos, jvp.qpos)


def test_a_model_works_in_another_engine_of_this_process() -> None:
    with revolute.connect() as here, revolute.connect() as there:
        model = here.load_model("cartpole")
        expected = here.rollout(model, *START, CTRL).qpos
        assert np.array_equal(there.rollout(pickle.loads(pickle.dumps(model)), *START, CTRL).qpos, expected)


def test_a_model_travels_to_where_it_is_kept(server: ServerProcess) -> None:
    with revolute.connect(server.grpc) as here, revolute.connect(server.http) as there:
        model = here.load_model("cartpole")
        expected = here.rollout(model, *START, CTRL).qpos
        assert np.array_equal(there.rollout(pickle.loads(pickle.dumps(model)), *START, CTRL).qpos, expected)

"""Sessions as training uses them: parameters of each environment, resets of some, and steps kept nowhere."""

from __future__ import annotations

import signal
from typing import Any

import numpy as np
import pytest

import revolute
from testbed.cart import CART
from testbed.server_process import ServerProcess, running_server
from testbed.wire import GrpcWire

H = 1e-3
MASSES = np.array([[0.0, 1.0], [0.0, 2.0], [0.0, 4.0]])


@pytest.fixture
def cart(simulator: revolute.Simulator) -> revolute.ModelHandle:
    return simulator.load_model(CART)


@pytest.mark.parametrize("durable", [True, False])
def test_each_environment_has_its_own_mass(
    simulator: revolute.Simulator, cart: revolute.ModelHandle, durable: bool
) -> None:
    """v = F h n / m, and the bits of a rollout with these masses."""
    with simulator.session(cart, 3, params={"body_mass": MASSES}, durable=durable) as session:
        assert session.durable == durable
        state = session.step([4.0], steps=10)
        np.testing.assert_allclose(state.qvel[:, 0], 4.0 * H * 10 / MASSES[:, 1], rtol=1e-12)
        same = simulator.rollout(
            cart, np.zeros((3, 1)), np.zeros((3, 1)), np.full((3, 10, 1), 4.0), params={"body_mass": MASSES}
        )
        assert same.qpos[:, -1].tobytes() == state.qpos.tobytes()
        one_by_one = simulator.session(cart, 3, params={"body_mass": MASSES})
        for _ in range(10):
            last = one_by_one.step([4.0])
        assert last.qpos.tobytes() == state.qpos.tobytes()
        np.testing.assert_allclose(session.jacobian([4.0]).B[:, 1, 0], H / MASSES[:, 1], rtol=1e-12)
        fork = session.fork()
        assert fork.durable == durable
        session.set_params({})
        np.testing.assert_allclose(session.step([1.0]).qvel - state.qvel, H, rtol=1e-9)
        gained = fork.step([1.0]).qvel - state.qvel
        np.testing.assert_allclose(gained[:, 0], H / MASSES[:, 1], rtol=1e-9)
        for other in (one_by_one, fork):
            other.close()


@pytest.mark.parametrize("durable", [True, False])
def test_some_environments_are_reset_and_the_others_go_on(
    simulator: revolute.Simulator, cart: revolute.ModelHandle, durable: bool
) -> None:
    with simulator.session(cart, 3, durable=durable) as session:
        before = session.step([1.0], steps=5)
        after = session.reset([[7.0], [8.0], [9.0]], where=[True, False, True])
        assert after.step_counts.tolist() == [0, 5, 0] and after.step_count == 5
        assert after.qpos[:, 0].tolist() == [7.0, before.qpos[1, 0], 9.0]
        assert after.qvel[:, 0].tolist() == [0.0, before.qvel[1, 0], 0.0]
        after = session.step([1.0], steps=2)
        assert after.step_counts.tolist() == [2, 7, 2] and after.time == pytest.approx(7 * H)
        other = simulator.session(cart, 3)
        restored = other.set_state(after.qpos, after.qvel, step_count=after.step_counts)
        assert restored.step_counts.tolist() == [2, 7, 2] and restored.step_count == 7
        assert session.reset().step_counts.tolist() == [0, 0, 0]
        other.close()


def test_a_reset_revives_only_the_environments_it_names(
    simulator: revolute.Simulator, cart: revolute.ModelHandle
) -> None:
    with simulator.session(cart, 3) as session:
        session.set_state(qvel=[[1e308], [0.0], [1e308]])
        diverged = session.step([[1.7e308], [0.0], [1.7e308]], steps=2000)
        assert diverged.status.tolist() == [1, 0, 1]
        after = session.reset(where=np.array([0, 0, 1]))
        assert after.status.tolist() == [1, 0, 0]
        assert np.isnan(after.qpos[0, 0]) and after.qpos[2, 0] == 0.0


MISTAKES: dict[str, Any] = {
    "where": lambda session: session.reset(where=[True, False]),
    "where ": lambda session: session.reset(where=[0, 2, 1]),
    "params": lambda session: session.set_params({"body_weight": 1.0}),
    "body_mass": lambda session: session.set_params({"body_mass": np.ones((2, 2))}),
    "step_counts": lambda session: session.set_state(step_count=[1, -1, 1]),
}


@pytest.mark.parametrize("mistake", MISTAKES)
def test_mistakes_name_the_argument(
    simulator: revolute.Simulator, cart: revolute.ModelHandle, mistake: str
) -> None:
    with simulator.session(cart, 3) as session:
        with pytest.raises(revolute.ArgumentError) as raised:
            MISTAKES[mistake](session)
        assert mistake.strip() in str(raised.value)
    before = len(simulator.sessions())
    with pytest.raises(revolute.ArgumentError):
        simulator.session(cart, 3, params={"body_mass": [1.0]})
    assert len(simulator.sessions()) == before


def test_a_session_in_memory_is_listed_and_holds_its_model(
    over_grpc: revolute.Simulator, server: ServerProcess
) -> None:
    model = over_grpc.load_model(CART, name="held in memory", timestep=0.0042)
    session = over_grpc.session(model, 2, durable=False, lease=60.0)
    kept = over_grpc.session(model, 2)
    listed = {info.session_id: info for info in over_grpc.sessions()}
    assert not listed[session.id].durable and listed[kept.id].durable
    assert not session.info().durable and session.keep_alive() == 60.0
    kept.close()
    with pytest.raises(revolute.ArgumentError, match="sessions or trajectories use"):
        over_grpc.delete_model(model)
    session.close()
    with pytest.raises(revolute.NotFoundError):
        session.step([0.0])
    over_grpc.delete_model(model)


def test_a_session_in_memory_ends_with_its_server_or_its_lease_and_repeats_once(tmp_path: Any) -> None:
    store = f"sqlite:///{tmp_path}/store.db"
    with running_server("--store", store) as server:
        wire = GrpcWire(server.grpc_target)
        model = wire.call("RegisterModel", {"text": CART})["model_id"]
        request = {"model_id": model, "batch": 1, "durable": False, "request_id": "one"}
        made = wire.call("CreateSession", request)
        assert wire.call("CreateSession", request)["session_id"] == made["session_id"]
        step = {"session_id": made["session_id"], "ctrl": np.ones((1, 1)), "request_id": "step"}
        for _ in range(3):
            assert wire.call("Step", step)["step_count"] == 1
        short = wire.call("CreateSession", {**request, "request_id": "two", "lease": 0.2})
        kept = wire.call("CreateSession", {"model_id": model, "batch": 1})
        error = None
        while error is None:
            try:
                wire.call("GetSession", {"session_id": short["session_id"]})
            except Exception:
                error, _ = wire.error("GetSession", {"session_id": short["session_id"]})
        assert "its lease of 0.2 s ended" in str(error)
        wire.close()
        server.stop(signal.SIGKILL)
    with running_server("--store", store) as server:
        wire = GrpcWire(server.grpc_target)
        assert wire.call("GetSession", {"session_id": kept["session_id"]})["durable"]
        error, _ = wire.error("GetSession", {"session_id": made["session_id"]})
        assert isinstance(error, revolute.NotFoundError)
        wire.close()

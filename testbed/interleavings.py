"""Random orders of rollout, backward, step, fork, evict, kill and restart, against the engine alone."""

from __future__ import annotations

import asyncio
import itertools
import shutil
import tempfile
from pathlib import Path
from typing import Any

import numpy as np
from hypothesis import strategies as st
from hypothesis.stateful import Bundle, RuleBasedStateMachine, consumes, rule

from revolute.contract.errors import NotFoundError
from revolute_engine import CancelToken, Engine, load_model
from revolute_server.compute.stepping import State, advance, start_state
from revolute_server.domain.service import Service
from revolute_server.settings import Settings
from revolute_server.verbs import Verbs

from .cart import CART

MODEL = load_model(CART)
ENGINE = Engine(threads=1)
NAMES = ("qpos", "qvel", "ctrl")


class Interleavings(RuleBasedStateMachine):
    """A service over a file; a kill leaves it as it is and opens the file with another one."""

    trajectories = Bundle("trajectories")
    sessions = Bundle("sessions")
    gone = Bundle("gone")

    def __init__(self) -> None:
        super().__init__()
        self.folder = tempfile.mkdtemp()
        self.loop = asyncio.new_event_loop()
        self.service = self._open()
        self.killed: list[Service] = []
        self.states: dict[str, State] = {}
        self.numbers = itertools.count()
        self._run(Verbs(self.service).register_model({"text": CART}))

    def teardown(self) -> None:
        for service in (*self.killed, self.service):
            self._run(service.close_store())
            service.close()
        self.loop.close()
        shutil.rmtree(self.folder)

    @rule(target=trajectories, seed=st.integers(0, 2**16), steps=st.integers(0, 300), batch=st.integers(1, 3))
    def rollout(self, seed: int, steps: int, batch: int) -> Any:
        ctrl = np.random.default_rng(seed).normal(size=(batch, steps, 1))
        inputs = {"model_id": MODEL.id, "qpos": np.zeros(1), "qvel": np.ones(1), "ctrl": ctrl}
        found = self._run(self.verbs.rollout(inputs))
        expected = ENGINE.rollout(MODEL, np.zeros(1), np.ones(1), ctrl)
        assert found["qpos"].tobytes() == expected.qpos.tobytes()
        return found["trajectory_id"], expected

    @rule(kept=trajectories, seed=st.integers(0, 2**16))
    def backward(self, kept: Any, seed: int) -> None:
        identifier, rollout = kept
        bar = np.random.default_rng(seed).normal(size=rollout.qpos.shape)
        found = self._run(self.verbs.backward(identifier, {"qpos_bar": bar}))["arrays"]
        expected = ENGINE.backward(MODEL, rollout, bar)
        assert all(found[name].tobytes() == expected[name].tobytes() for name in NAMES)

    @rule(target=gone, kept=consumes(trajectories))
    def delete(self, kept: Any) -> str:
        self._run(self.verbs.delete_trajectory(kept[0], {}))
        return kept[0]

    @rule(identifier=gone)
    def deleted_stays_deleted(self, identifier: str) -> None:
        try:
            self._run(self.verbs.backward(identifier, {"qpos_bar": np.zeros((2, 1))}))
        except NotFoundError:
            return
        raise AssertionError("it is back")

    @rule(target=sessions, batch=st.integers(1, 3))
    def create(self, batch: int) -> str:
        request = {"model_id": MODEL.id, "batch": batch}
        return self._noted(self._run(self.verbs.create_session(request)), start_state(ENGINE, MODEL, batch))

    @rule(session=sessions, push=st.floats(-9, 9), steps=st.integers(0, 9), repeat=st.booleans())
    def step(self, session: str, push: float, steps: int, repeat: bool) -> None:
        ctrl = np.full(1, push)
        after = advance(ENGINE, MODEL, self.states[session], ctrl, steps, CancelToken())
        self.states[session] = after
        request = {"ctrl": ctrl, "steps": steps, "request_id": f"step-{next(self.numbers)}"}
        for _ in range(1 + repeat):
            self._compare(session, self._run(self.verbs.step(session, request)))

    @rule(target=sessions, session=sessions)
    def fork(self, session: str) -> str:
        return self._noted(self._run(self.verbs.fork_session(session, {})), self.states[session])

    @rule(session=sessions)
    def state(self, session: str) -> None:
        self._compare(session, self._run(self.verbs.get_state(session)))

    @rule(session=consumes(sessions))
    def close(self, session: str) -> None:
        del self.states[session]
        self._run(self.verbs.delete_session(session, {}))

    @rule()
    def evict(self) -> None:
        self.service.budget.make_room(self.service.budget.limit + 1)

    @rule()
    def kill(self) -> None:
        """Leave the file open, without an orderly end."""
        self.killed.append(self.service)
        self.service = self._open()

    @rule()
    def restart(self) -> None:
        self._run(self.service.close_store())
        self.service.close()
        self.service = self._open()

    @property
    def verbs(self) -> Verbs:
        return Verbs(self.service)

    def _open(self) -> Service:
        store = f"sqlite:///{Path(self.folder, 'store.db')}"
        service = Service(Settings(store=store, threads=1, workers=1, batch_delay=0.0))
        self._run(service.open())
        return service

    def _run(self, work: Any) -> Any:
        return self.loop.run_until_complete(work)

    def _noted(self, document: dict[str, Any], state: State) -> str:
        identifier: str = document["session_id"]
        self.states[identifier] = state
        return identifier

    def _compare(self, session: str, found: dict[str, Any]) -> None:
        expected = self.states[session]
        assert found["step_count"] == expected.step_count
        for name in ("qpos", "qvel"):
            assert found[name].tobytes() == getattr(expected, name).tobytes()

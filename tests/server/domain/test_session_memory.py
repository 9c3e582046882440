"""The memory of sessions and of their parameters is counted, also while they are read from the store."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from pathlib import Path

import numpy as np
import pytest

from revolute.contract.errors import LimitError
from revolute_server.domain.service import Service
from revolute_server.settings import Settings
from revolute_server.store import SESSION, Record
from revolute_server.store.measured import MeasuredStore
from revolute_server.verbs import Verbs
from testbed.cart import CART

BATCH = 10_000
STATE_BYTES = BATCH * (8 + 8 + 8 + 4 + 3 * 8)
MEMORY = 4 * 1024**2


class Opened:
    """A service with one session.

    Attributes:
        reads: sessions that were read from the store.
    """

    def __init__(self, service: Service, session: str, reads: list[str]) -> None:
        self.service = service
        self.verbs = Verbs(service)
        self.session = session
        self.reads = reads

    def evict(self) -> None:
        """Empty the caches, as other uses of the memory do."""
        self.service.budget.make_room(MEMORY)


@pytest.fixture
def within(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[..., None]:
    """Run a scenario with a session of a service."""
    reads: list[str] = []
    get = MeasuredStore.get

    async def spied(self: MeasuredStore, kind: str, key: str) -> Record | None:
        if kind == SESSION:
            reads.append(key)
        return await get(self, kind, key)

    async def run(scenario: Callable[[Opened], Awaitable[None]]) -> None:
        store = f"sqlite:///{tmp_path}/store.db"
        service = Service(Settings(store=store, threads=1, workers=1, memory=MEMORY))
        await service.open()
        try:
            verbs = Verbs(service)
            model = await verbs.register_model({"text": CART})
            handle = await verbs.create_session({"model_id": model["model_id"], "batch": BATCH})
            await scenario(Opened(service, handle["session_id"], reads))
        finally:
            service.close()
            await service.close_store()

    monkeypatch.setattr(MeasuredStore, "get", spied)
    return lambda scenario: asyncio.run(run(scenario))


def test_calls_at_once_read_an_evicted_session_once(within: Callable[..., None]) -> None:
    async def scenario(opened: Opened) -> None:
        opened.evict()
        opened.reads.clear()
        calls = (opened.verbs.get_state(opened.session) for _ in range(20))
        states = await asyncio.gather(*calls)
        assert opened.reads == [opened.session]
        assert all(state["qpos"] is states[0]["qpos"] for state in states)

    within(scenario)


def test_a_session_without_room_is_not_read(within: Callable[..., None]) -> None:
    async def scenario(opened: Opened) -> None:
        budget = opened.service.budget
        opened.evict()
        opened.reads.clear()
        with budget.reserve("other things", budget.limit - budget.used - STATE_BYTES // 2):
            with pytest.raises(LimitError, match="--memory"):
                await opened.verbs.get_state(opened.session)
            assert not opened.reads
        assert len((await opened.verbs.get_state(opened.session))["qpos"]) == BATCH

    within(scenario)


def test_parameters_of_a_session_count(within: Callable[..., None]) -> None:
    masses = np.ones((BATCH, 2))

    async def scenario(opened: Opened) -> None:
        budget, verbs, session = opened.service.budget, opened.verbs, opened.session
        before = budget.used
        await verbs.set_params(session, {"params": {"body_mass": masses}})
        assert budget.used == before + masses.nbytes
        await verbs.step(session, {"ctrl": np.ones(1)})
        assert budget.used == before + masses.nbytes
        opened.evict()
        evicted = budget.used
        await verbs.get_state(session)
        # the model has been compiled again as well
        opened.service.sessions.forget(session)
        without = budget.used
        await verbs.get_state(session)
        assert budget.used == without + STATE_BYTES + masses.nbytes and evicted < without
        await verbs.set_params(session, {"params": {}})
        assert budget.used == without + STATE_BYTES

    within(scenario)


def test_parameters_without_room_are_refused_and_change_nothing(within: Callable[..., None]) -> None:
    async def scenario(opened: Opened) -> None:
        budget, verbs, session = opened.service.budget, opened.verbs, opened.session
        await verbs.get_state(session)
        with budget.reserve("other things", budget.limit - budget.used - 8 * BATCH):
            used = []
            for _ in range(2):
                with pytest.raises(LimitError, match="--memory"):
                    await verbs.set_params(session, {"params": {"body_mass": np.full((BATCH, 2), 4.0)}})
                used.append(budget.used)
            # the first one has evicted the model
            assert used[0] == used[1]
        state = await verbs.step(session, {"ctrl": np.ones(1)})
        np.testing.assert_allclose(state["qvel"], np.full((BATCH, 1), 1e-3), rtol=1e-12)

    within(scenario)

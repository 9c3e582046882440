"""What is kept of large answers in case a request is repeated: the newest ones of each session, and of the
others that they were carried out."""

from __future__ import annotations

import asyncio
import os
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from revolute.contract.errors import ArgumentError, NotFoundError
from revolute_server.domain import sessions
from revolute_server.domain.service import Service
from revolute_server.settings import Settings
from revolute_server.store import REQUEST
from revolute_server.verbs import Verbs

CARTS = 4000
TIMES = 6
KEPT = 3
STATE_BYTES = CARTS * (8 + 8 + 8 + 4 + 3 * 8)
"""qpos, qvel, the last control, status, two counts and the residual of each cart."""
CART = """
<mujoco><option gravity="0 0 0"/><worldbody><body>
<joint name="x" type="slide" axis="1 0 0"/><geom size="0.1" mass="1"/></body></worldbody>
<actuator><motor joint="x"/></actuator></mujoco>
"""


def files(folder: Path) -> int:
    """Count the payloads that are kept, each once however many records have it."""
    with os.scandir(folder / "store.db-blobs") as entries:
        return len({entry.inode() for entry in entries})


@pytest.mark.parametrize("kind", ["sqlite", "memory"])
def test_the_newest_answers_of_a_session_are_kept(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, kind: str
) -> None:
    monkeypatch.setattr(sessions, "_ANSWERS_BYTES", KEPT * (STATE_BYTES + 2000))
    store = f"sqlite:///{tmp_path}/store.db" if kind == "sqlite" else "memory:"

    async def scenario() -> None:
        service = Service(Settings(store=store, threads=1, workers=1))
        await service.open()
        verbs = Verbs(service)
        model = await verbs.register_model({"text": CART})
        handle = await verbs.create_session({"model_id": model["model_id"], "batch": CARTS})
        session = handle["session_id"]

        async def step(number: int) -> dict[str, Any]:
            ctrl = np.full((CARTS, 1), 1.0 + number)
            return await verbs.step(session, {"ctrl": ctrl, "steps": 1, "request_id": f"step-{number}"})

        first = [await step(number) for number in range(TIMES)]
        if kind == "sqlite":
            for _ in range(500):
                # files go after the answer
                if files(tmp_path) == KEPT:
                    break
                await asyncio.sleep(0.01)
            assert files(tmp_path) == KEPT
        for number, answer in enumerate(first):
            if number < TIMES - KEPT:
                with pytest.raises(NotFoundError, match="carried out before newer ones") as refused:
                    await step(number)
                assert refused.value.argument == "request_id"
            else:
                again = await step(number)
                assert again["step_count"] == answer["step_count"] == number + 1
                assert again["qpos"].tobytes() == answer["qpos"].tobytes()
        # none of the repeats had an effect, and a name stays that of its request
        assert (await verbs.get_state(session))["step_count"] == TIMES
        with pytest.raises(ArgumentError, match="an id of this request alone"):
            await verbs.reset(session, {"request_id": "step-0"})
        assert service.store.count(REQUEST) == TIMES
        await service.close_store()
        service.close()

    asyncio.run(scenario())

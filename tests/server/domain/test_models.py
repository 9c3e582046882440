"""Models that many clients want: compiled once, whoever asks and how often."""

from __future__ import annotations

import asyncio
import signal
import uuid
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import numpy as np
import pytest

import revolute
from revolute_server.store import MODEL, Limits, Put, open_store
from revolute_server.store.codec import decode, encode
from testbed.cart import CART
from testbed.server_process import ServerProcess, running_server
from testbed.wire import GrpcWire

COMPILATIONS = "revolute_compute_seconds_count"
"""Calls of the engine; nothing else computes in these tests."""


def fresh() -> str:
    """Return a text that no server has seen."""
    return CART.replace('model="cart"', f'model="{uuid.uuid4()}"')


def load(address: str, text: str) -> revolute.ModelHandle:
    with revolute.connect(address) as simulator:
        return simulator.load_model(text)


@pytest.mark.parametrize("transport", ["grpc", "http"])
def test_clients_that_load_one_model_at_once_have_it_compiled_once(
    server: ServerProcess, transport: str
) -> None:
    text, before = fresh(), server.metric(COMPILATIONS)
    with ThreadPoolExecutor(8) as clients:
        found = list(clients.map(lambda _: load(getattr(server, transport), text), range(16)))
    assert len({model.id for model in found}) == 1
    assert server.metric(COMPILATIONS) == before + 1


def test_other_options_and_another_text_are_another_model(server: ServerProcess) -> None:
    text, before = fresh(), server.metric(COMPILATIONS)
    with revolute.connect(server.grpc) as simulator:
        models = [simulator.load_model(text, timestep=h) for h in (1e-3, 2e-3, 1e-3)]
        assert models[0].id == models[2].id != models[1].id
        assert [model.timestep for model in models] == [1e-3, 2e-3, 1e-3]
        assert server.metric(COMPILATIONS) == before + 2


def test_a_text_that_does_not_compile_is_refused_each_time(server: ServerProcess) -> None:
    text = fresh().replace("<worldbody>", "<worldbody><nonsense/>")
    for _ in range(2):
        with pytest.raises(revolute.ModelError, match="nonsense"):
            load(server.grpc, text)


def test_a_model_that_was_deleted_is_registered_again(server: ServerProcess) -> None:
    text = fresh()
    with revolute.connect(server.grpc) as simulator:
        model = simulator.load_model(text)
        simulator.delete_model(model)
        with pytest.raises(revolute.NotFoundError):
            simulator.session(model)
        again = simulator.load_model(text)
        assert again.id == model.id
        assert simulator.session(again).step(np.ones(1)).step_count == 1


def test_after_a_restart_who_comes_back_at_once_has_a_model_compiled_once(tmp_path: Path) -> None:
    store = ("--store", f"sqlite:///{tmp_path}/store.db")
    with running_server(*store) as server, revolute.connect(server.grpc) as simulator:
        model = simulator.load_model(CART)
        sessions = [simulator.session(model).id for _ in range(8)]
        server.stop(signal.SIGKILL)
    with running_server(*store) as server:
        wire = GrpcWire(server.grpc_target)

        def count(session_id: str) -> int:
            return wire.call("Step", {"session_id": session_id, "ctrl": np.ones(1)})["step_count"]

        with ThreadPoolExecutor(8) as clients:
            assert list(clients.map(count, sessions)) == [1] * 8
        # and one for each step
        assert server.metric(COMPILATIONS) <= 1 + 8
        wire.close()


def test_a_model_of_an_earlier_release_keeps_its_contact_model(tmp_path: Path) -> None:
    """Its record names no contact model, because "hard" was the default then."""
    store = f"sqlite:///{tmp_path}/store.db"
    with running_server("--store", store) as server, revolute.connect(server.grpc) as simulator:
        hard, default = simulator.load_model(CART, contact_model="hard"), simulator.load_model(CART)
        assert default.options["contact_model"] == "mujoco" and default.id != hard.id
    asyncio.run(_forget_contact_model(store, hard.id))
    with running_server("--store", store) as server:
        wire = GrpcWire(server.grpc_target)
        for model in (hard, default):
            found = wire.call("GetModel", {"model_id": model.id})
            assert found["model_id"] == model.id
            assert found["options"]["contact_model"] == model.options["contact_model"]
        wire.close()


async def _forget_contact_model(address: str, model_id: str) -> None:
    """Rewrite a model's record as the earlier release wrote it."""
    store = open_store(address, "process", Limits())
    await store.open()
    record = await store.get(MODEL, model_id)
    assert record is not None
    source = decode(record.payload)
    assert source["options"].pop("contact_model") == "hard"
    await store.commit(Put(MODEL, model_id, encode(source), summary=record.summary))
    await store.close()

"""Names in requests are bounded, and lists come in pages that a client can read."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

import httpx
import pytest

from revolute.contract.names import LONGEST_NAME
from revolute_server.domain.pagination import MOST_BYTES, entry_bytes, page
from revolute_server.store import MODEL, SESSION, Delete, Limits, Put, Store, open_store
from testbed.cart import CART
from testbed.server_process import running_server
from testbed.wire import GrpcWire

from .conftest import Wire


@pytest.mark.parametrize("name", ["n" * 257, "n" * 1_900_000, "a\u202eb", "a\nb"], ids=len)
def test_a_bare_client_gives_no_such_name(wire: Wire, name: str) -> None:
    before = wire.call("ListModels", {})["models"]
    error, code = wire.error("RegisterModel", {"text": CART.replace("0.01", "0.011"), "name": name})
    assert error.argument == "name" and code in ("INVALID_ARGUMENT", "400")
    assert wire.call("ListModels", {})["models"] == before


def test_a_bare_client_gives_no_such_file_name(grpc_wire: GrpcWire) -> None:
    error, _ = grpc_wire.error("RegisterModel", {"text": CART, "assets": {"a" * 1025: b"x"}})
    assert str(error) == "assets: expected at most 1024 characters, got 1025; choose another name"


def test_a_page_is_bounded_in_bytes() -> None:
    async def scenario() -> None:
        store = open_store("memory:", "process", Limits())
        names = [str(number) + "x" * 100_000 for number in range(25)]
        await store.commit(*(Put(MODEL, f"m{name[:2]}", (b"",), summary={"name": name}) for name in names))
        listed, token, pages = [], "", 0
        while token or not pages:
            found = await page(store, MODEL, 1000, token)
            assert sum(map(entry_bytes, found.entries)) <= MOST_BYTES
            listed += [entry.summary["name"] for entry in found.entries]
            token, pages = found.next_token, pages + 1
        assert listed == names and pages == 3

    asyncio.run(scenario())


@pytest.mark.parametrize("kind", ["sqlite", "redis"])
def test_a_store_with_endless_names_can_be_listed(
    kind: str, tmp_path: Path, request: pytest.FixtureRequest
) -> None:
    """An earlier release kept names of megabytes; two of them were more than a message takes."""
    address = (
        f"sqlite:///{tmp_path}/store.db" if kind == "sqlite" else request.getfixturevalue("redis_address")
    )

    async def fill(store: Store) -> None:
        for number, length in enumerate((3_900_000, 3_900_000, 5_000)):
            summary = {"name": "x" * length, "model": "x" * length, "owner": "ann"}
            await store.commit(Put(MODEL, f"m{number}", (b"",), summary=summary))
            await store.commit(Put(SESSION, f"s{number}", (b"",), summary=summary))

    _with_store(address, fill)
    with running_server("--store", address) as server:
        wire = GrpcWire(server.grpc_target)
        models = {entry["model_id"]: entry["name"] for entry in wire.call("ListModels", {})["models"]}
        assert [models[f"m{number}"] for number in range(2)] == ["", ""]
        assert len(models["m2"]) == LONGEST_NAME
        assert {"s0", "s1", "s2"} <= {
            entry["session_id"] for entry in wire.call("ListSessions", {})["sessions"]
        }
        status = httpx.get(f"{server.http}/status")
        assert status.json()["models"]["total"] >= 3 and len(status.content) < 300_000
        wire.call("DeleteModel", {"model_id": "m0"})
        wire.close()

    async def empty(store: Store) -> None:
        for entry in [*await store.scan(SESSION), *await store.scan(MODEL)]:
            assert len(json.dumps(dict(entry.summary))) < 20_000
            if entry.owner in ("ann", "") and len(entry.key) == 2:
                await store.commit(Delete(entry.kind, entry.key))

    _with_store(address, empty)


def _with_store(address: str, use: Callable[[Store], Awaitable[None]]) -> None:
    async def main() -> None:
        store: Any = open_store(address, "process", Limits())
        await store.open()
        await use(store)
        await store.close()

    asyncio.run(main())

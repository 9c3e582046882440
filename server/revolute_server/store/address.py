"""Makes the store for the address in the flag `--store`."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path
from urllib.parse import unquote, urlsplit

from revolute.contract.errors import ArgumentError, UnavailableError

from ..settings import STORE_FORMS, hide_password
from .interface import Limits, Store
from .memory import MemoryStore
from .sqlite import SqliteStore


def default_address() -> str:
    """Return the address of an SQLite file in the user's state folder (XDG_STATE_HOME or ~/.local/state)."""
    base = os.environ.get("XDG_STATE_HOME") or str(Path.home() / ".local" / "state")
    return f"sqlite:///{Path(base, 'revolute', 'store.db')}"


def open_store(
    address: str, durability: str, limits: Limits, reserve: Callable[[int], None] = lambda _count: None
) -> Store:
    """Make the store for an address; its method `open` opens it.

    Args:
        address: one of STORE_FORMS.
        durability: "process" or "disk".
        limits: limits on the records.
        reserve: counts the bytes of a store in this process's memory.

    Raises:
        ArgumentError: the address has none of these forms.
        UnavailableError: the package redis is needed and not installed.
    """
    sync = durability == "disk"
    if address == "memory:":
        return MemoryStore(limits, reserve)
    if path := sqlite_path(address):
        return SqliteStore(Path(path), limits, sync=sync)
    if urlsplit(address).scheme not in ("redis", "rediss", "unix"):
        raise ArgumentError.expected("store", STORE_FORMS, repr(hide_password(address)))
    try:
        # redis is an optional dependency
        from .redis import RedisStore
    except ModuleNotFoundError as error:
        if error.name is None or error.name.partition(".")[0] != "redis":
            raise
        raise UnavailableError(
            f"store: expected the package redis, got none ({error}); "
            "pip install 'revolute-server[redis]' brings it (from a clone: pip install ./client '.[redis]')",
            argument="store",
        ) from error
    return RedisStore(address, hide_password(address), limits, sync=sync)


def sqlite_path(address: str) -> str:
    """Return the path in `sqlite:///relative` or `sqlite:////absolute`; empty for other addresses."""
    head = "sqlite:///"
    return unquote(address[len(head) :]) if address.startswith(head) and len(address) > len(head) else ""

"""`revolute backup` and `revolute restore`: copy a store to a file, and back."""

from __future__ import annotations

import argparse
import asyncio
import sys
from collections import Counter
from collections.abc import Sequence
from pathlib import Path

from revolute.contract.errors import ArgumentError, RevoluteError

from ..settings import STORE_FORMS, hide_password
from .address import default_address, open_store, sqlite_path
from .copies import copy_records
from .interface import Limits


def backup(argv: Sequence[str] | None = None) -> int:
    """Copy a store, which servers may be using, to a new file.

    Returns:
        Exit status: 0, 1 if damaged records are left out, or 2 if the copy failed.
    """
    parser = argparse.ArgumentParser(
        prog="revolute backup", description="Copy a store to a new file; servers may be using it."
    )
    parser.add_argument(
        "file",
        help="file to write, with FILE-blobs beside it for large records; both are a store: --store sqlite:///FILE",
    )
    _add_store(parser)
    arguments = parser.parse_args(argv)
    file = Path(arguments.file).absolute()
    return _run("backup", arguments.store or default_address(), f"sqlite:///{file}", new=file)


def restore(argv: Sequence[str] | None = None) -> int:
    """Copy a backup to an empty store.

    Returns:
        Exit status: 0, 1 if damaged records are left out, or 2 if the copy failed.
    """
    parser = argparse.ArgumentParser(
        prog="revolute restore", description="Copy a backup to an empty store, of any kind."
    )
    parser.add_argument("file", help="file that `revolute backup` wrote")
    _add_store(parser)
    arguments = parser.parse_args(argv)
    file = Path(arguments.file).absolute()
    return _run("restore", f"sqlite:///{file}", arguments.store or default_address(), old=file)


def _add_store(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--store", metavar="ADDRESS", help=f"{STORE_FORMS}; by default that of `revolute serve`"
    )


def _run(command: str, source: str, target: str, *, old: Path | None = None, new: Path | None = None) -> int:
    try:
        if new is not None and new.exists():
            raise ArgumentError.expected("file", "a path where nothing is", str(new))
        if old is not None and not old.is_file():
            raise ArgumentError.expected("file", "a file that `revolute backup` wrote", str(old))
        _check_source(source)
        copied, damaged = asyncio.run(_copy(source, target))
    except RevoluteError as error:
        print(f"revolute {command}: {error}", file=sys.stderr)
        return 2
    counts = ", ".join(f"{count} of kind {kind}" for kind, count in copied.items()) or "nothing"
    print(f"copied {counts} from {hide_password(source)} to {hide_password(target)}")
    if damaged:
        print(f"revolute {command}: {damaged} damaged records are not copied", file=sys.stderr)
    return 1 if damaged else 0


def _check_source(address: str) -> None:
    """Check that an SQLite store is there, which opening would make."""
    path = sqlite_path(address)
    if path and not Path(path).is_file():
        raise ArgumentError.expected("store", "a store that servers have used", hide_password(address))


async def _copy(source: str, target: str) -> tuple[Counter[str], int]:
    for address in (source, target):
        if address == "memory:":
            raise ArgumentError.expected("store", "a store outside of a process", "memory:")
    # a Redis server has its own setting
    durability = "disk" if target.startswith("sqlite:") else "process"
    stores = open_store(source, "process", Limits()), open_store(target, durability, Limits())
    opened = []
    try:
        for store in stores:
            await store.open()
            opened.append(store)
        return await copy_records(*stores)
    finally:
        for store in opened:
            await store.close()

"""Makes the first page of a damaged database anew.

The first page says how the file is laid out and where its tables begin; without it SQLite opens nothing. In
all files of a release that is the same, since the tables are made in one order in an empty file: the page of
a new file does as well. What it does not know, such as which pages are free, a check of the pages finds.
"""

from __future__ import annotations

import sqlite3
import struct
from collections.abc import Callable
from pathlib import Path

_PAGE = 4096
_TREE, _INDEX = (0x05, 0x0D), (0x02, 0x0A)
"""First bytes of pages of a table and of an index."""


def renew(path: Path, make_tables: Callable[[sqlite3.Connection], None]) -> bool:
    """Give a database that no process has open the first page of a new one, if it is one of ours.

    Args:
        path: the database.
        make_tables: makes its tables in an empty file.

    Returns:
        Whether it was one of ours, by its other pages.

    Raises:
        OSError: the file cannot be read or written.
    """
    size = path.stat().st_size
    first, roots = _new(path.with_name(f"{path.name}-repair"), make_tables)
    with path.open("r+b") as file:
        if size < _PAGE * max(roots.values()) or not _is_ours(file.read(_PAGE * max(roots.values())), roots):
            return False
        page = bytearray(first)
        # read and written by WAL, so that a journal that is there counts
        page[18:20] = b"\2\2"
        page[28:32] = struct.pack(">I", size // _PAGE)
        page[32:40] = bytes(8)
        file.seek(0)
        file.write(page)
    return True


def _new(draft: Path, make_tables: Callable[[sqlite3.Connection], None]) -> tuple[bytes, dict[str, int]]:
    """Return the first page of a new database, and the first pages of its tables and indexes by name."""
    draft.unlink(missing_ok=True)
    try:
        connection = sqlite3.connect(draft, isolation_level=None)
        try:
            connection.execute(f"PRAGMA page_size = {_PAGE}")
            connection.execute("PRAGMA auto_vacuum = INCREMENTAL")
            make_tables(connection)
            roots = dict(connection.execute("SELECT name, rootpage FROM sqlite_master WHERE rootpage > 0"))
        finally:
            connection.close()
        with draft.open("rb") as file:
            return file.read(_PAGE), roots
    finally:
        draft.unlink(missing_ok=True)


def _is_ours(pages: bytes, roots: dict[str, int]) -> bool:
    """Tell whether tables and indexes begin where ours do, and the one that numbers records names them."""

    def page(name: str) -> bytes:
        return pages[_PAGE * (roots[name] - 1) : _PAGE * roots[name]]

    indexes = [name for name in roots if name.startswith("sqlite_autoindex") or "_by_" in name]
    kinds = {name: _INDEX if name in indexes else _TREE for name in roots}
    return b"records" in page("sqlite_sequence") and all(page(name)[0] in kinds[name] for name in roots)

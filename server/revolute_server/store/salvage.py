"""Makes an SQLite file whole again when pages of it are damaged.

A row is read by the table, from either end, and what lies between damaged pages by the numbers that the
indexes know. All rows that can be read go into a new file; what only an index knows of any more is kept as a
name without content, so that asking for it is `DATA_LOSS` and not `NOT_FOUND`.
"""

from __future__ import annotations

import dataclasses
import sqlite3
import time
from collections.abc import Callable, Iterator, Sequence
from typing import Any

from .codec import checksum
from .interface import MODEL, TOMBSTONE

_COLUMNS: dict[str, tuple[type, ...]] = {
    "sequence": (int,),
    "kind": (str,),
    "key": (str,),
    "version": (int,),
    "created": (float,),
    "expires": (float, type(None)),
    "size": (int,),
    "parent": (str,),
    "client": (str,),
    "summary": (str,),
    "checksum": (bytes,),
    "file": (str, type(None)),
    "payload": (bytes, type(None)),
}
"""Columns of a row, and what is in them."""

_LOST_SECONDS = 7 * 24 * 3600.0
"""For which the name of a lost record is kept, unless it is a model's."""

Name = tuple[str, str]
Row = tuple[Any, ...]


class Malformed(Exception):  # noqa: N818
    """A page of the file is damaged."""


@dataclasses.dataclass
class Salvage:
    """What was found in a damaged file.

    Attributes:
        kept: number of records that are as they were, or whose damage their checksum tells.
        lost: kind and key of records of which only the name is left.
    """

    kept: int = 0
    lost: list[Name] = dataclasses.field(default_factory=list)


def is_malformed(error: BaseException) -> bool:
    """Tell whether an error of SQLite says that a page is damaged."""
    return isinstance(error, sqlite3.DatabaseError) and "malformed" in str(error)


def is_row(row: Sequence[Any], columns: Sequence[str] = tuple(_COLUMNS)) -> bool:
    """Tell whether the columns of a row hold what they should."""
    return all(isinstance(value, _COLUMNS[name]) for name, value in zip(columns, row, strict=True))


def copy_records(
    damaged: sqlite3.Connection, whole: sqlite3.Connection, read_file: Callable[[str], bytes]
) -> Salvage:
    """Copy all records that can be read.

    Args:
        damaged: the file with damaged pages.
        whole: an empty one with the same tables.
        read_file: returns a payload that lies in a file; raises OSError.
    """
    names = {row[0]: (row[1], row[2]) for row in _walk(damaged, _BY_KEY) if is_row(row, _BY_KEY.columns)}
    numbers = {row[0] for row in _walk(damaged, _BY_AGE) if isinstance(row[0], int)} | set(names)
    found = Salvage()
    seen: set[int] = set()
    for row in _rows(damaged, numbers, seen):
        known = names.get(row[0])
        if known is not None and known != row[1:3] and _belongs(row, known, read_file):
            row = (row[0], *known, *row[3:])
        found.kept += _insert(whole, row)
    for number in sorted(set(names) - seen):
        kind, key = names[number]
        if kind != TOMBSTONE and _insert(whole, _lost(number, kind, key)):
            found.lost.append((kind, key))
    return found


@dataclasses.dataclass(frozen=True)
class _Way:
    """A way to go through all rows: by the table, or by an index alone."""

    columns: tuple[str, ...]
    index: str
    order: tuple[str, ...]

    def query(self, direction: str) -> str:
        order = ", ".join(f"{name} {direction}" for name in self.order)
        return f"SELECT {', '.join(self.columns)} FROM records {self.index} ORDER BY {order}"


_BY_TABLE = _Way(tuple(_COLUMNS), "NOT INDEXED", ("sequence",))
_BY_KEY = _Way(("sequence", "kind", "key"), "INDEXED BY sqlite_autoindex_records_1", ("kind", "key"))
_BY_AGE = _Way(("sequence", "kind"), "INDEXED BY records_by_age", ("kind", "sequence"))


def _walk(connection: sqlite3.Connection, way: _Way) -> Iterator[Row]:
    """Yield the rows of a way from its beginning and, if it breaks off, from its end."""
    for direction in ("ASC", "DESC"):
        try:
            yield from connection.execute(way.query(direction))
        except sqlite3.DatabaseError:
            continue
        return


def _rows(connection: sqlite3.Connection, numbers: set[int], seen: set[int]) -> Iterator[Row]:
    """Yield each row that can be read once, and note its number in `seen`."""
    for row in _walk(connection, _BY_TABLE):
        if row[0] not in seen and is_row(row):
            seen.add(row[0])
            yield row
    query = f"SELECT {', '.join(_COLUMNS)} FROM records NOT INDEXED WHERE sequence = ?"
    for number in sorted(numbers - seen):
        try:
            row = connection.execute(query, (number,)).fetchone()
        except sqlite3.DatabaseError:
            continue
        if row is not None and is_row(row):
            seen.add(number)
            yield row


def _belongs(row: Row, name: Name, read_file: Callable[[str], bytes]) -> bool:
    """Tell whether a row's payload is that of another name than the row says."""
    *_, digest, file, payload = row
    try:
        content = payload if file is None else read_file(file)
    except OSError:
        return False
    return content is not None and checksum(*name, (content,)) == digest


def _lost(number: int, kind: str, key: str) -> Row:
    """Return the row of a record whose content is lost: no payload has this checksum."""
    now = time.time()
    expires = None if kind == MODEL else now + _LOST_SECONDS
    return (number, kind, key, 1, now, expires, 0, "", "", "{}", b"", None, None)


def _insert(connection: sqlite3.Connection, row: Row) -> bool:
    """Insert a row unless there is one of its name; tell whether it was."""
    marks = ", ".join("?" * len(row))
    query = f"INSERT OR IGNORE INTO records ({', '.join(_COLUMNS)}) VALUES ({marks})"
    return connection.execute(query, row).rowcount == 1

"""The tables of an SQLite file, and the writes of a transaction on their rows.

The table `usage` has the number and bytes of records by kind and client, so that checking a limit does not
count rows. Triggers update it.
"""

from __future__ import annotations

import contextlib
import json
import sqlite3
import time
from collections.abc import Iterator, Sequence
from typing import Any

from .interface import (
    LONGEST_SUMMARY,
    MODEL,
    Conflict,
    Delete,
    Entry,
    Limits,
    Put,
    Touch,
    Write,
    add_to_usage,
    joined,
    read_summary,
)

SCHEMA = 1
"""Number of the file format; a newer release may use a larger one."""

_TABLES = """
CREATE TABLE records (
  sequence INTEGER PRIMARY KEY AUTOINCREMENT,
  kind TEXT NOT NULL,
  key TEXT NOT NULL,
  version INTEGER NOT NULL,
  created REAL NOT NULL,
  expires REAL,
  size INTEGER NOT NULL,
  parent TEXT NOT NULL,
  client TEXT NOT NULL,
  summary TEXT NOT NULL,
  checksum BLOB NOT NULL,
  file TEXT,
  payload BLOB,
  UNIQUE (kind, key)
);
CREATE INDEX records_by_expiry ON records (expires) WHERE expires IS NOT NULL;
CREATE INDEX records_by_parent ON records (parent) WHERE parent != '';
CREATE INDEX records_by_age ON records (kind, sequence);
CREATE INDEX records_by_file ON records (file) WHERE file IS NOT NULL;
CREATE TABLE usage (
  kind TEXT NOT NULL,
  client TEXT NOT NULL,
  count INTEGER NOT NULL,
  bytes INTEGER NOT NULL,
  PRIMARY KEY (kind, client)
);
CREATE TRIGGER count_new AFTER INSERT ON records BEGIN
  INSERT INTO usage VALUES (new.kind, new.client, 1, new.size)
    ON CONFLICT (kind, client) DO UPDATE SET count = count + 1, bytes = bytes + new.size;
END;
CREATE TRIGGER count_gone AFTER DELETE ON records BEGIN
  UPDATE usage SET count = count - 1, bytes = bytes - old.size WHERE kind = old.kind AND client = old.client;
  DELETE FROM usage WHERE kind = old.kind AND client = old.client AND count = 0;
END;
CREATE TRIGGER count_changed AFTER UPDATE OF size ON records BEGIN
  UPDATE usage SET bytes = bytes + new.size - old.size WHERE kind = new.kind AND client = new.client;
END;
"""

_COLUMNS: dict[str, tuple[type, ...]] = {
    "kind": (str,),
    "key": (str,),
    "version": (int,),
    "sequence": (int,),
    "created": (float,),
    "expires": (float, type(None)),
    "size": (int,),
    "summary": (str,),
    "parent": (str,),
    "client": (str,),
    "checksum": (bytes,),
    "file": (str, type(None)),
    "payload": (bytes, type(None)),
}
"""Types of the values in the columns that are read."""

_ENTRY = ("kind", "key", "version", "sequence", "created", "expires", "size", "summary", "parent", "client")
ENTRY_COLUMNS = ", ".join(
    # do not read a summary that is too long
    f"CASE WHEN length(summary) > {LONGEST_SUMMARY} THEN '' ELSE summary END" if name == "summary" else name
    for name in _ENTRY
)


@contextlib.contextmanager
def transaction(connection: sqlite3.Connection) -> Iterator[None]:
    """Run the block in a write transaction; roll back if it fails."""
    connection.execute("BEGIN IMMEDIATE")
    try:
        yield
        connection.execute("COMMIT")
    except BaseException:
        # a full disk rolls back by itself
        if connection.in_transaction:
            connection.execute("ROLLBACK")
        raise


def make_tables(connection: sqlite3.Connection) -> None:
    """Create the tables in an empty file."""
    for statement in _statements(_TABLES):
        connection.execute(statement)
    connection.execute(f"PRAGMA user_version = {SCHEMA}")


def _statements(script: str) -> Iterator[str]:
    """Split a script into statements; `executescript` would commit the transaction."""
    statement = ""
    for line in script.splitlines(keepends=True):
        statement += line
        if sqlite3.complete_statement(statement):
            yield statement
            statement = ""


def integrity(connection: sqlite3.Connection) -> str:
    """Return "ok", or the first fault in pages or indexes."""
    found: str = connection.execute("PRAGMA integrity_check(1)").fetchone()[0]
    return found.removeprefix("*** in database main ***").strip()


def is_row(row: Sequence[Any], columns: Sequence[str]) -> bool:
    """Tell whether the columns of a row hold values of the right types."""
    return all(isinstance(value, _COLUMNS[name]) for name, value in zip(columns, row, strict=True))


def entry_of(row: Any) -> Entry | None:
    """Return the entry of a row of ENTRY_COLUMNS; None if a value has a wrong type."""
    if not is_row(row, _ENTRY):
        return None
    fields = dict(zip(_ENTRY, row, strict=True))
    return Entry(**{**fields, "summary": read_summary(fields["summary"])})


def usage_of(connection: sqlite3.Connection) -> dict[tuple[str, str], tuple[int, int]]:
    """Return number and bytes of records by kind and client."""
    rows = connection.execute("SELECT kind, client, count, bytes FROM usage")
    return {(kind, client): (count, size) for kind, client, count, size in rows}


def has_file(connection: sqlite3.Connection, name: str) -> bool:
    """Tell whether a row refers to a payload file."""
    return _exists(connection, "file = ?", name)


def _exists(connection: sqlite3.Connection, condition: str, value: str) -> bool:
    found = connection.execute(f"SELECT 1 FROM records WHERE {condition} LIMIT 1", (value,))
    return found.fetchone() is not None


class Rows:
    """Writes of one transaction on the table `records`.

    Args:
        connection: connection with the open transaction.
        limits: limits on the records.

    Attributes:
        usage: number and bytes of records by kind and client, including the changes of the transaction.
    """

    def __init__(self, connection: sqlite3.Connection, limits: Limits) -> None:
        self._connection = connection
        self._limits = limits
        self.usage = usage_of(connection)

    def apply(self, write: Write, digest: bytes, file: str | None) -> list[str]:
        """Carry out one write.

        Args:
            write: the write.
            digest: checksum of its payload.
            file: name of its payload file; None if the payload goes into the row.

        Returns:
            The name of the payload file that is no longer used, if there is one.

        Raises:
            Conflict: the row is not in the state that the write expects.
            LimitError: a limit would be exceeded.
        """
        name = write.kind, write.key
        row = self._connection.execute(
            "SELECT version, expires, size, file, client FROM records WHERE kind = ? AND key = ?", name
        ).fetchone()
        if isinstance(write, Put):
            return self._put(write, row, digest, file)
        if row is None:
            raise Conflict(*name)
        if isinstance(write, Touch):
            query = "UPDATE records SET expires = ? WHERE kind = ? AND key = ?"
            self._connection.execute(query, (write.expires, *name))
            return []
        return self._delete(write, row)

    def undo(self, savepoint: str) -> None:
        """Roll back to a savepoint."""
        self._connection.execute(f"ROLLBACK TO {savepoint}")
        self.usage = usage_of(self._connection)

    def _delete(self, write: Delete, row: Any) -> list[str]:
        name = write.kind, write.key
        _, expires, size, old_file, client = row
        if write.expired_at is not None and not (expires is not None and expires <= write.expired_at):
            raise Conflict(*name)
        if write.kind == MODEL and self._exists("parent = ? AND parent != ''", write.key):
            raise Conflict(*name, referenced=True)
        self._connection.execute("DELETE FROM records WHERE kind = ? AND key = ?", name)
        add_to_usage(self.usage, write.kind, client, -1, -size)
        return [old_file] if old_file else []

    def _put(self, write: Put, row: Any, digest: bytes, file: str | None) -> list[str]:
        name = write.kind, write.key
        version, _, old_size, old_file, client = row or (0, None, 0, None, write.client)
        if write.expect is not None and write.expect != version:
            raise Conflict(*name)
        if row is None and write.parent and not self._exists("kind = 'model' AND key = ?", write.parent):
            raise Conflict(MODEL, write.parent)
        size = write.size
        self._limits.check(self.usage, write.kind, client, int(row is None), size - old_size)
        content = {
            "version": version + 1,
            "expires": write.expires,
            "size": size,
            "summary": json.dumps(dict(write.summary)),
            "checksum": digest,
            "file": file,
            "payload": None if file else joined(write.payload),
        }
        if row is None:
            self._insert(write, client, content)
        else:
            changes = ", ".join(f"{name} = ?" for name in content)
            query = f"UPDATE records SET {changes} WHERE kind = ? AND key = ?"
            self._connection.execute(query, [*content.values(), *name])
        add_to_usage(self.usage, write.kind, client, int(row is None), size - old_size)
        return [old_file] if old_file else []

    def _insert(self, write: Put, client: str, content: dict[str, Any]) -> None:
        new = {
            "kind": write.kind,
            "key": write.key,
            "created": time.time(),
            "parent": write.parent,
            "client": client,
            **content,
        }
        marks = ", ".join("?" * len(new))
        query = f"INSERT INTO records ({', '.join(new)}) VALUES ({marks})"
        self._connection.execute(query, list(new.values()))

    def _exists(self, condition: str, value: str) -> bool:
        return _exists(self._connection, condition, value)

"""Translates errors of SQLite and of the file system."""

from __future__ import annotations

import contextlib
import errno
import os
import sqlite3
from collections.abc import Iterator
from pathlib import Path

from revolute.contract.errors import ArgumentError, DataLossError

from .interface import disk_full, unwritable
from .sqlite_tables import SCHEMA


@contextlib.contextmanager
def reading() -> Iterator[None]:
    """Translate errors that occur while the block reads a record."""
    try:
        yield
    except sqlite3.Error as error:
        raise sql_fault(error) from error
    except OSError as error:
        raise os_fault(error) from error


def sql_fault(error: Exception) -> Exception:
    """Return the error to report for an error of SQLite."""
    if isinstance(error, OSError):
        return os_fault(error)
    if _is_malformed(error):
        return DataLossError(
            f"store: expected a database that SQLite can read, got {error}; "
            f"stop the server and recover the file: {_recovery('store.db')}",
            argument="store",
        )
    return disk_full(str(error)) if "full" in str(error) else unwritable(str(error))


def os_fault(error: OSError) -> Exception:
    """Return the error to report for an error of the file system."""
    full = error.errno in (errno.ENOSPC, errno.EDQUOT, errno.EFBIG)
    cause = error.strerror or type(error).__name__
    return disk_full(cause.lower()) if full else unwritable(cause.lower())


def wrong_schema(path: Path, found: int) -> ArgumentError:
    """Return the error for a file whose format is not SCHEMA."""
    if found > SCHEMA:
        return ArgumentError.expected(
            "store",
            f"a file of format {SCHEMA} or older",
            f"format {found} at {path}",
            advice="a newer release wrote it: start that one, or choose another file with --store",
        )
    return ArgumentError.expected(
        "store", "a file of this server", f"another SQLite database at {path}", advice="choose another file"
    )


def unusable(path: Path, error: Exception) -> ArgumentError:
    """Return the error for a file that cannot be opened."""
    cause, advice = str(error), "choose another file with --store"
    if isinstance(error, OSError):
        cause = (error.strerror or cause).lower()
        path = Path(error.filename) if isinstance(error.filename, str) else path
    if _is_malformed(error):
        advice = f"recover it ({_recovery(path)}), move it away to begin with an empty store, or {advice}"
    elif isinstance(error, PermissionError) or any(
        word in cause for word in ("readonly", "read-only", "unable")
    ):
        advice = f"let the server's user (uid {os.geteuid()}) write it and its folder, or {advice}"
    return ArgumentError.expected(
        "store", "an SQLite file of this server that can be written", f"{cause} at {path}", advice=advice
    )


def _is_malformed(error: Exception) -> bool:
    """Tell whether SQLite reports a damaged file."""
    return isinstance(error, sqlite3.DatabaseError) and any(
        words in str(error) for words in ("malformed", "not a database")
    )


def _recovery(path: Path | str) -> str:
    """Return the commands that recover a file with SQLite."""
    return f"sqlite3 {path} '.recover --ignore-freelist' | sqlite3 recovered.db"

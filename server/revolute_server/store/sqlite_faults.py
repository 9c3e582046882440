"""What goes wrong with an SQLite file, as errors of ours."""

from __future__ import annotations

import contextlib
import errno
import os
import sqlite3
from collections.abc import Iterator
from pathlib import Path

from revolute.errors import ArgumentError

from .interface import disk_full, unwritable
from .salvage import Malformed, is_malformed
from .sqlite_tables import SCHEMA


@contextlib.contextmanager
def reading() -> Iterator[None]:
    """Turn what goes wrong while a record is read into an error of ours.

    Raises:
        Malformed: a page is damaged.
        RevoluteError: anything else.
    """
    try:
        yield
    except sqlite3.Error as error:
        if is_malformed(error):
            raise Malformed(str(error)) from error
        raise sql_fault(error) from error
    except OSError as error:
        raise os_fault(error) from error


def sql_fault(error: Exception) -> Exception:
    """Return the error for what went wrong while SQLite wrote or read."""
    if isinstance(error, OSError):
        return os_fault(error)
    return disk_full(str(error)) if "full" in str(error) else unwritable(str(error))


def os_fault(error: OSError) -> Exception:
    """Return the error for what went wrong with a file."""
    full = error.errno in (errno.ENOSPC, errno.EDQUOT, errno.EFBIG)
    cause = error.strerror or type(error).__name__
    return disk_full(cause.lower()) if full else unwritable(cause.lower())


def wrong_schema(path: Path, found: int) -> ArgumentError:
    """Return the error for a file whose format is another than SCHEMA."""
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
    if isinstance(error, sqlite3.DatabaseError) and is_first_page(error):
        advice = f"put a copy of it in its place, or move it away to begin with an empty store, or {advice}"
    elif isinstance(error, PermissionError) or any(
        word in cause for word in ("readonly", "read-only", "unable")
    ):
        advice = f"let the server's user (uid {os.geteuid()}) write it and its folder, or {advice}"
    return ArgumentError.expected(
        "store", "an SQLite file of this server that can be written", f"{cause} at {path}", advice=advice
    )


def is_first_page(error: sqlite3.DatabaseError) -> bool:
    """Tell whether an error, met where the tables are looked up, may come from a damaged first page."""
    return is_malformed(error) or "not a database" in str(error)

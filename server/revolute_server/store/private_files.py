"""Permissions of a store's files: only the server's user may read them. Other users need tokens."""

from __future__ import annotations

import contextlib
import logging
import os
import stat
from pathlib import Path

_log = logging.getLogger("revolute.server")

_COMPANIONS = ("", "-wal", "-shm", "-reserve", "-blobs", "-spares")
"""Suffixes of the database and of the files and folders beside it."""


def make_private(path: Path) -> None:
    """Create an empty file that only this user may read and write, unless it exists."""
    with contextlib.suppress(FileExistsError):
        os.close(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600))


def take_from_others(database: Path) -> None:
    """Remove the permissions of other users on a database and on the files beside it.

    No file is opened, because closing it would release SQLite's locks on it in this process.
    """
    for suffix in _COMPANIONS:
        path = database.with_name(f"{database.name}{suffix}")
        try:
            mode = stat.S_IMODE(path.stat().st_mode)
            if mode & 0o077:
                path.chmod(mode & 0o700)
        except FileNotFoundError:
            continue
        except PermissionError:
            _log.warning("store: other users may read %s, which belongs to another user", path)

"""Files of a store are for the server's user alone: other users of the machine need tokens as callers do."""

from __future__ import annotations

import contextlib
import logging
import os
import stat
from pathlib import Path

_log = logging.getLogger("revolute.server")

_COMPANIONS = ("", "-wal", "-shm", "-reserve", "-blobs", "-spares")
"""What the names of a database and of the files and folders beside it end with."""


def make_private(path: Path) -> None:
    """Make an empty file that only this user may read and write, unless there is a file."""
    with contextlib.suppress(FileExistsError):
        os.close(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600))


def take_from_others(database: Path) -> None:
    """Take the rights of other users away from a database and from what lies beside it.

    No file is opened: closing one would release the locks that SQLite holds on it in this process.
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

"""Checks that a database file was not moved or replaced; writes to a file without a name would be lost."""

from __future__ import annotations

import os
from pathlib import Path

from revolute.contract.errors import UnavailableError


class FileIdentity:
    """Device and inode numbers of a database and its journal, taken when the database is opened.

    Args:
        path: path of the database.
    """

    def __init__(self, path: Path) -> None:
        self._paths = tuple(str(path) + suffix for suffix in ("", "-wal"))
        self._files = tuple(map(_identity, self._paths))

    def check(self) -> None:
        """Check that both paths still name the same files.

        Raises:
            UnavailableError: a path names another file or none.
        """
        for path, file in zip(self._paths, self._files, strict=True):
            if _identity(path) != file:
                raise UnavailableError(
                    "store: expected the file that the server opened, got another or none in its place; "
                    "nothing was changed; put it back, or start the server again",
                    argument="store",
                )


def _identity(path: str) -> tuple[int, int] | None:
    try:
        found = os.stat(path)
    except OSError:
        return None
    return found.st_dev, found.st_ino

"""Whether a database is still where it was opened: what is written to a file without a name is lost."""

from __future__ import annotations

import os
from pathlib import Path

from revolute.contract.errors import UnavailableError


class FileIdentity:
    """The database and its journal, as they were when the database was opened.

    Args:
        path: the database.
    """

    def __init__(self, path: Path) -> None:
        self._paths = tuple(str(path) + suffix for suffix in ("", "-wal"))
        self._files = tuple(map(_identity, self._paths))

    def check(self) -> None:
        """Refuse to write where nobody will find it again.

        Raises:
            UnavailableError: another file or none has the name now.
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

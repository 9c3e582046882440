"""Room on the disk that is kept for deleting: without it a disk that is full to the last byte stays full.

Deleting writes to the journal before anything is free. The reserve is a file of nothing, removed when a
transaction that deletes finds no room, and made again when there is plenty.
"""

from __future__ import annotations

import contextlib
import shutil
import time
from pathlib import Path

from .private_files import make_private

_BYTES = 1024**2
_PLENTY = 3 * _BYTES
_AGAIN_SECONDS = 1.0


class DiskReserve:
    """A file that takes room.

    Args:
        path: where; in the folder of what is to be deleted.
    """

    def __init__(self, path: Path) -> None:
        self._path = path
        self._there = False
        self._tried = float("-inf")

    def make(self) -> None:
        """Make the file if it is not there and the disk has plenty of room; asks the disk now and then."""
        now = time.monotonic()
        if self._there or now - self._tried < _AGAIN_SECONDS:
            return
        self._tried = now
        with contextlib.suppress(OSError):
            if self._path.exists() and self._path.stat().st_size == _BYTES:
                self._there = True
            elif shutil.disk_usage(self._path.parent).free >= _PLENTY:
                make_private(self._path)
                self._path.write_bytes(bytes(_BYTES))
                self._there = True

    def give(self) -> bool:
        """Remove the file, and tell whether that made room."""
        self._there = False
        self._tried = time.monotonic()
        try:
            self._path.unlink()
        except OSError:
            return False
        return True

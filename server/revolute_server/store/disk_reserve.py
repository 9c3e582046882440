"""A reserve of disk space, so that records can be deleted when the disk is full.

Deleting writes to the journal before it frees space. The reserve is a file of zeros: it is removed when a
deleting transaction finds no space, and created again when the disk has plenty.
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
    """The reserve file.

    Args:
        path: its path, on the disk of the database.
    """

    def __init__(self, path: Path) -> None:
        self._path = path
        self._exists = False
        self._tried = float("-inf")

    def make(self) -> None:
        """Create the file if it is missing and the disk has plenty of space; tries at most once a second."""
        now = time.monotonic()
        if self._exists or now - self._tried < _AGAIN_SECONDS:
            return
        self._tried = now
        with contextlib.suppress(OSError):
            if self._path.exists() and self._path.stat().st_size == _BYTES:
                self._exists = True
            elif shutil.disk_usage(self._path.parent).free >= _PLENTY:
                make_private(self._path)
                self._path.write_bytes(bytes(_BYTES))
                self._exists = True

    def release(self) -> bool:
        """Remove the file; return whether that freed space."""
        self._exists = False
        self._tried = time.monotonic()
        try:
            self._path.unlink()
        except OSError:
            return False
        return True

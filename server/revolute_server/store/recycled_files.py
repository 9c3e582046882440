"""Spare files: the files of deleted payloads, reused for new ones.

Overwriting a file is several times faster than creating one, because its pages are in memory and its blocks
are allocated; removing the old file takes as long again. Spare files lie in their own folder. A reused file
gets a new name, so that a name never stands for two contents.
"""

from __future__ import annotations

import contextlib
import os
import secrets
import threading
import time
from pathlib import Path

_MOST_BYTES = 256 * 1024**2
_MOST_FILES = 64
_ALIKE = 2
"""Largest ratio between the sizes of a spare file and of a new payload."""

_OLD_SECONDS = 3600.0


class RecycledFiles:
    """The spare files of one process. Threads may share it.

    Args:
        folder: their folder, on the file system of the payloads; created when it is needed.
    """

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._lock = threading.Lock()
        self._files: list[tuple[int, Path]] = []
        self._bytes = 0

    def put(self, path: Path) -> bool:
        """Turn the file of a deleted payload into a spare file; return whether that worked."""
        try:
            found = path.stat()
            with self._lock:
                full = len(self._files) >= _MOST_FILES or self._bytes + found.st_size > _MOST_BYTES
                if full or found.st_nlink > 1 or not found.st_size:
                    return False
                spare = self._folder / secrets.token_hex(16)
                self._move(path, spare)
                self._files.append((found.st_size, spare))
                self._bytes += found.st_size
        except OSError:
            return False
        return True

    def take(self, size: int, path: Path) -> bool:
        """Rename a spare file of similar size to `path`; return whether there was one."""
        with self._lock:
            fitting = [
                index
                for index, (has, _) in enumerate(self._files)
                if size <= _ALIKE * has and has <= _ALIKE * size
            ]
            if not fitting:
                return False
            index = min(fitting, key=lambda index: abs(self._files[index][0] - size))
            has, spare = self._files.pop(index)
            self._bytes -= has
        try:
            # a new time stamp, so that a process that starts now does not remove it as an orphan
            os.utime(spare)
            spare.rename(path)
        except OSError:
            return False
        return True

    def remove_all(self) -> bool:
        """Remove all spare files; return whether there were any."""
        with self._lock:
            files, self._files, self._bytes = self._files, [], 0
        for _, path in files:
            with contextlib.suppress(OSError):
                path.unlink()
        return bool(files)

    def remove_old(self) -> None:
        """Remove spare files of processes that were killed."""
        oldest = time.time() - _OLD_SECONDS
        with contextlib.suppress(FileNotFoundError):
            for entry in os.scandir(self._folder):
                if entry.stat().st_mtime < oldest:
                    with contextlib.suppress(FileNotFoundError):
                        os.unlink(entry.path)

    def close(self) -> None:
        """Remove all spare files, and the folder unless another process uses it."""
        self.remove_all()
        with contextlib.suppress(OSError):
            self._folder.rmdir()

    def _move(self, path: Path, spare: Path) -> None:
        try:
            path.rename(spare)
        except FileNotFoundError:
            self._folder.mkdir(mode=0o700, exist_ok=True)
            path.rename(spare)

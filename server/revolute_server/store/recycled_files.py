"""Files of payloads that are gone, to be written over by new ones.

A new file costs several times what writing over an old one does, whose pages the system has in memory and
whose blocks are found, and removing the old one costs as much again. A spare file lies in a folder of its own
and gets a new name with its new content, so that no name ever stands for two contents.
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
"""Largest ratio of the sizes of a spare file and of what it is used for."""

_OLD_SECONDS = 3600.0


class RecycledFiles:
    """The spare files of one process. Threads may share it.

    Args:
        folder: where they lie, on the file system of the payloads; made when it is needed.
    """

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._lock = threading.Lock()
        self._files: list[tuple[int, Path]] = []
        self._bytes = 0

    def put(self, path: Path) -> bool:
        """Make a file that nothing refers to any more a spare one; return whether it is one now."""
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
        """Move a spare file to a name of a payload of about its size; return whether there was one."""
        with self._lock:
            fitting = [
                place
                for place, (has, _) in enumerate(self._files)
                if size <= _ALIKE * has and has <= _ALIKE * size
            ]
            if not fitting:
                return False
            place = min(fitting, key=lambda place: abs(self._files[place][0] - size))
            has, spare = self._files.pop(place)
            self._bytes -= has
        try:
            # another process that starts just now takes it for none that a crash left
            os.utime(spare)
            spare.rename(path)
        except OSError:
            return False
        return True

    def give_up(self) -> bool:
        """Remove all spare files; return whether there were any."""
        with self._lock:
            files, self._files, self._bytes = self._files, [], 0
        for _, path in files:
            with contextlib.suppress(OSError):
                path.unlink()
        return bool(files)

    def remove_old(self) -> None:
        """Remove what processes that were killed have left."""
        oldest = time.time() - _OLD_SECONDS
        with contextlib.suppress(FileNotFoundError):
            for entry in os.scandir(self._folder):
                if entry.stat().st_mtime < oldest:
                    with contextlib.suppress(FileNotFoundError):
                        os.unlink(entry.path)

    def close(self) -> None:
        """Remove all spare files, and the folder unless another process uses it."""
        self.give_up()
        with contextlib.suppress(OSError):
            self._folder.rmdir()

    def _move(self, path: Path, spare: Path) -> None:
        try:
            path.rename(spare)
        except FileNotFoundError:
            self._folder.mkdir(mode=0o700, exist_ok=True)
            path.rename(spare)

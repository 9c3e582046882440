"""Large payloads as files beside the SQLite file: one per record, under a name whose content never changes.

A file is written before the row that names it is committed. When the row is gone, the file is removed or kept
to be written over under another name (`recycled_files`). A file that no row names was left by a crash; it is
removed when it is an hour old.
"""

from __future__ import annotations

import errno
import os
import secrets
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from .recycled_files import RecycledFiles

_ORPHAN_SECONDS = 3600.0
_MOST_BUFFERS = 512  # of one writev; the system's limit is 1024


class Blobs:
    """A folder of payloads.

    Args:
        folder: made by `open` when it is not there; beside it one for spare files.
        sync: whether a payload is on the disk, not only with the system, when `write` returns.
    """

    def __init__(self, folder: Path, *, sync: bool) -> None:
        self._folder = folder
        self._sync = sync
        self._spares = RecycledFiles(folder.with_name(f"{folder.name.removesuffix('-blobs')}-spares"))

    def open(self) -> None:
        """Make the folder ready.

        Raises:
            OSError: it cannot be made, or not be written.
        """
        self._folder.mkdir(parents=True, exist_ok=True, mode=0o700)
        if not os.access(self._folder, os.W_OK | os.X_OK):
            raise PermissionError(errno.EACCES, os.strerror(errno.EACCES), str(self._folder))

    def close(self) -> None:
        """Remove the spare files."""
        self._spares.close()

    def write(self, payload: Sequence[Any]) -> str:
        """Write a payload and return the name of its file.

        Raises:
            OSError: the disk is full or does not take it; nothing is left behind.
        """
        try:
            return self._write(payload)
        except OSError as error:
            if error.errno not in (errno.ENOSPC, errno.EDQUOT) or not self.make_room():
                raise
        return self._write(payload)

    def make_room(self) -> bool:
        """Give disk space back that is held for speed; return whether there was any."""
        return self._spares.give_up()

    def _write(self, payload: Sequence[Any]) -> str:
        name = secrets.token_hex(16)
        path = self._folder / name
        size = sum(memoryview(part).nbytes for part in payload)
        used = self._spares.take(size, path)
        descriptor = os.open(path, os.O_WRONLY | os.O_CLOEXEC) if used else self._create(path)
        try:
            try:
                if used:
                    os.ftruncate(descriptor, size)
                _write_all(descriptor, payload)
                if self._sync:
                    os.fsync(descriptor)
            finally:
                os.close(descriptor)
        except BaseException:
            path.unlink(missing_ok=True)
            raise
        return name

    def _create(self, path: Path) -> int:
        """Open a new file."""
        flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC
        try:
            return os.open(path, flags, 0o600)
        except FileNotFoundError:
            # somebody has removed the folder; what was in it is lost, but not what comes
            self._folder.mkdir(mode=0o700)
            return os.open(path, flags, 0o600)

    def write_again(self, name: str, payload: Sequence[Any]) -> str:
        """Give a payload that was just written a second file, by a link where the file system has them.

        Args:
            name: of its first file.
            payload: its content.

        Raises:
            OSError: as for `write`.
        """
        second = secrets.token_hex(16)
        try:
            os.link(self._folder / name, self._folder / second)
        except OSError:
            return self.write(payload)
        return second

    def sync_names(self) -> None:
        """Put the names of new files on the disk."""
        if self._sync:
            descriptor = os.open(self._folder, os.O_RDONLY)
            try:
                os.fsync(descriptor)
            finally:
                os.close(descriptor)

    def read(self, name: str) -> bytes:
        """Read a payload.

        Raises:
            FileNotFoundError: there is no such file.
        """
        return (self._folder / name).read_bytes()

    def remove(self, name: str) -> None:
        """Remove a payload."""
        path = self._folder / name
        if not self._spares.put(path):
            path.unlink(missing_ok=True)

    def remove_orphans(self, is_known: Callable[[str], bool]) -> None:
        """Remove old files that no row names."""
        self._spares.remove_old()
        oldest = time.time() - _ORPHAN_SECONDS
        for entry in os.scandir(self._folder):
            if entry.stat().st_mtime < oldest and not is_known(entry.name):
                os.unlink(entry.path)


def _write_all(descriptor: int, payload: Sequence[Any]) -> None:
    """Write all buffers, however little of them the system takes at a time."""
    pending = [view for part in payload if (view := memoryview(part).cast("B")).nbytes]
    while pending:
        written = os.writev(descriptor, pending[:_MOST_BUFFERS])
        while pending and written >= pending[0].nbytes:
            written -= pending.pop(0).nbytes
        if written:
            pending[0] = pending[0][written:]

"""Large payloads as files beside the SQLite file: one file per record; the content of a file never changes.

A file is written before the row that refers to it is committed. After the row is deleted, the file is removed
or reused under another name (`recycled_files`). A file without a row was left by a crash; it is removed when
it is an hour old.
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
        folder: folder of the files, created by `open`; spare files lie in another folder beside it.
        sync: whether `write` waits until the payload is on the disk.
    """

    def __init__(self, folder: Path, *, sync: bool) -> None:
        self._folder = folder
        self._sync = sync
        self._spares = RecycledFiles(folder.with_name(f"{folder.name.removesuffix('-blobs')}-spares"))

    def open(self) -> None:
        """Create the folder.

        Raises:
            OSError: it cannot be created or written.
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
            OSError: the disk is full or the write failed; no file is left behind.
        """
        try:
            return self._write(payload)
        except OSError as error:
            if error.errno not in (errno.ENOSPC, errno.EDQUOT) or not self.make_room():
                raise
        return self._write(payload)

    def make_room(self) -> bool:
        """Remove the spare files; return whether there were any."""
        return self._spares.remove_all()

    def _write(self, payload: Sequence[Any]) -> str:
        name = secrets.token_hex(16)
        path = self._folder / name
        size = sum(memoryview(part).nbytes for part in payload)
        recycled = self._spares.take(size, path)
        descriptor = os.open(path, os.O_WRONLY | os.O_CLOEXEC) if recycled else self._create(path)
        try:
            try:
                if recycled:
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
            # the folder was removed; create it again for new payloads
            self._folder.mkdir(mode=0o700)
            return os.open(path, flags, 0o600)

    def write_again(self, name: str, payload: Sequence[Any]) -> str:
        """Make a second file with the same payload, by a hard link if the file system has them.

        Args:
            name: name of the first file.
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
        """Write the names of new files to the disk."""
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
        """Remove the file of a payload, or keep it as a spare file."""
        path = self._folder / name
        if not self._spares.put(path):
            path.unlink(missing_ok=True)

    def remove_orphans(self, is_known: Callable[[str], bool]) -> None:
        """Remove old files to which no row refers."""
        self._spares.remove_old()
        oldest = time.time() - _ORPHAN_SECONDS
        for entry in os.scandir(self._folder):
            if entry.stat().st_mtime < oldest and not is_known(entry.name):
                os.unlink(entry.path)


def _write_all(descriptor: int, payload: Sequence[Any]) -> None:
    """Write all buffers, in several system calls if needed."""
    pending = [view for part in payload if (view := memoryview(part).cast("B")).nbytes]
    while pending:
        written = os.writev(descriptor, pending[:_MOST_BUFFERS])
        while pending and written >= pending[0].nbytes:
            written -= pending.pop(0).nbytes
        if written:
            pending[0] = pending[0][written:]

"""`sqlite:///path`: records in an SQLite file in WAL mode, the default store.

One thread writes. It carries out each waiting transaction in a savepoint and commits all together, so that
with `durability=disk` one fsync serves many calls (group commit). Single rows are read on the event loop,
which is faster than a change of threads; larger reads run on threads. Large payloads lie in files beside the
database (`blobs`), which these threads write, too. Several servers on one machine may share a file; SQLite's
locks separate their transactions.

A damaged payload costs one record. At the start SQLite checks its file; a malformed file is refused, and
SQLite itself must repair it (`sqlite3 FILE .recover`).

Durability: with `process`, acknowledged records survive any end of the process, because the operating system
has them. With `disk` they also survive a crash of the machine, because the WAL (synchronous=FULL) and the
payloads are synced before a call is answered.
"""

from __future__ import annotations

import asyncio
import contextlib
import dataclasses
import errno
import logging
import os
import queue
import sqlite3
import threading
from collections.abc import Callable, Sequence
from concurrent.futures import Future
from pathlib import Path
from typing import Any, TypeVar

from revolute.contract.errors import RevoluteError, UnavailableError

from ..started_threads import start, started_executor
from .blobs import Blobs
from .codec import checksum
from .disk_reserve import DiskReserve
from .file_identity import FileIdentity
from .interface import (
    MODEL,
    Conflict,
    Delete,
    Entry,
    Limits,
    Put,
    Record,
    Store,
    Write,
    damaged,
)
from .private_files import make_private, take_from_others
from .sqlite_faults import os_fault, reading, sql_fault, unusable, wrong_schema
from .sqlite_tables import (
    ENTRY_COLUMNS,
    SCHEMA,
    Rows,
    entry_of,
    has_file,
    integrity,
    is_row,
    make_tables,
    transaction,
    usage_of,
)

_log = logging.getLogger("revolute.server")

Result = TypeVar("Result")

_INLINE_BYTES = 16 * 1024
"""Largest payload in the database; larger ones are faster as files."""

_WRITER_BYTES = 4 * 1024**2
"""Transactions of up to this many bytes: the idle writer thread writes their payload files itself."""

_BUSY_SECONDS = 30.0
_READERS = 4
_FEW = 32
"""Largest number of rows that are read on the event loop; longer listings are read on a thread."""

_MOST_TOGETHER = 256
"""Largest number of transactions that are committed together."""


@dataclasses.dataclass
class _Job:
    """A transaction that waits for the writer.

    Attributes:
        writes: its writes.
        done: set when the transaction is durable or has failed.
        files: names of payload files, by index in `writes`.
        checksums: checksums of new payloads, by index in `writes`.
    """

    writes: tuple[Write, ...]
    done: Future[None] = dataclasses.field(default_factory=Future)
    files: dict[int, str] = dataclasses.field(default_factory=dict)
    checksums: dict[int, bytes] = dataclasses.field(default_factory=dict)

    @property
    def frees(self) -> bool:
        """Whether it frees space: it deletes records, and adds only small ones such as tombstones."""
        deletes = any(isinstance(write, Delete) for write in self.writes)
        return deletes and sum(write.size for write in self.writes if isinstance(write, Put)) < _INLINE_BYTES


class SqliteStore(Store):
    """Records in an SQLite file.

    Args:
        path: the file; `<path>-blobs` beside it holds large payloads.
        limits: limits on the records.
        sync: whether `commit` waits until the data is on the disk.
    """

    def __init__(self, path: Path, limits: Limits, *, sync: bool) -> None:
        self._path = path
        self.limits = limits
        self._sync = sync
        self._jobs: queue.SimpleQueue[_Job | None] = queue.SimpleQueue()
        self._readers = started_executor(_READERS, "revolute-store-read")
        self._writer = threading.Thread(target=self._write_all, name="revolute-store-write", daemon=True)
        self._local = threading.local()
        self._connections: list[sqlite3.Connection] = []
        self._blobs = Blobs(path.with_name(f"{path.name}-blobs"), sync=sync)
        self._reserve = DiskReserve(path.with_name(f"{path.name}-reserve"))
        self.usage: dict[tuple[str, str], tuple[int, int]] = {}

    async def open(self) -> None:
        await self._run(self._prepare)
        # the event loop's connection must not wait for locks
        self._local.connection = self._connect(seconds=0.0)
        self._identity = FileIdentity(self._path)
        start(self._writer)

    async def check(self) -> None:
        self._identity.check()
        await self.look(MODEL, "")

    async def get(self, kind: str, key: str) -> Record | None:
        # most lookups are of new requests and find nothing
        if await self.look(kind, key) is None:
            return None
        return await self._run(self._get, kind, key)

    async def look(self, kind: str, key: str) -> Entry | None:
        found = await self._read("WHERE kind = ? AND key = ?", kind, key)
        if found and found[0] is None:
            raise damaged(kind, key)
        return found[0] if found else None

    async def commit(self, *writes: Write) -> None:
        job = _Job(writes)
        sizes = [write.size for write in writes if isinstance(write, Put)]
        if max(sizes, default=0) <= _INLINE_BYTES:
            self._hand_over(job)
        elif self._sync or sum(sizes) > _WRITER_BYTES or not self._jobs.empty():
            self._readers.submit(self._hand_over, job)
        else:
            # a second change of threads would take longer than writing such files
            self._jobs.put(job)
        # the writer finishes the transaction even if the caller is cancelled
        await asyncio.shield(asyncio.wrap_future(job.done))

    async def scan(self, kind: str, after: int = 0, limit: int = 1000) -> list[Entry]:
        where = "WHERE kind = ? AND sequence > ? ORDER BY sequence LIMIT ?"
        found = await self._read(where, kind, after, min(limit, _FEW))
        if len(found) < _FEW or limit == _FEW:
            return _readable(found)
        return await self._list(where, kind, after, limit)

    async def newest(self, kind: str, limit: int) -> list[Entry]:
        where = "WHERE kind = ? ORDER BY sequence DESC LIMIT ?"
        return await self._list(where, kind, limit)

    async def expired(self, now: float, limit: int = 1000) -> list[Entry]:
        where = "WHERE expires IS NOT NULL AND expires <= ? ORDER BY expires LIMIT ?"
        return await self._list(where, now, limit)

    async def close(self) -> None:
        # first the readers, because they pass transactions to the writer
        await asyncio.to_thread(self._readers.shutdown)
        if self._writer.is_alive():
            self._jobs.put(None)
            await asyncio.to_thread(self._writer.join)
        for connection in list(self._connections):
            connection.close()
        self._blobs.close()

    async def _list(self, where: str, *values: Any) -> list[Entry]:
        """Read rows on a thread."""
        return _readable(await self._run(self._select, where, *values))

    async def _read(self, where: str, *values: Any) -> list[Entry | None]:
        """Read a few rows here; if another process has locked the file, on a thread that waits."""
        try:
            return self._select(where, *values)
        except UnavailableError:
            return await self._run(self._select, where, *values)

    async def _run(self, work: Callable[..., Result], *arguments: Any) -> Result:
        """Run work on a reader thread."""
        return await asyncio.get_running_loop().run_in_executor(self._readers, work, *arguments)

    # the file

    def _prepare(self) -> None:
        """Open or create the file; refuse one with another format."""
        try:
            if self._path.is_dir():
                raise IsADirectoryError(errno.EISDIR, os.strerror(errno.EISDIR), str(self._path))
            if not self._path.parent.exists():
                self._path.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
                _log.warning("store: there was no folder %s; it was made", self._path.parent)
            make_private(self._path)
            self._blobs.open()
            take_from_others(self._path)
            self._open_tables()
            self._count_records()
            self._reserve.make()
            take_from_others(self._path)
        except (sqlite3.Error, OSError) as error:
            self._close_connections()
            raise unusable(self._path, error) from error

    def _close_connections(self) -> None:
        """Close the connections after a failed start."""
        for connection in self._connections:
            connection.close()
        self._connections.clear()
        self._local.connection = None

    def _open_tables(self) -> None:
        """Check the file and its tables, or create the tables in an empty file."""
        connection = self._connection()
        if (found := integrity(connection)) != "ok":
            raise sqlite3.DatabaseError(f"malformed: {found}")
        with transaction(connection):
            version = connection.execute("PRAGMA user_version").fetchone()[0]
            tables = connection.execute("SELECT count(*) FROM sqlite_master").fetchone()[0]
            if not version and not tables:
                make_tables(connection)
            elif version != SCHEMA:
                raise wrong_schema(self._path, version)
            else:
                # fails if the file cannot be written
                connection.execute(f"PRAGMA user_version = {SCHEMA}")

    def _count_records(self) -> None:
        """Count the records, and remove payload files without a record."""
        connection = self._connection()
        self.usage = usage_of(connection)
        self._blobs.remove_orphans(lambda name: has_file(connection, name))

    def _connection(self) -> sqlite3.Connection:
        """Return this thread's connection."""
        found: sqlite3.Connection | None = getattr(self._local, "connection", None)
        if found is None:
            found = self._local.connection = self._connect(_BUSY_SECONDS)
        return found

    def _connect(self, seconds: float) -> sqlite3.Connection:
        """Open the file; statements wait up to `seconds` for locks of other processes."""
        found = sqlite3.connect(
            self._path, timeout=_BUSY_SECONDS, isolation_level=None, check_same_thread=False
        )
        self._connections.append(found)
        found.text_factory = lambda content: content.decode("utf-8", "replace")
        # this setting has an effect only in a new file; setting it again would write the first page
        if not found.execute("PRAGMA page_count").fetchone()[0]:
            found.execute("PRAGMA auto_vacuum = INCREMENTAL")
        found.execute("PRAGMA journal_mode = WAL")
        found.execute(f"PRAGMA synchronous = {'FULL' if self._sync else 'NORMAL'}")
        found.execute(f"PRAGMA busy_timeout = {round(1e3 * seconds)}")
        return found

    # reading

    def _select(self, where: str, *values: Any) -> list[Entry | None]:
        """Return the entries of rows, None for a damaged row."""
        with reading():
            rows = self._connection().execute(f"SELECT {ENTRY_COLUMNS} FROM records {where}", values)
            return [entry_of(row) for row in rows]

    def _get(self, kind: str, key: str) -> Record | None:
        query = f"SELECT {ENTRY_COLUMNS}, checksum, file, payload FROM records WHERE kind = ? AND key = ?"
        previous = None
        while True:
            with reading():
                row = self._connection().execute(query, (kind, key)).fetchone()
                if row is None:
                    return None
                *plain, digest, file, payload = row
                entry = entry_of(plain)
                if entry is None or not is_row((digest, file, payload), ("checksum", "file", "payload")):
                    raise damaged(kind, key)
                try:
                    content = payload if file is None else self._blobs.read(file)
                except FileNotFoundError:
                    # changed or deleted in the meantime, unless the row still has the same file
                    if file == previous:
                        raise damaged(kind, key) from None
                    previous = file
                    continue
                if content is None or checksum(kind, key, (content,)) != digest:
                    # damaged, or deleted and its file reused while it was being read
                    if file is None or file == previous:
                        raise damaged(kind, key)
                    previous = file
                    continue
                return Record(**vars(entry), payload=(content,))

    # writing

    def _hand_over(self, job: _Job) -> None:
        """Write the payload files of a transaction, and pass it to the writer."""
        if self._write_files(job):
            self._jobs.put(job)

    def _write_files(self, job: _Job) -> bool:
        """Write the large payloads of a transaction as files; return whether that worked.

        On failure the transaction's future gets the error.
        """
        if job.checksums:
            return True
        written: dict[int, str] = {}
        try:
            for index, write in enumerate(job.writes):
                if not isinstance(write, Put):
                    continue
                job.checksums[index] = checksum(write.kind, write.key, write.payload)
                if write.size > _INLINE_BYTES:
                    self._identity.check()
                    if first := written.get(id(write.payload)):
                        job.files[index] = self._blobs.write_again(first, write.payload)
                    else:
                        job.files[index] = self._blobs.write(write.payload)
                        written[id(write.payload)] = job.files[index]
            if job.files:
                self._blobs.sync_names()
        except BaseException as error:
            self._remove_files(list(job.files.values()))
            job.done.set_exception(os_fault(error) if isinstance(error, OSError) else error)
            return False
        return True

    def _remove_files(self, names: list[str]) -> None:
        for name in names:
            with contextlib.suppress(OSError):
                self._blobs.remove(name)

    def _write_all(self) -> None:
        """Run the writer thread: commit waiting transactions together, until the end."""
        jobs: list[_Job | None] = []
        while None not in jobs:
            jobs = [self._jobs.get()]
            try:
                self._write_waiting(jobs)
            except BaseException as error:
                # the thread must continue, because no other thread writes
                _log.exception("store: a transaction met a fault")
                self._fail(jobs, error)

    def _write_waiting(self, jobs: list[_Job | None]) -> None:
        """Commit the first transaction together with all that wait behind it; these are added to `jobs`."""
        with contextlib.suppress(queue.Empty):
            while len(jobs) < _MOST_TOGETHER:
                jobs.append(self._jobs.get_nowait())
        waiting = [job for job in jobs if job is not None and self._write_files(job)]
        if not waiting:
            return
        try:
            self._identity.check()
            self._write_together(waiting)
            self._reserve.make()
        except (RevoluteError, sqlite3.Error, OSError) as error:
            self._fail(waiting, error)

    def _fail(self, jobs: Sequence[_Job | None], error: BaseException) -> None:
        """Report an error to the callers of unfinished transactions."""
        for job in jobs:
            if job is not None and not job.done.done():
                self._remove_files(list(job.files.values()))
                job.done.set_exception(error)

    def _write_together(self, jobs: list[_Job]) -> None:
        failed: dict[int, Exception] = {}
        try:
            unused = self._transact(jobs, failed)
        except (sqlite3.Error, OSError) as error:
            if len(jobs) == 1:
                self._write_again(jobs[0], error)
                return
            # one transaction may be at fault: commit each separately
            for job in jobs:
                self._write_together([job])
            return
        self._finish(jobs, failed, unused)

    def _write_again(self, job: _Job, error: Exception) -> None:
        """Free space and try again; deleting must be possible on a full disk."""
        failed: dict[int, Exception] = {}
        unused: list[str] = []
        while True:
            try:
                with contextlib.suppress(sqlite3.Error):
                    self._connection().execute("PRAGMA wal_checkpoint(RESTART)")
                unused = self._transact([job], failed)
            except (sqlite3.Error, OSError) as again:
                error = again
                if self._blobs.make_room() or (job.frees and self._reserve.release()):
                    continue
                failed[0] = sql_fault(error)
            break
        self._finish([job], failed, unused)

    def _finish(self, jobs: list[_Job], failed: dict[int, Exception], unused: list[str]) -> None:
        """Report the results to the callers, and remove unused payload files."""
        for index, job in enumerate(jobs):
            if index in failed:
                unused = [*unused, *job.files.values()]
                job.done.set_exception(failed[index])
            else:
                job.done.set_result(None)
        self._remove_files(unused)

    def _transact(self, jobs: list[_Job], failed: dict[int, Exception]) -> list[str]:
        """Carry out transactions as one; return the payload files that are no longer used.

        Args:
            jobs: the transactions.
            failed: receives the errors of single transactions, by index; the others are committed.
        """
        connection = self._connection()
        unused: list[str] = []
        with transaction(connection):
            rows = Rows(connection, self.limits)
            for index, job in enumerate(jobs):
                connection.execute("SAVEPOINT job")
                replaced: list[str] = []
                try:
                    for number, write in enumerate(job.writes):
                        digest, file = job.checksums.get(number, b""), job.files.get(number)
                        replaced += rows.apply(write, digest, file)
                except (Conflict, RevoluteError) as error:
                    rows.undo("job")
                    failed[index] = error
                else:
                    unused += replaced
                connection.execute("RELEASE job")
        self.usage = rows.usage
        return unused


def _readable(found: list[Entry | None]) -> list[Entry]:
    return [entry for entry in found if entry is not None]

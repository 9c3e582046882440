"""`sqlite:///path`: an SQLite file in WAL mode, the embedded default.

One thread writes: it takes all transactions that wait, carries each out in a savepoint and commits them
together, so that under `durability=disk` one fsync serves many calls (group commit). A row by its key is read
on the event loop, in less time than a change of threads takes; what may take longer is read on threads.
Payloads that are not small lie in files beside the database (`blobs`), written on these threads, too.
Several servers on one machine may share a file; SQLite's own locks keep their transactions apart.

A damaged payload is one lost record. SQLite checks its own file at the start, and a file that it calls
malformed is refused: repairing it is left to SQLite (`sqlite3 FILE .recover`).

What survives: with `process`, everything acknowledged survives the end of the process, however it ends, since
the system has it; with `disk`, the end of the machine as well, since WAL (synchronous=FULL) and payloads are
synced before a call is answered.
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
"""Largest payload inside the database; larger ones are cheaper to write and read as files."""

_PASSING_BYTES = 4 * 1024**2
"""Of a transaction whose payloads the writer writes itself when it has nothing else to do."""

_BUSY_SECONDS = 30.0
_READERS = 4
_FEW = 32
"""Rows that are read on the event loop; a listing of more goes to a thread."""

_MOST_TOGETHER = 256


@dataclasses.dataclass
class _Job:
    """A transaction that waits for the writer.

    Attributes:
        writes: what it does.
        done: set when it is durable, or has failed.
        files: names of payloads that lie in files, by place in `writes`.
        checksums: of the records that are put, by place in `writes`.
    """

    writes: tuple[Write, ...]
    done: Future[None] = dataclasses.field(default_factory=Future)
    files: dict[int, str] = dataclasses.field(default_factory=dict)
    checksums: dict[int, bytes] = dataclasses.field(default_factory=dict)

    @property
    def frees(self) -> bool:
        """Whether it makes room: it deletes, and adds no more than notes of that."""
        deletes = any(isinstance(write, Delete) for write in self.writes)
        return deletes and sum(write.size for write in self.writes if isinstance(write, Put)) < _INLINE_BYTES


class SqliteStore(Store):
    """Records in an SQLite file.

    Args:
        path: the file; `<path>-blobs` beside it holds large payloads.
        limits: what may be kept.
        sync: whether what is committed is on the disk when `commit` returns.
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
        # the event loop's own connection waits for nobody
        self._local.connection = self._connect(seconds=0.0)
        self._place = FileIdentity(self._path)
        start(self._writer)

    async def check(self) -> None:
        self._place.check()
        await self.look(MODEL, "")

    async def get(self, kind: str, key: str) -> Record | None:
        # most requests are new, so that mostly there is nothing to read
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
        elif self._sync or sum(sizes) > _PASSING_BYTES or not self._jobs.empty():
            self._readers.submit(self._hand_over, job)
        else:
            # a second change of threads would take longer than such a file
            self._jobs.put(job)
        # what is given to the writer happens, even if nobody waits any more
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
        # these hand transactions to the writer
        await asyncio.to_thread(self._readers.shutdown)
        if self._writer.is_alive():
            self._jobs.put(None)
            await asyncio.to_thread(self._writer.join)
        for connection in list(self._connections):
            connection.close()
        self._blobs.close()

    async def _list(self, where: str, *values: Any) -> list[Entry]:
        """Read many rows on a thread."""
        return _readable(await self._run(self._select, where, *values))

    async def _read(self, where: str, *values: Any) -> list[Entry | None]:
        """Read a few rows here; on a thread that waits where another process holds the file just now."""
        try:
            return self._select(where, *values)
        except UnavailableError:
            return await self._run(self._select, where, *values)

    async def _run(self, work: Callable[..., Result], *arguments: Any) -> Result:
        """Run a reader's work."""
        return await asyncio.get_running_loop().run_in_executor(self._readers, work, *arguments)

    # the file

    def _prepare(self) -> None:
        """Open the file or make it, and refuse one that is none of ours or of a newer release."""
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
            self._take_stock()
            self._reserve.make()
            take_from_others(self._path)
        except (sqlite3.Error, OSError) as error:
            self._close_connections()
            raise unusable(self._path, error) from error

    def _close_connections(self) -> None:
        """Close the connections of a file that was not opened."""
        for connection in self._connections:
            connection.close()
        self._connections.clear()
        self._local.connection = None

    def _open_tables(self) -> None:
        """Find the tables in a file that is whole, or make them in an empty one."""
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
                # fails where the file may not be written
                connection.execute(f"PRAGMA user_version = {SCHEMA}")

    def _take_stock(self) -> None:
        """Count the records, and remove payloads that no record names."""
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
        """Open the file; `seconds` is how long the connection's statements wait for other processes."""
        found = sqlite3.connect(
            self._path, timeout=_BUSY_SECONDS, isolation_level=None, check_same_thread=False
        )
        self._connections.append(found)
        found.text_factory = lambda content: content.decode("utf-8", "replace")
        # only a new file takes it, and asking again would write the first page
        if not found.execute("PRAGMA page_count").fetchone()[0]:
            found.execute("PRAGMA auto_vacuum = INCREMENTAL")
        found.execute("PRAGMA journal_mode = WAL")
        found.execute(f"PRAGMA synchronous = {'FULL' if self._sync else 'NORMAL'}")
        found.execute(f"PRAGMA busy_timeout = {round(1e3 * seconds)}")
        return found

    # reading

    def _select(self, where: str, *values: Any) -> list[Entry | None]:
        """Return the entries of rows, None for one that is damaged."""
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
                    # changed or deleted meanwhile, unless the row still says the same
                    if file == previous:
                        raise damaged(kind, key) from None
                    previous = file
                    continue
                if content is None or checksum(kind, key, (content,)) != digest:
                    # or it was deleted, and its file written over, after it was opened
                    if file is None or file == previous:
                        raise damaged(kind, key)
                    previous = file
                    continue
                return Record(**vars(entry), payload=(content,))

    # writing

    def _hand_over(self, job: _Job) -> None:
        """Lay a transaction's payloads down, and give it to the writer."""
        if self._laid_down(job):
            self._jobs.put(job)

    def _laid_down(self, job: _Job) -> bool:
        """Write the large payloads of a transaction as files; if that fails, its caller is told."""
        if job.checksums:
            return True
        written: dict[int, str] = {}
        try:
            for place, write in enumerate(job.writes):
                if not isinstance(write, Put):
                    continue
                job.checksums[place] = checksum(write.kind, write.key, write.payload)
                if write.size > _INLINE_BYTES:
                    self._place.check()
                    if first := written.get(id(write.payload)):
                        job.files[place] = self._blobs.write_again(first, write.payload)
                    else:
                        job.files[place] = self._blobs.write(write.payload)
                        written[id(write.payload)] = job.files[place]
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
        """The writer's thread: commit all transactions that wait, together, until the end."""
        jobs: list[_Job | None] = []
        while None not in jobs:
            jobs = [self._jobs.get()]
            try:
                self._write_waiting(jobs)
            except BaseException as error:
                # without this thread nothing would be written any more
                _log.exception("store: a transaction met a fault")
                self._fail(jobs, error)

    def _write_waiting(self, jobs: list[_Job | None]) -> None:
        """Carry out what was asked for first, and all that waits behind it, which is added to `jobs`."""
        with contextlib.suppress(queue.Empty):
            while len(jobs) < _MOST_TOGETHER:
                jobs.append(self._jobs.get_nowait())
        waiting = [job for job in jobs if job is not None and self._laid_down(job)]
        if not waiting:
            return
        try:
            self._place.check()
            self._write_together(waiting)
            self._reserve.make()
        except (RevoluteError, sqlite3.Error, OSError) as error:
            self._fail(waiting, error)

    def _fail(self, jobs: Sequence[_Job | None], error: BaseException) -> None:
        """Tell the callers of what was not carried out."""
        for job in jobs:
            if job is not None and not job.done.done():
                self._remove_files(list(job.files.values()))
                job.done.set_exception(error)

    def _write_together(self, jobs: list[_Job]) -> None:
        failed: dict[int, Exception] = {}
        try:
            gone = self._transact(jobs, failed)
        except (sqlite3.Error, OSError) as error:
            if len(jobs) == 1:
                self._write_again(jobs[0], error)
                return
            # one of them may be to blame, so each stands for itself
            for job in jobs:
                self._write_together([job])
            return
        self._finish(jobs, failed, gone)

    def _write_again(self, job: _Job, error: Exception) -> None:
        """Make room in the journal and try once more; deleting must be possible on a full disk."""
        failed: dict[int, Exception] = {}
        gone: list[str] = []
        while True:
            try:
                with contextlib.suppress(sqlite3.Error):
                    self._connection().execute("PRAGMA wal_checkpoint(RESTART)")
                gone = self._transact([job], failed)
            except (sqlite3.Error, OSError) as again:
                error = again
                if self._blobs.make_room() or (job.frees and self._reserve.give()):
                    continue
                failed[0] = sql_fault(error)
            break
        self._finish([job], failed, gone)

    def _finish(self, jobs: list[_Job], failed: dict[int, Exception], gone: list[str]) -> None:
        """Tell the callers, and remove the files that nothing refers to any more."""
        for place, job in enumerate(jobs):
            if place in failed:
                gone = [*gone, *job.files.values()]
                job.done.set_exception(failed[place])
            else:
                job.done.set_result(None)
        self._remove_files(gone)

    def _transact(self, jobs: list[_Job], failed: dict[int, Exception]) -> list[str]:
        """Carry out transactions as one; return the files of payloads that are gone with it."""
        connection = self._connection()
        gone: list[str] = []
        with transaction(connection):
            rows = Rows(connection, self.limits)
            for place, job in enumerate(jobs):
                connection.execute("SAVEPOINT job")
                replaced: list[str] = []
                try:
                    for number, write in enumerate(job.writes):
                        laid = job.checksums.get(number, b""), job.files.get(number)
                        replaced += rows.apply(write, *laid)
                except (Conflict, RevoluteError) as error:
                    rows.undo("job")
                    failed[place] = error
                else:
                    gone += replaced
                connection.execute("RELEASE job")
        self.usage = rows.usage
        return gone


def _readable(found: list[Entry | None]) -> list[Entry]:
    return [entry for entry in found if entry is not None]

"""`sqlite:///path`: an SQLite file in WAL mode, the embedded default.

One thread writes: it takes all transactions that wait, carries each out in a savepoint and commits them
together, so that under `durability=disk` one fsync serves many calls (group commit). A row by its key is read
on the event loop, in less time than a change of threads takes; what may take longer is read on threads.
Payloads that are not small lie in files beside the database (`blobs`), written on these threads, too.
Several servers on one machine may share a file; SQLite's own locks keep their transactions apart.

A damaged payload is one lost record. Where a page of the database is damaged, the first call that meets it,
or a check after the start, has the file made anew from what can be read (`salvage`).

What survives: with `process`, everything acknowledged survives the end of the process, however it ends, since
the system has it; with `disk`, the end of the machine as well, since WAL (synchronous=FULL) and payloads are
synced before a call is answered.
"""

from __future__ import annotations

import asyncio
import contextlib
import dataclasses
import errno
import json
import logging
import os
import queue
import sqlite3
import threading
import time
from collections.abc import Awaitable, Callable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from pathlib import Path
from typing import Any, TypeVar

from revolute.errors import ArgumentError, RevoluteError, UnavailableError

from . import boot
from .blobs import Blobs
from .codec import checksum
from .first_page import renew
from .interface import (
    MODEL,
    Conflict,
    Delete,
    Entry,
    Limits,
    Put,
    Record,
    Store,
    Touch,
    Write,
    damaged,
    disk_full,
    joined,
    unwritable,
)
from .journal import alone, mend
from .place import Place
from .reserve import Reserve
from .salvage import Malformed, copy_records, is_malformed, is_row

_log = logging.getLogger("revolute.server")

Result = TypeVar("Result")

SCHEMA = 1
"""Number of the format of the file; a larger one is a newer release's."""

_INLINE_BYTES = 16 * 1024
"""Largest payload inside the database; larger ones are cheaper to write and read as files."""

_PASSING_BYTES = 4 * 1024**2
"""Of a transaction whose payloads the writer writes itself when it has nothing else to do."""

_BUSY_SECONDS = 30.0
_READERS = 4
_FEW = 32
"""Rows that are read on the event loop; a listing of more goes to a thread."""

_MOST_TOGETHER = 256

_TABLES = """
CREATE TABLE records (
  sequence INTEGER PRIMARY KEY AUTOINCREMENT,
  kind TEXT NOT NULL,
  key TEXT NOT NULL,
  version INTEGER NOT NULL,
  created REAL NOT NULL,
  expires REAL,
  size INTEGER NOT NULL,
  parent TEXT NOT NULL,
  client TEXT NOT NULL,
  summary TEXT NOT NULL,
  checksum BLOB NOT NULL,
  file TEXT,
  payload BLOB,
  UNIQUE (kind, key)
);
CREATE INDEX records_by_expiry ON records (expires) WHERE expires IS NOT NULL;
CREATE INDEX records_by_parent ON records (parent) WHERE parent != '';
CREATE INDEX records_by_age ON records (kind, sequence);
CREATE INDEX records_by_file ON records (file) WHERE file IS NOT NULL;
CREATE TABLE usage (
  kind TEXT NOT NULL,
  client TEXT NOT NULL,
  count INTEGER NOT NULL,
  bytes INTEGER NOT NULL,
  PRIMARY KEY (kind, client)
);
CREATE TRIGGER count_new AFTER INSERT ON records BEGIN
  INSERT INTO usage VALUES (new.kind, new.client, 1, new.size)
    ON CONFLICT (kind, client) DO UPDATE SET count = count + 1, bytes = bytes + new.size;
END;
CREATE TRIGGER count_gone AFTER DELETE ON records BEGIN
  UPDATE usage SET count = count - 1, bytes = bytes - old.size WHERE kind = old.kind AND client = old.client;
  DELETE FROM usage WHERE kind = old.kind AND client = old.client AND count = 0;
END;
CREATE TRIGGER count_changed AFTER UPDATE OF size ON records BEGIN
  UPDATE usage SET bytes = bytes + new.size - old.size WHERE kind = new.kind AND client = new.client;
END;
"""

_ENTRY = ("kind", "key", "version", "sequence", "created", "expires", "size", "summary")
_ENTRY_COLUMNS = ", ".join(_ENTRY)


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


@dataclasses.dataclass
class _Repair:
    """The wish for a file without damaged pages.

    Attributes:
        times: how often the file had been repaired when the damage was met.
        done: set when it is repaired, or cannot be.
    """

    times: int
    done: Future[None] = dataclasses.field(default_factory=Future)


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
        self._jobs: queue.SimpleQueue[_Job | _Repair | None] = queue.SimpleQueue()
        self._readers = ThreadPoolExecutor(_READERS, "revolute-store-read")
        self._writer = threading.Thread(target=self._write_all, name="revolute-store-write", daemon=True)
        self._local = threading.local()
        self._connections: list[sqlite3.Connection] = []
        self._blobs = Blobs(path.with_name(f"{path.name}-blobs"), sync=sync)
        self._reserve = Reserve(path.with_name(f"{path.name}-reserve"))
        self._repairs = 0
        self._checker: sqlite3.Connection | None = None
        self.usage: dict[tuple[str, str], tuple[int, int]] = {}

    async def open(self) -> None:
        await self._run(self._prepare)
        # the event loop's own connection waits for nobody
        self._local.connection = self._connect(seconds=0.0)
        self._place = Place(self._path)
        self._writer.start()
        self._readers.submit(self._check_pages)

    async def get(self, kind: str, key: str) -> Record | None:
        # most requests are new, so that mostly there is nothing to read
        if await self.look(kind, key) is None:
            return None
        return await self._mended(lambda: self._run(self._get, kind, key))

    async def look(self, kind: str, key: str) -> Entry | None:
        found = await self._mended(lambda: self._read("WHERE kind = ? AND key = ?", kind, key))
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
        found = await self._mended(lambda: self._read(where, kind, after, min(limit, _FEW)))
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
        if self._checker is not None:
            self._checker.interrupt()
        # these hand transactions to the writer
        await asyncio.to_thread(self._readers.shutdown)
        if self._writer.is_alive():
            self._jobs.put(None)
            await asyncio.to_thread(self._writer.join)
        for connection in self._connections:
            connection.close()
        self._blobs.close()

    async def _list(self, where: str, *values: Any) -> list[Entry]:
        """Read many rows on a thread."""
        return _readable(await self._mended(lambda: self._run(self._select, where, *values)))

    async def _mended(self, read: Callable[[], Awaitable[Result]]) -> Result:
        """Read, and if a damaged page is met, once more after the file was repaired."""
        times = self._repairs
        try:
            return await read()
        except Malformed:
            repair = _Repair(times)
            self._jobs.put(repair)
            await asyncio.shield(asyncio.wrap_future(repair.done))
        try:
            return await read()
        except Malformed as error:
            raise unwritable(str(error)) from error

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
            if not self._path.parent.exists():
                self._path.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
                _log.warning("store: there was no folder %s; it was made", self._path.parent)
            self._blobs.open()
            # after a power failure a wrong frame may be one that never came to the disk, and those behind it
            # were not acknowledged: SQLite is right to forget them all
            mended = mend(self._path) if boot.ran_all_the_time(self._path) else None
            if mended is not None:
                _log.error(
                    "store: the journal of %s was damaged; %d of its pages may be wrong, %d are rescued",
                    *(self._path, mended.damaged, mended.rescued),
                )
            renewed = False
            try:
                self._open_tables()
            except sqlite3.DatabaseError as error:
                if not _is_first_page(error) or not self._renew_first_page():
                    raise
                renewed = True
                self._open_tables()
            self._open_records(doubtful=renewed or mended is not None)
            self._reserve.make()
            boot.note(self._path)
        except (sqlite3.Error, OSError) as error:
            self._close_connections()
            raise _unusable(self._path, error) from error

    def _close_connections(self) -> None:
        """Close the connections of a file that was not opened."""
        for connection in self._connections:
            connection.close()
        self._connections.clear()
        self._local.connection = None

    def _open_tables(self) -> None:
        """Find the tables, or make them in an empty file."""
        connection = self._connection()
        with _transaction(connection):
            found = connection.execute("PRAGMA user_version").fetchone()[0]
            tables = connection.execute("SELECT count(*) FROM sqlite_master").fetchone()[0]
            if not found and not tables:
                _make_tables(connection)
            elif found != SCHEMA:
                raise _wrong_schema(self._path, found)

    def _open_records(self, *, doubtful: bool) -> None:
        """Count what is there, and repair the file if that meets a damaged page.

        Args:
            doubtful: whether to look at all pages first; otherwise that is done after the start.
        """
        connection = self._connection()
        try:
            if doubtful and (found := _integrity(connection)) != "ok":
                raise sqlite3.DatabaseError(f"malformed: {found}")
            self._take_stock(connection)
        except sqlite3.DatabaseError as error:
            if not is_malformed(error):
                raise
            self._repair(self._repairs)
            self._take_stock(connection)

    def _renew_first_page(self) -> bool:
        """Make the first page anew, if the file is one of ours and nobody else has it open."""
        self._close_connections()
        with alone(self._path) as is_alone:
            renewed = is_alone and renew(self._path, _make_tables)
        if renewed:
            _log.error("store: the first page of %s was damaged; it is made anew", self._path)
        return renewed

    def _take_stock(self, connection: sqlite3.Connection) -> None:
        """Count what is there, and remove what nothing refers to."""
        self.usage = _usage(connection)
        self._blobs.remove_orphans(lambda name: _has_file(connection, name))

    def _check_pages(self) -> None:
        """Look for damaged pages and for indexes that do not fit their table, and repair the file."""
        times = self._repairs
        try:
            self._checker = self._connection()
            found = _integrity(self._checker)
        except sqlite3.DatabaseError as error:
            found = str(error) if is_malformed(error) else "ok"
        finally:
            self._checker = None
        if found != "ok":
            self._jobs.put(_Repair(times))

    def _repair(self, times: int) -> None:
        """Make the file anew from what can be read of it, unless that has happened since `times`.

        Raises:
            sqlite3.Error: it cannot be read at all, or not be written.
        """
        if self._repairs != times:
            return
        draft = self._path.with_name(f"{self._path.name}-repair")
        draft.unlink(missing_ok=True)
        try:
            # no other process writes meanwhile
            with self._blobs.locked(alone=True):
                connection = self._connect(_BUSY_SECONDS)
                whole = sqlite3.connect(draft, isolation_level=None)
                try:
                    whole.execute("PRAGMA auto_vacuum = INCREMENTAL")
                    with _transaction(whole):
                        _make_tables(whole)
                        found = copy_records(connection, whole, self._blobs.read)
                    whole.backup(connection)
                    self.usage = _usage(connection)
                finally:
                    whole.close()
                    self._connections.remove(connection)
                    connection.close()
        finally:
            draft.unlink(missing_ok=True)
        self._repairs += 1
        lost = ", ".join(f"{kind} {key[:8]}" for kind, key in found.lost[:20])
        _log.error(
            "store: pages of %s were damaged; it was made anew with %d records, %d others are lost%s",
            *(self._path, found.kept, len(found.lost), f": {lost}" if lost else ""),
        )

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
        # the journal is set first: a new file takes auto_vacuum only while it is empty
        found.execute("PRAGMA auto_vacuum = INCREMENTAL")
        found.execute("PRAGMA journal_mode = WAL")
        found.execute(f"PRAGMA synchronous = {'FULL' if self._sync else 'NORMAL'}")
        found.execute(f"PRAGMA busy_timeout = {round(1e3 * seconds)}")
        return found

    # reading

    def _select(self, where: str, *values: Any) -> list[Entry | None]:
        """Return the entries of rows, None for one that is damaged."""
        with _faults():
            rows = self._connection().execute(f"SELECT {_ENTRY_COLUMNS} FROM records {where}", values)
            return [_entry(row) for row in rows]

    def _get(self, kind: str, key: str) -> Record | None:
        query = f"SELECT {_ENTRY_COLUMNS}, checksum, file, payload FROM records WHERE kind = ? AND key = ?"
        previous = None
        while True:
            with _faults():
                row = self._connection().execute(query, (kind, key)).fetchone()
                if row is None:
                    return None
                *plain, digest, file, payload = row
                entry = _entry(plain)
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
            job.done.set_exception(_os_fault(error) if isinstance(error, OSError) else error)
            return False
        return True

    def _remove_files(self, names: list[str]) -> None:
        for name in names:
            with contextlib.suppress(OSError):
                self._blobs.remove(name)

    def _write_all(self) -> None:
        """The writer's thread: commit all transactions that wait, together, until the end."""
        ending = False
        while not ending:
            jobs = [self._jobs.get()]
            with contextlib.suppress(queue.Empty):
                while len(jobs) < _MOST_TOGETHER:
                    jobs.append(self._jobs.get_nowait())
            ending = None in jobs
            for repair in jobs:
                if isinstance(repair, _Repair):
                    self._carry_out(repair)
            waiting = [job for job in jobs if isinstance(job, _Job) and self._laid_down(job)]
            try:
                if waiting:
                    self._place.check()
                    self._write_together(waiting)
                    self._reserve.make()
            except BaseException as error:
                for job in waiting:
                    if not job.done.done():
                        self._remove_files(list(job.files.values()))
                        job.done.set_exception(error)

    def _carry_out(self, repair: _Repair) -> None:
        """Repair the file; who asked for it sees by reading again whether that was of use."""
        try:
            self._repair(repair.times)
        except (sqlite3.Error, OSError) as error:
            _log.error("store: pages of %s are damaged, and it cannot be repaired: %s", self._path, error)
        finally:
            repair.done.set_result(None)

    def _write_together(self, jobs: list[_Job]) -> None:
        failed: dict[int, Exception] = {}
        times = self._repairs
        try:
            gone = self._transact(jobs, failed)
        except (sqlite3.Error, OSError) as error:
            if is_malformed(error):
                self._carry_out(_Repair(times))
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
                failed[0] = _sql_fault(error)
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
        with self._blobs.locked(alone=False), _transaction(connection):
            usage = _usage(connection)
            for place, job in enumerate(jobs):
                connection.execute("SAVEPOINT job")
                replaced: list[str] = []
                try:
                    for number, write in enumerate(job.writes):
                        laid = job.checksums.get(number, b""), job.files.get(number)
                        replaced += self._apply(connection, write, *laid, usage)
                except (Conflict, RevoluteError) as error:
                    connection.execute("ROLLBACK TO job")
                    failed[place] = error
                    usage = _usage(connection)
                else:
                    gone += replaced
                connection.execute("RELEASE job")
        self.usage = usage
        return gone

    def _apply(
        self,
        connection: sqlite3.Connection,
        write: Write,
        digest: bytes,
        file: str | None,
        usage: dict[tuple[str, str], tuple[int, int]],
    ) -> list[str]:
        """Carry out one write, keep `usage` true, and return the file of the payload that is gone."""
        place = write.kind, write.key
        row = connection.execute(
            "SELECT version, expires, size, file, client FROM records WHERE kind = ? AND key = ?", place
        ).fetchone()
        if isinstance(write, Put):
            return self._put(connection, write, row, digest, file, usage)
        if row is None:
            raise Conflict(*place)
        _, expires, size, old_file, client = row
        if isinstance(write, Touch):
            connection.execute(
                "UPDATE records SET expires = ? WHERE kind = ? AND key = ?", (write.expires, *place)
            )
            return []
        if write.expired_at is not None and not (expires is not None and expires <= write.expired_at):
            raise Conflict(*place)
        if write.kind == MODEL and _exists(connection, "parent = ? AND parent != ''", write.key):
            raise Conflict(*place, referenced=True)
        connection.execute("DELETE FROM records WHERE kind = ? AND key = ?", place)
        _count(usage, write.kind, client, -1, -size)
        return [old_file] if old_file else []

    def _put(
        self,
        connection: sqlite3.Connection,
        write: Put,
        row: Any,
        digest: bytes,
        file: str | None,
        usage: dict[tuple[str, str], tuple[int, int]],
    ) -> list[str]:
        place = write.kind, write.key
        version, _, old_size, old_file, client = row or (0, None, 0, None, write.client)
        if write.expect is not None and write.expect != version:
            raise Conflict(*place)
        if (
            row is None
            and write.parent
            and not _exists(connection, "kind = 'model' AND key = ?", write.parent)
        ):
            raise Conflict(MODEL, write.parent)
        size = write.size
        self.limits.check(usage, write.kind, client, int(row is None), size - old_size)
        content = {
            "version": version + 1,
            "expires": write.expires,
            "size": size,
            "summary": json.dumps(dict(write.summary)),
            "checksum": digest,
            "file": file,
            "payload": None if file else joined(write.payload),
        }
        if row is None:
            new = {
                "kind": place[0],
                "key": place[1],
                "created": time.time(),
                "parent": write.parent,
                "client": client,
                **content,
            }
            marks = ", ".join("?" * len(new))
            connection.execute(f"INSERT INTO records ({', '.join(new)}) VALUES ({marks})", list(new.values()))
        else:
            changes = ", ".join(f"{name} = ?" for name in content)
            connection.execute(
                f"UPDATE records SET {changes} WHERE kind = ? AND key = ?", [*content.values(), *place]
            )
        _count(usage, write.kind, client, int(row is None), size - old_size)
        return [old_file] if old_file else []


@contextlib.contextmanager
def _transaction(connection: sqlite3.Connection) -> Iterator[None]:
    """Hold a writing transaction; rolled back when the block fails."""
    connection.execute("BEGIN IMMEDIATE")
    try:
        yield
        connection.execute("COMMIT")
    except BaseException:
        # a full disk rolls back by itself
        if connection.in_transaction:
            connection.execute("ROLLBACK")
        raise


@contextlib.contextmanager
def _faults() -> Iterator[None]:
    """Turn what goes wrong while a record is read into an error of ours.

    Raises:
        Malformed: a page is damaged.
        RevoluteError: anything else.
    """
    try:
        yield
    except sqlite3.Error as error:
        if is_malformed(error):
            raise Malformed(str(error)) from error
        raise _sql_fault(error) from error
    except OSError as error:
        raise _os_fault(error) from error


def _sql_fault(error: Exception) -> Exception:
    if isinstance(error, OSError):
        return _os_fault(error)
    return disk_full(str(error)) if "full" in str(error) else unwritable(str(error))


def _os_fault(error: OSError) -> Exception:
    full = error.errno in (errno.ENOSPC, errno.EDQUOT, errno.EFBIG)
    cause = error.strerror or type(error).__name__
    return disk_full(cause.lower()) if full else unwritable(cause.lower())


def _wrong_schema(path: Path, found: int) -> ArgumentError:
    if found > SCHEMA:
        return ArgumentError.expected(
            "store",
            f"a file of format {SCHEMA} or older",
            f"format {found} at {path}",
            advice="a newer release wrote it: start that one, or choose another file with --store",
        )
    return ArgumentError.expected(
        "store", "a file of this server", f"another SQLite database at {path}", advice="choose another file"
    )


def _unusable(path: Path, error: Exception) -> ArgumentError:
    """Return the error for a file that cannot be opened."""
    cause, advice = str(error), "choose another file with --store"
    if isinstance(error, OSError):
        cause = (error.strerror or cause).lower()
        path = Path(error.filename) if isinstance(error.filename, str) else path
    if isinstance(error, sqlite3.DatabaseError) and _is_first_page(error):
        advice = f"put a copy of it in its place, or move it away to begin with an empty store, or {advice}"
    elif isinstance(error, PermissionError) or any(
        word in cause for word in ("readonly", "read-only", "unable")
    ):
        advice = f"let the server's user (uid {os.geteuid()}) write it and its folder, or {advice}"
    return ArgumentError.expected(
        "store", "an SQLite file of this server that can be written", f"{cause} at {path}", advice=advice
    )


def _entry(row: Any) -> Entry | None:
    """Return the entry of a row of the columns _ENTRY; None if they do not hold what they should."""
    if not is_row(row, _ENTRY):
        return None
    *plain, summary = row
    return Entry(**dict(zip(_ENTRY, (*plain, _summary(summary)), strict=True)))


def _readable(found: list[Entry | None]) -> list[Entry]:
    return [entry for entry in found if entry is not None]


def _is_first_page(error: sqlite3.DatabaseError) -> bool:
    """Tell whether an error, met where the tables are looked up, may come from a damaged first page."""
    return is_malformed(error) or "not a database" in str(error)


def _integrity(connection: sqlite3.Connection) -> str:
    """Return "ok", or the first thing that is wrong with pages or indexes."""
    found: str = connection.execute("PRAGMA integrity_check(1)").fetchone()[0]
    return found


def _make_tables(connection: sqlite3.Connection) -> None:
    for statement in _statements(_TABLES):
        connection.execute(statement)
    connection.execute(f"PRAGMA user_version = {SCHEMA}")


def _summary(text: str) -> dict[str, Any]:
    """Read a summary; it only informs, so damage to it costs the record nothing."""
    try:
        found = json.loads(text)
    except ValueError:
        found = None
    return found if isinstance(found, dict) else {}


def _statements(script: str) -> Iterator[str]:
    """Split a script into statements; `executescript` would end the transaction."""
    statement = ""
    for line in script.splitlines(keepends=True):
        statement += line
        if sqlite3.complete_statement(statement):
            yield statement
            statement = ""


def _usage(connection: sqlite3.Connection) -> dict[tuple[str, str], tuple[int, int]]:
    rows = connection.execute("SELECT kind, client, count, bytes FROM usage")
    return {(kind, client): (count, size) for kind, client, count, size in rows}


def _count(
    usage: dict[tuple[str, str], tuple[int, int]], kind: str, client: str, count: int, size: int
) -> None:
    number, held = usage.get((kind, client), (0, 0))
    usage[kind, client] = number + count, held + size
    if not number + count:
        del usage[kind, client]


def _exists(connection: sqlite3.Connection, condition: str, value: str) -> bool:
    found = connection.execute(f"SELECT 1 FROM records WHERE {condition} LIMIT 1", (value,))
    return found.fetchone() is not None


def _has_file(connection: sqlite3.Connection, name: str) -> bool:
    return _exists(connection, "file = ?", name)

"""`sqlite:///path`: an SQLite file in WAL mode, the embedded default.

One thread writes: it takes all transactions that wait, carries each out in a savepoint and commits them
together, so that under `durability=disk` one fsync serves many calls (group commit). A row by its key is read
on the event loop, in less time than a change of threads takes; what may take longer is read on threads.
Payloads that are not small lie in files beside the database (`blobs`), written on these threads, too.
Several servers on one machine may share a file; SQLite's own locks keep their transactions apart.

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
import queue
import sqlite3
import threading
import time
from collections.abc import Callable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from pathlib import Path
from typing import Any, TypeVar

from revolute.errors import ArgumentError, RevoluteError, UnavailableError

from .blobs import Blobs
from .codec import checksum
from .interface import (
    MODEL,
    Conflict,
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

Result = TypeVar("Result")

SCHEMA = 1
"""Number of the format of the file; a larger one is a newer release's."""

_INLINE_BYTES = 16 * 1024
"""Largest payload inside the database; larger ones are cheaper to write and read as files."""

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

_ENTRY = "kind, key, version, sequence, created, expires, size, summary"


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
        self._readers = ThreadPoolExecutor(_READERS, "revolute-store-read")
        self._writer = threading.Thread(target=self._write_all, name="revolute-store-write", daemon=True)
        self._local = threading.local()
        self._connections: list[sqlite3.Connection] = []
        self.usage: dict[tuple[str, str], tuple[int, int]] = {}

    async def open(self) -> None:
        await self._run(self._prepare)
        # the event loop's own connection waits for nobody
        self._local.connection = self._connect(seconds=0.0)
        self._writer.start()

    async def get(self, kind: str, key: str) -> Record | None:
        # most requests are new, so that mostly there is nothing to read
        if await self.look(kind, key) is None:
            return None
        return await self._run(self._get, kind, key)

    async def look(self, kind: str, key: str) -> Entry | None:
        found = await self._read("WHERE kind = ? AND key = ?", kind, key)
        return found[0] if found else None

    async def commit(self, *writes: Write) -> None:
        job = _Job(writes)
        if any(isinstance(write, Put) and write.size > _INLINE_BYTES for write in writes):
            self._readers.submit(self._lay_down, job)
        else:
            self._lay_down(job)
        # what is given to the writer happens, even if nobody waits any more
        await asyncio.shield(asyncio.wrap_future(job.done))

    async def scan(self, kind: str, after: int = 0, limit: int = 1000) -> list[Entry]:
        where = "WHERE kind = ? AND sequence > ? ORDER BY sequence LIMIT ?"
        found = await self._read(where, kind, after, min(limit, _FEW))
        if len(found) < _FEW or limit == _FEW:
            return found
        return await self._run(self._select, where, kind, after, limit)

    async def newest(self, kind: str, limit: int) -> list[Entry]:
        where = "WHERE kind = ? ORDER BY sequence DESC LIMIT ?"
        return await self._run(self._select, where, kind, limit)

    async def expired(self, now: float, limit: int = 1000) -> list[Entry]:
        where = "WHERE expires IS NOT NULL AND expires <= ? ORDER BY expires LIMIT ?"
        return await self._run(self._select, where, now, limit)

    async def close(self) -> None:
        # these hand transactions to the writer
        await asyncio.to_thread(self._readers.shutdown)
        if self._writer.is_alive():
            self._jobs.put(None)
            await asyncio.to_thread(self._writer.join)
        for connection in self._connections:
            connection.close()

    async def _read(self, where: str, *values: Any) -> list[Entry]:
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
            self._path.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
            self._blobs = Blobs(self._path.with_name(f"{self._path.name}-blobs"), sync=self._sync)
            connection = self._connection()
            with _transaction(connection):
                found = connection.execute("PRAGMA user_version").fetchone()[0]
                tables = connection.execute("SELECT count(*) FROM sqlite_master").fetchone()[0]
                if not found and not tables:
                    for statement in _statements(_TABLES):
                        connection.execute(statement)
                    connection.execute(f"PRAGMA user_version = {SCHEMA}")
                elif found != SCHEMA:
                    raise _wrong_schema(self._path, found)
            self.usage = _usage(connection)
            self._blobs.remove_orphans(lambda name: _has_file(connection, name))
        except (sqlite3.Error, OSError) as error:
            raise ArgumentError.expected(
                "store",
                "an SQLite file of this server that can be written",
                f"{error} at {self._path}",
                advice="choose another file with --store",
            ) from error

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

    def _select(self, where: str, *values: Any) -> list[Entry]:
        with _faults("record", ""):
            rows = self._connection().execute(f"SELECT {_ENTRY} FROM records {where}", values)
            return [_entry(*row) for row in rows]

    def _get(self, kind: str, key: str) -> Record | None:
        query = f"SELECT {_ENTRY}, checksum, file, payload FROM records WHERE kind = ? AND key = ?"
        previous = None
        while True:
            with _faults(kind, key):
                row = self._connection().execute(query, (kind, key)).fetchone()
                if row is None:
                    return None
                *entry, digest, file, payload = row
                try:
                    content = payload if file is None else self._blobs.read(file)
                except FileNotFoundError:
                    # changed or deleted meanwhile, unless the row still says the same
                    if file == previous:
                        raise damaged(kind, key) from None
                    previous = file
                    continue
                if content is None or checksum(kind, key, (content,)) != digest:
                    raise damaged(kind, key)
                return Record(**vars(_entry(*entry)), payload=(content,))

    # writing

    def _lay_down(self, job: _Job) -> None:
        """Write the large payloads of a transaction as files, and hand it to the writer."""
        try:
            for place, write in enumerate(job.writes):
                if not isinstance(write, Put):
                    continue
                job.checksums[place] = checksum(write.kind, write.key, write.payload)
                if write.size > _INLINE_BYTES:
                    job.files[place] = self._blobs.write(write.payload)
            if job.files:
                self._blobs.sync_names()
        except BaseException as error:
            self._remove_files(list(job.files.values()))
            job.done.set_exception(_os_fault(error) if isinstance(error, OSError) else error)
        else:
            self._jobs.put(job)

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
            waiting = [job for job in jobs if job is not None]
            try:
                self._write_together(waiting)
            except BaseException as error:
                for job in waiting:
                    if not job.done.done():
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
        try:
            self._connection().execute("PRAGMA wal_checkpoint(RESTART)")
            gone = self._transact([job], failed)
        except (sqlite3.Error, OSError):
            failed[0] = _sql_fault(error)
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
        with _transaction(connection):
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
def _faults(kind: str, key: str) -> Iterator[None]:
    """Turn what goes wrong while a record is read into an error of ours."""
    try:
        yield
    except sqlite3.OperationalError as error:
        raise _sql_fault(error) from error
    except sqlite3.DatabaseError as error:
        raise damaged(kind, key) from error
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


def _entry(*row: Any) -> Entry:
    """Return the entry of a row of the columns _ENTRY."""
    *plain, summary = row
    names = (field.name for field in dataclasses.fields(Entry))
    return Entry(**dict(zip(names, (*plain, _summary(summary)), strict=True)))


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

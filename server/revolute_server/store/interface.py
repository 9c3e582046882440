"""The interface of a store: records by kind and key, changed in transactions.

A record has a version that grows by one with each change of its payload, so that a writer can ask for "this
version and no other" (compare and set); an expiry; a summary that listings give without reading the payload;
and a parent, a model that may not be deleted while anything refers to it. Everything in one `commit` happens
or nothing does.
"""

from __future__ import annotations

import abc
import contextlib
import dataclasses
import functools
import json
from collections.abc import Mapping, Sequence
from typing import Any

from revolute.contract.errors import DataLossError, LimitError, UnavailableError

from ..settings import format_bytes

MODEL, SESSION, TRAJECTORY, REQUEST, TOMBSTONE = "model", "session", "trajectory", "request", "tombstone"

COUNTED = (MODEL, SESSION, TRAJECTORY)
"""Kinds whose number and bytes are limited by refusal; the other two are trimmed instead."""

Payload = tuple[Any, ...]
"""Buffers that make up the payload one after the other; see `codec`."""

_MOST_TOGETHER = 256
"""Deletes of one transaction."""

LONGEST_SUMMARY = 16 * 1024
"""Characters of a summary as it is stored; earlier releases, which did not bound names, wrote longer ones."""


@dataclasses.dataclass(frozen=True)
class Entry:
    """What a listing says of a record.

    Attributes:
        kind: MODEL, SESSION, TRAJECTORY, REQUEST or TOMBSTONE.
        key: id among its kind.
        version: 1 for a new record, one more for each change of the payload.
        sequence: place in the order of creation; listings go on after it.
        created: UNIX time in s.
        expires: UNIX time in s after which the record is as good as gone; None for never.
        size: bytes of the payload.
        summary: a few plain values.
    """

    kind: str
    key: str
    version: int
    sequence: int
    created: float
    expires: float | None
    size: int
    summary: Mapping[str, Any]

    @property
    def owner(self) -> str:
        """Name of the caller who made it; empty where that is not known."""
        return str(self.summary.get("owner", ""))


@dataclasses.dataclass(frozen=True)
class Record(Entry):
    """A record that was read, its checksum verified."""

    payload: Payload


@dataclasses.dataclass(frozen=True)
class Put:
    """Write a record.

    Attributes:
        kind: its kind.
        key: its id.
        payload: its content.
        expires: as in Entry.
        summary: as in Entry.
        parent: id of a model that must exist and may not be deleted before this record.
        client: whose share of the limits it takes; of a record that is there, whoever made it.
        expect: version that must be there; 0 for a record that must not be there; None for whatever is there.
    """

    kind: str
    key: str
    payload: Payload
    expires: float | None = None
    summary: Mapping[str, Any] = dataclasses.field(default_factory=dict)
    parent: str = ""
    client: str = ""
    expect: int | None = None

    @functools.cached_property
    def size(self) -> int:
        """Bytes of the payload."""
        return sum(memoryview(part).nbytes for part in self.payload)


@dataclasses.dataclass(frozen=True)
class Touch:
    """Change when a record expires; its version stays."""

    kind: str
    key: str
    expires: float | None


@dataclasses.dataclass(frozen=True)
class Delete:
    """Remove a record.

    Attributes:
        kind: its kind.
        key: its id.
        expired_at: only if it has expired by this time.
    """

    kind: str
    key: str
    expired_at: float | None = None


Write = Put | Touch | Delete


class Conflict(Exception):  # noqa: N818
    """A record is not as a write of the transaction expects; nothing was changed.

    Attributes:
        kind: kind of the record.
        key: its id.
        referenced: it cannot be deleted, because other records have it as their parent.
    """

    def __init__(self, kind: str, key: str, *, referenced: bool = False) -> None:
        super().__init__(f"{kind} {key}")
        self.kind = kind
        self.key = key
        self.referenced = referenced


Usage = Mapping[tuple[str, str], tuple[int, int]]
"""Number and bytes of records by kind and client."""


@dataclasses.dataclass(frozen=True)
class Limits:
    """What may be kept of COUNTED kinds.

    Attributes:
        counts: number by kind.
        total: bytes of all of them together; None for no limit.
        client_counts: number of one client's by kind.
        client_total: bytes of one client's, all kinds together; None for no limit.
        requests: number of remembered requests; the oldest go when there are more. None for no limit.
        request_bytes: bytes of remembered requests, likewise.
    """

    counts: Mapping[str, int] = dataclasses.field(default_factory=dict)
    total: int | None = None
    client_counts: Mapping[str, int] = dataclasses.field(default_factory=dict)
    client_total: int | None = None
    requests: int | None = None
    request_bytes: int | None = None

    def check(self, usage: Usage, kind: str, client: str, count: int, size: int) -> None:
        """Refuse what does not fit.

        Args:
            usage: what is kept.
            kind: kind of the record that changes.
            client: whose it is.
            count: by how many its number changes.
            size: by how many its bytes change.

        Raises:
            LimitError: it does not fit.
        """
        if kind not in COUNTED:
            return
        if count > 0:
            most, mine = self.counts.get(kind), self.client_counts.get(kind)
            if mine is not None and usage.get((kind, client), (0, 0))[0] + count > mine:
                raise too_many(kind, mine, of_one_client=True)
            if most is not None and count_of(usage, kind) + count > most:
                raise too_many(kind, most)
        if size > 0:
            held = {key: used for key, (_, used) in usage.items() if key[0] in COUNTED}
            own = sum(used for (_, name), used in held.items() if name == client)
            if self.client_total is not None and own + size > self.client_total:
                raise too_large(kind, "client_memory", "of one client", self.client_total, own, size)
            if self.total is not None and sum(held.values()) + size > self.total:
                raise too_large(kind, "store_bytes", "kept", self.total, sum(held.values()), size)


def read_summary(text: str | bytes) -> dict[str, Any]:
    """Read a summary as it is stored; one that is damaged or longer than LONGEST_SUMMARY says nothing.

    A record without its summary keeps its payload, but has no owner: only admins see it.
    """
    try:
        found = json.loads(text) if len(text) <= LONGEST_SUMMARY else None
    except ValueError:
        found = None
    return found if isinstance(found, dict) else {}


def count_of(usage: Usage, kind: str) -> int:
    """Return the number of records of a kind."""
    return sum(count for (name, _), (count, _) in usage.items() if name == kind)


def bytes_of(usage: Usage, kind: str) -> int:
    """Return the bytes of the records of a kind."""
    return sum(size for (name, _), (_, size) in usage.items() if name == kind)


def add_to_usage(
    usage: dict[tuple[str, str], tuple[int, int]], kind: str, client: str, count: int, size: int
) -> None:
    """Count records of a client that have come, or with negative numbers gone."""
    number, held = usage.get((kind, client), (0, 0))
    usage[kind, client] = number + count, held + size
    if not number + count:
        del usage[kind, client]


class Store(abc.ABC):
    """A place for records.

    Attributes:
        in_memory: whether the records are in this process's memory, so that a cache in front is of no use.
        limits: what may be kept.
        usage: number and bytes by kind and client, as of the last look.
    """

    in_memory = False
    limits: Limits
    usage: Usage

    def count(self, kind: str) -> int:
        """Return the number of records of a kind, as of the last look."""
        return count_of(self.usage, kind)

    def check_room(self, kind: str, client: str, size: int) -> None:
        """Refuse early what would most likely not fit; `commit` says for sure.

        Raises:
            LimitError: one more record of this size would not fit.
        """
        self.limits.check(self.usage, kind, client, 1, size)

    @abc.abstractmethod
    async def open(self) -> None:
        """Make the store ready.

        Raises:
            ArgumentError: it is not a store, or one of a newer release.
            UnavailableError: it cannot be reached.
        """

    @abc.abstractmethod
    async def check(self) -> None:
        """Ask the store for a sign of life.

        Raises:
            RevoluteError: it cannot be used now.
        """

    @abc.abstractmethod
    async def get(self, kind: str, key: str) -> Record | None:
        """Read a record, expired ones too; None if there is none.

        Raises:
            DataLossError: its bytes are not those that were written.
            UnavailableError: the store cannot be reached.
        """

    @abc.abstractmethod
    async def look(self, kind: str, key: str) -> Entry | None:
        """Read what a listing says of a record; None if there is none."""

    @abc.abstractmethod
    async def commit(self, *writes: Write) -> None:
        """Carry out all writes or none; they are durable when this returns.

        Raises:
            Conflict: a record is not as a write expects.
            LimitError: a limit is met or the disk is full.
            UnavailableError: the store cannot be reached or written.
        """

    @abc.abstractmethod
    async def scan(self, kind: str, after: int = 0, limit: int = 1000) -> list[Entry]:
        """List records of a kind, oldest first, after a sequence number."""

    @abc.abstractmethod
    async def newest(self, kind: str, limit: int) -> list[Entry]:
        """List the newest records of a kind, newest first."""

    @abc.abstractmethod
    async def expired(self, now: float, limit: int = 1000) -> list[Entry]:
        """List records that have expired."""

    @abc.abstractmethod
    async def close(self) -> None:
        """Let go of files and connections; what is committed stays."""


async def delete_each(store: Store, deletes: Sequence[Delete]) -> None:
    """Delete many records, each if it is there and as the delete expects.

    They go in one transaction while nobody interferes, else one by one.
    """
    try:
        await store.commit(*deletes)
    except Conflict:
        for delete in deletes:
            with contextlib.suppress(Conflict):
                await store.commit(delete)


async def trim(store: Store, kind: str, keep: int | None, keep_bytes: int | None = None) -> None:
    """Delete the oldest records of a kind beyond a number and a number of bytes; None for no bound."""
    while True:
        surplus = 0 if keep is None else max(0, store.count(kind) - keep)
        heavy = 0 if keep_bytes is None else max(0, bytes_of(store.usage, kind) - keep_bytes)
        if not surplus and not heavy:
            return
        going: list[Delete] = []
        for entry in await store.scan(kind, limit=_MOST_TOGETHER):
            if len(going) >= surplus and heavy <= 0:
                break
            going.append(Delete(kind, entry.key))
            heavy -= entry.size
        if not going:
            return
        await delete_each(store, going)


def too_many(kind: str, most: int, *, of_one_client: bool = False) -> LimitError:
    """Return the error for one record of a kind too many."""
    plural = {"trajectory": "trajectories"}.get(kind, kind + "s")
    where, flag = ("of one client", "max-client") if of_one_client else ("on this server", "max")
    return LimitError(
        f"{plural}: expected at most {most} {where}, got one more; "
        f"delete one that is no longer needed, or start the server with a larger --{flag}-{plural}",
        argument=plural,
    )


def too_large(kind: str, name: str, whose: str, most: int, held: int, size: int) -> LimitError:
    """Return the error for a record that is too large for what is left."""
    flag = {"client_memory": "max-client-memory"}.get(name, name.replace("_", "-"))
    return LimitError(
        f"{name}: expected at most {format_bytes(most)} {whose}, "
        f"got {format_bytes(held)} and {format_bytes(size)} more for a {kind}; "
        f"delete trajectories or sessions, or start the server with a larger --{flag}",
        argument=name,
    )


def damaged(kind: str, key: str) -> DataLossError:
    """Return the error for a record whose bytes are not those that were written."""
    return DataLossError(
        f"{kind}_id: expected the {kind} as it was kept, got damaged bytes at {key!r}; "
        f"delete it and make it again",
        argument=f"{kind}_id",
    )


def disk_full(cause: str) -> LimitError:
    """Return the error for a disk without room."""
    return LimitError(
        f"store: expected room for what is to be kept, got a full disk ({cause}); "
        "delete trajectories, free disk space, or start the server with --store at another place",
        argument="store",
    )


def unwritable(cause: str) -> UnavailableError:
    """Return the error for a store that does not take what is written."""
    return UnavailableError(
        f"store: expected one that can be written, got {' '.join(cause.split())}; "
        "nothing was changed, call again later",
        argument="store",
    )


def silent(where: str) -> UnavailableError:
    """Return the error for a store that was asked to read and gave no answer."""
    return UnavailableError(
        f"store: expected an answer, got none from {where}; nothing was changed, call again later",
        argument="store",
    )


def unanswered(where: str) -> UnavailableError:
    """Return the error for a store that was asked to write and gave no answer."""
    return UnavailableError(
        f"store: expected an answer, got none from {where}; "
        "what was asked for may have happened: call again later under the same request_id",
        argument="store",
    )


def joined(payload: Sequence[Any]) -> bytes:
    """Return a payload as one piece."""
    return bytes(payload[0]) if len(payload) == 1 else b"".join(payload)

"""The interface of a store: records by kind and key, changed in transactions.

A record has
* a version, which grows by one with each change of the payload, for compare-and-set;
* a time of expiry;
* a summary, which listings return without reading the payload;
* a parent: a model that cannot be deleted while a record refers to it.

All writes of one `commit` happen, or none.
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
"""Kinds with limits: a new record beyond a limit is refused. Of others, the oldest records are deleted."""

Payload = tuple[Any, ...]
"""Consecutive buffers of a payload; see `codec`."""

_MOST_TOGETHER = 256
"""Largest number of deletes in one transaction."""

CLIENT = "client"
"""Name of the client in the summary of a remembered request."""

LONGEST_SUMMARY = 16 * 1024
"""Longest summary in characters; earlier releases, which did not limit names, wrote longer ones."""


@dataclasses.dataclass(frozen=True)
class Entry:
    """A record without its payload, as in listings.

    Attributes:
        kind: MODEL, SESSION, TRAJECTORY, REQUEST or TOMBSTONE.
        key: id, unique within its kind.
        version: 1 for a new record; grows by one with each change of the payload.
        sequence: number in the order of creation; listings continue after it.
        created: UNIX time of creation in s.
        expires: UNIX time in s after which the record counts as deleted; None for never.
        size: size of the payload in bytes.
        summary: a few plain values.
        parent: id of the model that must outlive it; empty for none.
        client: client whose limits it counts towards.
    """

    kind: str
    key: str
    version: int
    sequence: int
    created: float
    expires: float | None
    size: int
    summary: Mapping[str, Any]
    parent: str
    client: str

    @property
    def owner(self) -> str:
        """Name of the caller who created it; empty if unknown."""
        return str(self.summary.get("owner", ""))


@dataclasses.dataclass(frozen=True)
class Record(Entry):
    """A record with its payload, whose checksum was verified."""

    payload: Payload


@dataclasses.dataclass(frozen=True)
class Put:
    """Write a record.

    Attributes:
        kind: kind of the record.
        key: id of the record.
        payload: new content.
        expires: as in Entry.
        summary: as in Entry.
        parent: id of a model, which must exist and cannot be deleted before this record.
        client: client whose limits a new record counts towards; an existing record keeps its client.
        expect: version that the existing record must have; 0 if there must be none; None for any.
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
    """Change the expiry of a record, without a new version."""

    kind: str
    key: str
    expires: float | None


@dataclasses.dataclass(frozen=True)
class Delete:
    """Delete a record.

    Attributes:
        kind: kind of the record.
        key: id of the record.
        expired_at: delete it only if it has expired by this UNIX time in s; None to delete it in any case.
    """

    kind: str
    key: str
    expired_at: float | None = None


Write = Put | Touch | Delete


class Conflict(Exception):  # noqa: N818
    """A record is not in the state that a write expects; the transaction changed nothing.

    Attributes:
        kind: kind of the record.
        key: id of the record.
        referenced: whether it cannot be deleted because it is the parent of other records.
    """

    def __init__(self, kind: str, key: str, *, referenced: bool = False) -> None:
        super().__init__(f"{kind} {key}")
        self.kind = kind
        self.key = key
        self.referenced = referenced


Usage = Mapping[tuple[str, str], tuple[int, int]]
"""Number and bytes of records, by (kind, client)."""


@dataclasses.dataclass(frozen=True)
class Limits:
    """Limits on the records of COUNTED kinds and on remembered requests.

    Attributes:
        counts: largest number of records, by kind.
        total: most bytes of all records together; None for no limit.
        client_counts: largest number of records of one client, by kind.
        client_total: most bytes of all records of one client; None for no limit.
        requests: largest number of remembered requests, beyond which the oldest are deleted; None for no
            limit.
        request_bytes: most bytes of remembered requests, beyond which the oldest are deleted; None for no
            limit.
    """

    counts: Mapping[str, int] = dataclasses.field(default_factory=dict)
    total: int | None = None
    client_counts: Mapping[str, int] = dataclasses.field(default_factory=dict)
    client_total: int | None = None
    requests: int | None = None
    request_bytes: int | None = None

    def check(self, usage: Usage, kind: str, client: str, count: int, size: int) -> None:
        """Check that a change stays within the limits.

        Args:
            usage: present number and bytes of records.
            kind: kind of the record that changes.
            client: client of the record.
            count: change of the number of records.
            size: change of the bytes.

        Raises:
            LimitError: it would exceed a limit.
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
            used = {key: bytes_used for key, (_, bytes_used) in usage.items() if key[0] in COUNTED}
            own = sum(count for (_, name), count in used.items() if name == client)
            if self.client_total is not None and own + size > self.client_total:
                raise too_large(kind, "client_memory", "of one client", self.client_total, own, size)
            if self.total is not None and sum(used.values()) + size > self.total:
                raise too_large(kind, "store_bytes", "kept", self.total, sum(used.values()), size)


def read_summary(text: str | bytes) -> dict[str, Any]:
    """Parse a stored summary; return an empty one if it is damaged or longer than LONGEST_SUMMARY.

    A record with an empty summary keeps its payload but has no owner, so that only admins see it.
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
    """Add records of a client to the usage, or subtract them with negative numbers."""
    number, held = usage.get((kind, client), (0, 0))
    usage[kind, client] = number + count, held + size
    if not number + count:
        del usage[kind, client]


class Store(abc.ABC):
    """A store of records.

    Attributes:
        in_memory: whether the records are in this process's memory, which makes a cache useless.
        limits: limits on the records.
        usage: number and bytes by kind and client, as last seen.
    """

    in_memory = False
    limits: Limits
    usage: Usage

    def count(self, kind: str) -> int:
        """Return the number of records of a kind, as last seen."""
        return count_of(self.usage, kind)

    def check_room(self, kind: str, client: str, size: int) -> None:
        """Check early whether a record would fit; `commit` checks it again.

        Raises:
            LimitError: one more record of this size would exceed a limit.
        """
        self.limits.check(self.usage, kind, client, 1, size)

    @abc.abstractmethod
    async def open(self) -> None:
        """Open the store.

        Raises:
            ArgumentError: its format is unknown or that of a newer release.
            UnavailableError: it cannot be reached.
        """

    @abc.abstractmethod
    async def check(self) -> None:
        """Check that the store answers.

        Raises:
            RevoluteError: it cannot be used now.
        """

    @abc.abstractmethod
    async def get(self, kind: str, key: str) -> Record | None:
        """Return a record, even if it has expired; None if it does not exist.

        Raises:
            DataLossError: the record is damaged.
            UnavailableError: the store cannot be reached.
        """

    @abc.abstractmethod
    async def look(self, kind: str, key: str) -> Entry | None:
        """Return a record without its payload; None if there is none."""

    @abc.abstractmethod
    async def commit(self, *writes: Write) -> None:
        """Carry out all writes or none; they are durable when this returns.

        Raises:
            Conflict: a record is not in the state that a write expects.
            LimitError: a limit would be exceeded, or the disk is full.
            UnavailableError: the store cannot be reached or written.
        """

    @abc.abstractmethod
    async def scan(self, kind: str, after: int = 0, limit: int = 1000) -> list[Entry]:
        """Return records of a kind after a sequence number, oldest first."""

    @abc.abstractmethod
    async def newest(self, kind: str, limit: int) -> list[Entry]:
        """Return the newest records of a kind, newest first."""

    @abc.abstractmethod
    async def expired(self, now: float, limit: int = 1000) -> list[Entry]:
        """Return records that have expired by a UNIX time in s."""

    @abc.abstractmethod
    async def close(self) -> None:
        """Close files and connections; committed records stay."""


async def delete_each(store: Store, deletes: Sequence[Delete]) -> None:
    """Delete many records; skip those that are not in the state that the delete expects.

    All go in one transaction; after a conflict each goes in its own.
    """
    try:
        await store.commit(*deletes)
    except Conflict:
        for delete in deletes:
            with contextlib.suppress(Conflict):
                await store.commit(delete)


async def trim(store: Store, kind: str, keep: int | None, keep_bytes: int | None = None) -> None:
    """Delete old records of a kind beyond a number or a number of bytes; None for no limit.

    Clients with more than an equal share of the limit lose their oldest records, so that no client can
    displace the records of others. The summary of a record names its client.
    """
    after = 0
    while True:
        excess = Excess.of(store.usage, kind, keep, keep_bytes)
        if not excess:
            return
        found = await store.scan(kind, after, _MOST_TOGETHER)
        if not found:
            return
        await delete_each(store, [Delete(kind, entry.key) for entry in found if excess.take(entry)])
        after = found[-1].sequence


@dataclasses.dataclass
class Excess:
    """Records and bytes to delete until a kind is within its limits.

    Attributes:
        count: number of records to delete.
        size: bytes to delete.
        clients: number and bytes beyond an equal share, for each client with more than that.
    """

    count: int
    size: int
    clients: dict[str, list[float]]

    @classmethod
    def of(cls, usage: Usage, kind: str, keep: int | None, keep_bytes: int | None, each: int = 0) -> Excess:
        """Return the excess over the limits; `each` is added to the bytes of a record."""
        held = {name: (n, size + each * n) for (other, name), (n, size) in usage.items() if other == kind}
        count = 0 if keep is None else max(0, sum(n for n, _ in held.values()) - keep)
        size = 0 if keep_bytes is None else max(0, sum(own for _, own in held.values()) - keep_bytes)
        if not count and not size:
            return cls(0, 0, {})
        shares = (keep or 0) / max(1, len(held)), (keep_bytes or 0) / max(1, len(held))
        beyond = {
            name: [(n - shares[0]) * (count > 0), (held_bytes - shares[1]) * (size > 0)]
            for name, (n, held_bytes) in held.items()
        }
        return cls(count, size, {name: most for name, most in beyond.items() if max(most) > 0})

    def __bool__(self) -> bool:
        return self.count > 0 or self.size > 0

    def take(self, entry: Entry) -> bool:
        """Tell whether a record must be deleted, and subtract it from the excess."""
        beyond = self.clients.get(str(entry.summary.get(CLIENT, "")))
        if not self or beyond is None or max(beyond) <= 0:
            return False
        self.count -= 1
        self.size -= entry.size
        beyond[0] -= 1
        beyond[1] -= entry.size
        return True


def too_many(kind: str, most: int, *, of_one_client: bool = False) -> LimitError:
    """Return the error for a record beyond the limit on their number."""
    plural = {"trajectory": "trajectories"}.get(kind, kind + "s")
    where, flag = ("of one client", "max-client") if of_one_client else ("on this server", "max")
    return LimitError(
        f"{plural}: expected at most {most} {where}, got one more; "
        f"delete one that is no longer needed, or start the server with a larger --{flag}-{plural}",
        argument=plural,
    )


def too_large(kind: str, name: str, whose: str, most: int, held: int, size: int) -> LimitError:
    """Return the error for a record beyond a limit on bytes."""
    flag = {"client_memory": "max-client-memory"}.get(name, name.replace("_", "-"))
    return LimitError(
        f"{name}: expected at most {format_bytes(most)} {whose}, "
        f"got {format_bytes(held)} and {format_bytes(size)} more for a {kind}; "
        f"delete trajectories or sessions, or start the server with a larger --{flag}",
        argument=name,
    )


def damaged(kind: str, key: str) -> DataLossError:
    """Return the error for a record whose checksum does not match."""
    return DataLossError(
        f"{kind}_id: expected the {kind} as it was kept, got damaged bytes at {key!r}; "
        f"delete it and make it again",
        argument=f"{kind}_id",
    )


def disk_full(cause: str) -> LimitError:
    """Return the error for a full disk."""
    return LimitError(
        f"store: expected room for what is to be kept, got a full disk ({cause}); "
        "delete trajectories, free disk space, or start the server with --store at another place",
        argument="store",
    )


def unwritable(cause: str) -> UnavailableError:
    """Return the error for a store that cannot be written."""
    return UnavailableError(
        f"store: expected one that can be written, got {' '.join(cause.split())}; "
        "nothing was changed, call again later",
        argument="store",
    )


def silent(where: str) -> UnavailableError:
    """Return the error for a store that did not answer a read."""
    return UnavailableError(
        f"store: expected an answer, got none from {where}; nothing was changed, call again later",
        argument="store",
    )


def unanswered(where: str) -> UnavailableError:
    """Return the error for a store that did not answer a write, which it may have carried out."""
    return UnavailableError(
        f"store: expected an answer, got none from {where}; "
        "what was asked for may have happened: call again later under the same request_id",
        argument="store",
    )


def joined(payload: Sequence[Any]) -> bytes:
    """Return a payload as one bytes object."""
    return bytes(payload[0]) if len(payload) == 1 else b"".join(payload)

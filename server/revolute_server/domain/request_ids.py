"""Idempotency: a mutation that is repeated under its `request_id` has one effect and one answer.

The record of a request and its effect are committed in one transaction, so that after a crash there are
either both or none. A repeat finds the record and returns its answer. A repeat during the first call waits
for it. If two replicas share a store, the transaction of the slower one fails, and it returns the answer of
the faster one. A failed request has no effect and no record, and may be repeated.
"""

from __future__ import annotations

import asyncio
import contextlib
import dataclasses
import re
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from typing import Any, TypeVar

from revolute.contract.errors import ArgumentError, NotFoundError

from ..access.call import current_client
from ..access.caller import ANONYMOUS, current_caller
from ..store import REQUEST, Conflict, Put, Store, bytes_of
from ..store.codec import decode, encode, fingerprint
from ..store.interface import CLIENT, Payload
from ..store.split import request_key

Document = dict[str, Any]
Result = TypeVar("Result")

_REQUEST_ID = re.compile(r"[\x21-\x7e]{1,128}")


@dataclasses.dataclass(frozen=True)
class Ticket:
    """Identity of a request; its record is committed together with the effect of the mutation.

    Attributes:
        key: key of the record; empty for a request without an id.
        fingerprint: hash of the request.
        ttl: time in s for which the request is remembered.
        answer: makes the recorded answer from the result of the mutation.
    """

    key: str = ""
    fingerprint: str = ""
    ttl: float = 0.0
    answer: Callable[[Any], Document] = lambda _result: {}

    def writes(self, result: Any, payload: Payload | None = None) -> tuple[Put, ...]:
        """Return the write of the request's record; empty if the request has no id.

        Args:
            result: result of the mutation.
            payload: payload of the record, if it equals one that the mutation writes and contains the
                fingerprint; the store then writes it once.
        """
        if not self.key:
            return ()
        if payload is None:
            payload = encode({"fingerprint": self.fingerprint, "answer": self.answer(result)})
        return (_put(self.key, payload, time.time() + self.ttl, expect=0),)


@dataclasses.dataclass(frozen=True)
class KeptAnswer:
    """A large answer that is kept in case its request is repeated.

    Attributes:
        key: key of the record.
        fingerprint: hash of the request.
        expires: UNIX time in s until which the request is remembered.
        size: size of the record in bytes.
    """

    key: str
    fingerprint: str
    expires: float | None
    size: int

    def drop(self) -> Put:
        """Return the write that drops the answer, but still records that the request was carried out."""
        payload = encode({"fingerprint": self.fingerprint, "forgotten": True})
        return _put(self.key, payload, self.expires)


def _put(key: str, payload: Payload, expires: float | None, expect: int | None = None) -> Put:
    """Return the write of a record; the summary names its client for `trim`."""
    client = current_client()
    summary = {CLIENT: client}
    return Put(REQUEST, key, payload, expires=expires, summary=summary, client=client, expect=expect)


class Requests:
    """The remembered requests.

    Args:
        store: the store.
        ttl: time in s for which requests are remembered.
    """

    def __init__(self, store: Store, ttl: float) -> None:
        self._store = store
        self._ttl = ttl
        self._running: dict[str, tuple[str, asyncio.Future[None]]] = {}

    @property
    def kept_bytes(self) -> int:
        """Size in bytes of the remembered requests and their answers."""
        return bytes_of(self._store.usage, REQUEST)

    def __len__(self) -> int:
        return self._store.count(REQUEST)

    async def once(
        self,
        request_id: str,
        verb: str,
        arguments: Mapping[str, Any],
        act: Callable[[Ticket], Awaitable[Result]],
        answer: Callable[[Result], Document],
        record: Callable[[Result], Document] | None = None,
        replay: Callable[[Document], Awaitable[Document]] | None = None,
    ) -> Document:
        """Carry out a mutation once; for a repeat return the first answer.

        Args:
            request_id: id that the client chose; empty for none.
            verb: name of the rpc.
            arguments: all fields of the request.
            act: the mutation; commits the writes of the ticket with its effect.
            answer: makes the answer from the result.
            record: makes the recorded document from the result; by default the answer.
            replay: makes the answer from the recorded document; by default they are equal.

        Raises:
            ArgumentError: the id is malformed, or belongs to another request.
        """
        while True:
            async with self.open(request_id, verb, arguments, record or answer) as (ticket, remembered):
                if remembered is not None:
                    return await replay(remembered) if replay else remembered
                try:
                    return answer(await act(ticket))
                except Conflict as conflict:
                    # another replica was faster: return its answer
                    if (conflict.kind, conflict.key) != (REQUEST, ticket.key):
                        raise

    @contextlib.asynccontextmanager
    async def open(
        self,
        request_id: str,
        verb: str,
        arguments: Mapping[str, Any],
        record: Callable[[Any], Document],
    ) -> AsyncIterator[tuple[Ticket, Document | None]]:
        """Lock a request: repeats of it in this process wait until the block ends.

        Args:
            request_id: as for `once`.
            verb: as for `once`.
            arguments: as for `once`.
            record: makes the recorded document from the result.

        Yields:
            The ticket, and the recorded document of the first call; None if this is the first.

        Raises:
            ArgumentError: the id is malformed, or belongs to another request.
        """
        if not request_id:
            yield Ticket(), None
            return
        key = request_key(_key(request_id), arguments)
        ticket = Ticket(key, fingerprint(verb, arguments), self._ttl, record)
        while (first := self._running.get(ticket.key)) is not None:
            _check_same(request_id, ticket.fingerprint, first[0])
            await asyncio.wait([first[1]])
        done: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._running[ticket.key] = ticket.fingerprint, done
        try:
            yield ticket, await self._recall(request_id, ticket)
        finally:
            del self._running[ticket.key]
            done.set_result(None)

    async def _recall(self, request_id: str, ticket: Ticket) -> Document | None:
        """Return the recorded document of a request; None if the request is new."""
        record = await self._store.get(REQUEST, ticket.key)
        if record is None:
            return None
        found = decode(record.payload)
        _check_same(request_id, ticket.fingerprint, found["fingerprint"])
        if found.get("forgotten"):
            raise NotFoundError(
                f"request_id: expected a request whose answer is still kept, got {request_id!r}, which was "
                "carried out before newer ones of its session; read the state as it is now",
                argument="request_id",
            )
        answer: Document = found.get("answer", found)
        return answer


def _key(request_id: str) -> str:
    """Return the key of a request's record; each token has its own ids."""
    if not _REQUEST_ID.fullmatch(request_id):
        raise ArgumentError.expected(
            "request_id", "1 to 128 printable ASCII characters", repr(request_id[:40]), advice="send a UUID"
        )
    caller = current_caller()
    return request_id if caller is ANONYMOUS else f"{caller.name} {request_id}"


def _check_same(request_id: str, now: str, first: str) -> None:
    if now != first:
        raise ArgumentError.expected(
            "request_id",
            "an id of this request alone",
            f"{request_id!r} of another one",
            advice="give each call an id of its own, e.g. a UUID, and repeat it only with the same content",
        )

"""Exactly once: a mutation that is repeated under its `request_id` has one effect and one answer.

The record of a request is committed with its effect, in one transaction, so that neither is there without the
other, whatever crashes. A repeat finds the record and gets its answer; a repeat that comes while the first is
still under way waits for it; in a store that replicas share, the transaction of the slower one fails and it
gives the answer of the faster. What failed had no effect, is not recorded, and may be tried again.
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

from ..access.caller import ANONYMOUS, current_caller
from ..store import REQUEST, Conflict, Put, Store, bytes_of
from ..store.codec import decode, encode, fingerprint
from ..store.interface import Payload

Document = dict[str, Any]
Result = TypeVar("Result")

_REQUEST_ID = re.compile(r"[\x21-\x7e]{1,128}")


@dataclasses.dataclass(frozen=True)
class Ticket:
    """What a mutation commits together with its effect.

    Attributes:
        key: name of the record; empty for a request that has no id.
        fingerprint: hash of the request.
        ttl: seconds for which it is remembered.
        answer: makes the recorded answer from what the mutation results in.
    """

    key: str = ""
    fingerprint: str = ""
    ttl: float = 0.0
    answer: Callable[[Any], Document] = lambda _result: {}

    def writes(self, result: Any, payload: Payload | None = None) -> tuple[Put, ...]:
        """Return the record of the request, or nothing if it has no id.

        Args:
            result: of the mutation.
            payload: what is recorded, where it is what the mutation keeps anyway, with the fingerprint in it;
                the store then need not write it twice.
        """
        if not self.key:
            return ()
        if payload is None:
            payload = encode({"fingerprint": self.fingerprint, "answer": self.answer(result)})
        return (Put(REQUEST, self.key, payload, expires=time.time() + self.ttl, expect=0),)


@dataclasses.dataclass(frozen=True)
class KeptAnswer:
    """A large answer that is kept in case its request is repeated.

    Attributes:
        key: name of the record.
        fingerprint: hash of the request.
        expires: UNIX time in s until which the request is remembered.
        size: bytes of the record.
    """

    key: str
    fingerprint: str
    expires: float | None
    size: int

    def let_go(self) -> Put:
        """Return the write that lets the answer go; that the request was carried out stays known."""
        payload = encode({"fingerprint": self.fingerprint, "forgotten": True})
        return Put(REQUEST, self.key, payload, expires=self.expires)


class Requests:
    """The requests that are remembered.

    Args:
        store: where.
        ttl: seconds for which.
    """

    def __init__(self, store: Store, ttl: float) -> None:
        self._store = store
        self._ttl = ttl
        self._running: dict[str, tuple[str, asyncio.Future[None]]] = {}

    @property
    def kept_bytes(self) -> int:
        """Bytes of the requests that are remembered, with their answers."""
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
        again: Callable[[Document], Awaitable[Document]] | None = None,
    ) -> Document:
        """Carry out a mutation, or give the answer of the first time.

        Args:
            request_id: the client's name for it; empty for none.
            verb: name of the rpc.
            arguments: all that the request says.
            act: the mutation; commits the writes of the ticket with its effect.
            answer: makes the answer.
            record: makes what is remembered of it; by default the answer.
            again: makes the answer from what is remembered; by default that is the answer.

        Raises:
            ArgumentError: the id is malformed, or belongs to another request.
        """
        while True:
            async with self.open(request_id, verb, arguments, record or answer) as (ticket, remembered):
                if remembered is not None:
                    return await again(remembered) if again else remembered
                try:
                    return answer(await act(ticket))
                except Conflict as conflict:
                    # another replica has carried it out meanwhile
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
        """Hold a request's turn: nobody else in this process carries out the same one meanwhile.

        Args:
            request_id: as for `once`.
            verb: likewise.
            arguments: likewise.
            record: makes what is remembered.

        Yields:
            The ticket, and what is remembered of the first time; None if this is the first.

        Raises:
            ArgumentError: the id is malformed, or belongs to another request.
        """
        if not request_id:
            yield Ticket(), None
            return
        ticket = Ticket(_key(request_id), fingerprint(verb, arguments), self._ttl, record)
        while (under_way := self._running.get(ticket.key)) is not None:
            _check_same(request_id, ticket.fingerprint, under_way[0])
            await asyncio.wait([under_way[1]])
        done: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._running[ticket.key] = ticket.fingerprint, done
        try:
            yield ticket, await self._recall(request_id, ticket)
        finally:
            del self._running[ticket.key]
            done.set_result(None)

    async def _recall(self, request_id: str, ticket: Ticket) -> Document | None:
        """Return what is remembered of a request, its answer or all that was kept; None if it is new."""
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
    """Return the name of a request's record; callers with tokens have names of their own."""
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

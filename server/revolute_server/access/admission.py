"""Admission of calls on every transport: each gets an id, is let in or refused, counted and logged.

A transport opens a call before it reads the request and closes it when the answer is sent.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
import math
import re
import secrets
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import AbstractContextManager, contextmanager, nullcontext
from typing import Any

from revolute.contract.errors import UnavailableError
from revolute.contract.verbs import BY_RPC

from .call import Call, current_call, set_call
from .caller import set_caller
from .tokens import HEALTH, METRICS, STATUS, Access

_log = logging.getLogger("revolute.access")

CALL_ID_HEADER = "x-request-id"
"""Header and metadata with a call's id; a client may choose it, the answer always has it."""

_QUIET = (HEALTH, METRICS, STATUS)
_CALL_ID = re.compile(r"[A-Za-z0-9._-]{1,64}")


def _not_recorded(_call: Call, _headers: Mapping[str, str]) -> AbstractContextManager[None]:
    return nullcontext()


class Calls:
    """The calls of a server: admits, counts and logs them.

    Args:
        access: decides who may call what.
        record: context manager of a call and its headers, which counts and times the call.
        check_workers: raises a LimitError when no more calls can wait for a worker of the engine.

    Attributes:
        draining: whether new calls are refused.
        ending: whether calls that are cancelled end because the server does.
    """

    def __init__(
        self,
        access: Access,
        record: Callable[[Call, Mapping[str, str]], AbstractContextManager[None]] = _not_recorded,
        check_workers: Callable[[], None] = lambda: None,
    ) -> None:
        self.access = access
        self._check_workers = check_workers
        self._record = record
        self.draining = False
        self.ending = False
        self.running = 0
        self._tasks: set[asyncio.Task[Any]] = set()
        self._last = -math.inf
        self._idle = asyncio.Event()
        self._idle.set()

    @contextmanager
    def open(
        self,
        transport: str,
        headers: Mapping[str, str],
        verb: str = "unknown",
        *,
        host: str = "",
        seconds: float | None = None,
    ) -> Iterator[Call]:
        """Run a block as one call.

        Args:
            transport: "grpc" or "http".
            headers: headers or metadata by lower-case name.
            verb: what is called, if it is known yet.
            host: address of the client.
            seconds: time until the client gives up; None for no limit.
        """
        call = Call(_call_id(headers.get(CALL_ID_HEADER)), transport, verb)
        call.peer = host
        if seconds is not None:
            call.deadline = call.started + seconds
        set_call(call)
        self.running += 1
        self._idle.clear()
        try:
            with self._record(call, headers):
                try:
                    yield call
                except asyncio.CancelledError:
                    call.reason = "CANCELLED"
                    raise
        finally:
            self.running -= 1
            self._last = time.monotonic()
            if self.running == 0:
                self._idle.set()
            self._finish(call)

    def admit(self, call: Call, authorization: str | None, *, while_draining: bool = False) -> None:
        """Let a call in, or refuse it.

        Args:
            call: the call, its verb known.
            authorization: value of the header or metadata `authorization`.
            while_draining: whether it is answered while the server drains.

        Raises:
            UnauthenticatedError: no token, or an unknown one.
            PermissionDeniedError: the caller's role does not allow the verb.
            UnavailableError: the server is draining.
        """
        call.caller = self.access.admit(call.verb, authorization)
        set_caller(call.caller)
        if self.draining and not while_draining:
            raise UnavailableError(
                "server: expected a running server, got one that is draining; call again later"
            )

    def check_room(self) -> None:
        """Refuse the call that runs now if it needs a worker of the engine and none will be free.

        Asked before its request is read: to read what is refused would take half the time of a refusal.

        Raises:
            LimitError: the queue for workers is full.
            UnavailableError: the server is stopping.
        """
        call = current_call()
        if call is not None and (verb := BY_RPC.get(call.verb)) is not None and verb.computes:
            self._check_workers()

    async def idle(self) -> None:
        """Wait until no call runs."""
        await self._idle.wait()

    async def quiet(self, seconds: float, limit: float) -> None:
        """Wait until no call has come for a while.

        Whoever had an answer from a draining server may call once more at once; that call shall be refused
        with a reason, not cut off.

        Args:
            seconds: without a call.
            limit: seconds that are waited at most.
        """
        until = time.monotonic() + limit
        while (now := time.monotonic()) < until and (self.running or now - self._last < seconds):
            await asyncio.sleep(0.02)

    @contextmanager
    def cancelled_at_the_end(self) -> Iterator[None]:
        """Let `end` cancel the task that runs the block."""
        task = asyncio.current_task()
        assert task is not None
        self._tasks.add(task)
        try:
            yield
        finally:
            self._tasks.discard(task)

    async def end(self, seconds: float) -> None:
        """Wait so many seconds until no call runs, then cancel those that asked for it.

        Left to the library, calls over gRPC would end as CANCELLED, which looks like the client's own doing.
        """
        with contextlib.suppress(asyncio.TimeoutError):
            await asyncio.wait_for(self.idle(), seconds)
        self.ending = True
        for task in self._tasks:
            task.cancel()

    def _finish(self, call: Call) -> None:
        level = logging.DEBUG if call.verb in _QUIET else logging.INFO
        if _log.isEnabledFor(level):
            seconds = time.monotonic() - call.started
            _log.log(
                level,
                "%s %s over %s in %.1f ms",
                call.verb,
                call.reason,
                call.transport,
                1e3 * seconds,
                extra={
                    "verb": call.verb,
                    "reason": call.reason,
                    "transport": call.transport,
                    "milliseconds": round(1e3 * seconds, 3),
                },
            )


def _call_id(given: str | None) -> str:
    """Return the client's id for a call if it is harmless in a log, else a new one."""
    return given if given and _CALL_ID.fullmatch(given) else secrets.token_hex(8)

"""Admission of calls on all transports: gives each call an id, admits or refuses it, counts it and logs it.

A transport opens a call before it reads the request, and closes it when the answer is sent.
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

from ..time_limit import within
from .call import Call, current_call, set_call
from .caller import set_caller
from .rates import Rates
from .tokens import HEALTH, METRICS, STATUS, Access

_log = logging.getLogger("revolute.access")

CALL_ID_HEADER = "x-request-id"
"""HTTP header and gRPC metadata key of a call's id. A client may choose the id; every answer has it."""

_QUIET = (HEALTH, METRICS, STATUS)
_STEP = "Environment.step"
_CALL_ID = re.compile(r"[A-Za-z0-9._-]{1,64}")


def _not_recorded(_call: Call, _headers: Mapping[str, str]) -> AbstractContextManager[None]:
    return nullcontext()


class Calls:
    """Admits, counts and logs the calls of a server.

    Args:
        access: checks tokens and roles.
        record: takes a call and its headers, returns a context manager that counts and times the call.
        check_workers: raises a LimitError when the queue for engine workers is full.
        rates: bounds the calls and steps of each client per second; None for no bound.

    Attributes:
        draining: whether new calls are refused.
        ending: whether running calls are cancelled because the server stops.
        running: number of running calls.
    """

    def __init__(
        self,
        access: Access,
        record: Callable[[Call, Mapping[str, str]], AbstractContextManager[None]] = _not_recorded,
        check_workers: Callable[[], None] = lambda: None,
        rates: Rates | None = None,
    ) -> None:
        self.access = access
        self._rates = rates or Rates()
        self._check_workers = check_workers
        self._record = record
        self.draining = False
        self.ending = False
        self.running = 0
        self._tasks: set[asyncio.Task[Any]] = set()
        self._last_end = -math.inf
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
            verb: name of the verb, if it is known yet.
            host: address of the client.
            seconds: time until the client's deadline; None for no deadline.
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
            self._last_end = time.monotonic()
            if self.running == 0:
                self._idle.set()
            self._finish(call)

    def admit(self, call: Call, authorization: str | None, *, while_draining: bool = False) -> None:
        """Admit a call and set its caller, or refuse it.

        Args:
            call: the call; its verb is known.
            authorization: value of the header or metadata `authorization`.
            while_draining: whether the call is admitted while the server drains.

        Raises:
            UnauthenticatedError: the token is missing or unknown.
            PermissionDeniedError: the caller's role does not allow the verb.
            UnavailableError: the server is draining.
            LimitError: the caller makes too many calls, or takes too many steps, per second.
        """
        call.caller = self.access.admit(call.verb, authorization)
        set_caller(call.caller)
        if self.draining and not while_draining:
            raise UnavailableError(
                "server: expected a running server, got one that is draining; call again later"
            )
        if call.verb not in _QUIET:
            verb = BY_RPC.get(call.verb)
            self._rates.admit(computes=verb.computes if verb else call.verb == _STEP)

    def check_room(self) -> None:
        """Refuse the current call if it needs an engine worker and the queue for workers is full.

        Transports ask before they read the request; reading it would double the cost of a refusal.

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
        """Wait until no call has run for a while.

        A client often calls again right after an answer. A draining server stays up a little longer, so that
        it refuses such a call with a reason and does not cut the connection.

        Args:
            seconds: time without a call.
            limit: longest wait in s.
        """
        until = time.monotonic() + limit
        while (now := time.monotonic()) < until and (self.running or now - self._last_end < seconds):
            await asyncio.sleep(0.02)

    @contextmanager
    def cancelled_at_the_end(self) -> Iterator[None]:
        """Register the current task for the length of the block, so that `end` cancels it."""
        task = asyncio.current_task()
        assert task is not None
        self._tasks.add(task)
        try:
            yield
        finally:
            self._tasks.discard(task)

    async def end(self, seconds: float) -> None:
        """Wait until no call runs, at most `seconds`, then cancel the registered tasks.

        gRPC itself would end such calls with CANCELLED, as if the client had cancelled them.
        """
        with contextlib.suppress(asyncio.TimeoutError):
            await within(seconds, self.idle())
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
    """Return the client's id of a call if it is safe to log, else a new one."""
    return given if given and _CALL_ID.fullmatch(given) else secrets.token_hex(8)

"""What every call goes through on both transports: it gets an id, is let in or refused, counted and logged.

A transport opens a `Call` before it reads the request and closes it when the answer is sent. The call that
runs now is known to everything below it, so that a log line or an error can name it.
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
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass, field
from typing import Any

from revolute.errors import UnavailableError

from .auth import HEALTH, METRICS, STATUS, Access
from .callers import ANONYMOUS, Caller, set_caller
from .offered_memory import Offer
from .telemetry import Telemetry

_log = logging.getLogger("revolute.access")

CALL_ID_HEADER = "x-request-id"
"""Header and metadata with a call's id; a client may choose it, the answer always has it."""

_COMPUTING = frozenset(
    {
        *(f"SessionService.{method}" for method in ("Step", "Jacobian")),
        *(f"TrajectoryService.{method}" for method in ("Rollout", "StreamRollout", "Backward", "Jvp")),
        *(f"TrajectoryService.{method}" for method in ("ValueAndGradient", "Jacobian", "CheckGradient")),
    }
)
"""Verbs that need a worker of the engine, whatever the request says."""

_QUIET = (HEALTH, METRICS, STATUS)
_CALL_ID = re.compile(r"[A-Za-z0-9._-]{1,64}")


@dataclass
class Call:
    """One call, from its first byte to the last one of its answer.

    Attributes:
        id: name in logs and errors.
        transport: "grpc" or "http".
        verb: `Service.Rpc`; for HTTP known after routing.
        caller: who calls; None until they are let in.
        reason: reason of the error it ended with, "OK" for none.
        message: text of that error.
        peer: address of the host that it comes from.
        deadline: when nobody waits for the answer any more, in s of the monotonic clock; None for never.
        started: time of its first byte, in s of the monotonic clock.
        offer: the memory that its client shares with us for its arrays; None for none.
    """

    id: str
    transport: str
    verb: str = "unknown"
    caller: Caller | None = None
    reason: str = "OK"
    message: str = ""
    peer: str = ""
    deadline: float | None = None
    started: float = field(default_factory=time.monotonic)
    offer: Offer | None = None


_current: ContextVar[Call | None] = ContextVar("call", default=None)


def current_call() -> Call | None:
    """Return the call that runs now; None outside of any."""
    return _current.get()


def name_call(verb: str) -> None:
    """Say what the call that runs now calls."""
    if call := _current.get():
        call.verb = verb


def current_client() -> str:
    """Name who is charged for the call that runs now: the holder of its token, or without tokens its host."""
    call = _current.get()
    if call is None:
        return "server"
    if call.caller is not None and call.caller is not ANONYMOUS:
        return call.caller.name
    return call.peer


def current_deadline() -> float | None:
    """Return when the caller gives up, in s of the monotonic clock; None for never."""
    call = _current.get()
    return call.deadline if call is not None else None


class Calls:
    """The calls of a server: admits, counts and logs them.

    Args:
        access: decides who may call what.
        telemetry: where calls are counted and timed.
        check_workers: raises a LimitError when no more calls can wait for a worker of the engine.

    Attributes:
        draining: whether new calls are refused.
        ending: whether calls that are cancelled end because the server does.
    """

    def __init__(
        self,
        access: Access,
        telemetry: Telemetry | None = None,
        check_workers: Callable[[], None] = lambda: None,
    ) -> None:
        self.access = access
        self._check_workers = check_workers
        self._telemetry = telemetry or Telemetry()
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
        _current.set(call)
        self.running += 1
        self._idle.clear()
        try:
            with self._telemetry.call(call, headers):
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
        call = _current.get()
        if call is not None and call.verb in _COMPUTING:
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
